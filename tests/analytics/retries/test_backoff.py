"""Back-off and recovery: known parameters come back, limits hold them, and too little data is refused in words."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.retries.backoff import Array, fit
from analytics.retries.recovery import survival_quantile
from tests.analytics.retries.simulated import Policy


def waits(policy: Policy, sequences: int, rng: np.random.Generator, stop: float = 0.15) -> Array:
    """Waits of sequences that each end after any retry with probability `stop`."""
    made = np.full((sequences, policy.attempts - 1), np.nan)
    for row in made:
        for k in range(row.size):
            row[k] = policy.wait_s(k, rng)
            if rng.uniform() < stop:
                break
    return made


@pytest.mark.parametrize(
    "policy",
    [
        Policy(1.0, 2.0, 8.0, 0.2, 9),
        Policy(0.5, 2.0, 60.0, 1.0, 11),
        Policy(0.1, 3.0, 5.0, 0.1, 8),
        Policy(2.0, 1.5, 1e9, 0.25, 7),
        Policy(0.44, 2.0, 7.0, 1 / 7, 8),
    ],
    ids=lambda policy: f"{policy.base_s}x{policy.factor}",
)
def test_base_factor_cap_and_jitter_come_back(policy: Policy) -> None:
    found = fit(waits(policy, 300, np.random.default_rng(5)), 200, 0)
    assert found.base is not None
    assert found.factor is not None
    assert found.jitter is not None
    assert found.base.value == pytest.approx(policy.base_s, rel=0.1)
    assert found.factor.value == pytest.approx(policy.factor, rel=0.05)
    assert found.jitter == pytest.approx(policy.jitter, abs=0.05)
    assert found.verdict == "ok"
    if policy.cap_s > 1e6:
        assert found.cap is None
    else:
        assert found.cap is not None
        assert found.cap.value == pytest.approx(policy.cap_s, rel=0.1)


def test_constant_waits_have_factor_one_and_no_cap() -> None:
    found = fit(waits(Policy(3.0, 1.0, 3.0, 0.1, 8), 100, np.random.default_rng(1)), 200, 0)
    assert found.factor is not None
    assert found.factor.value == pytest.approx(1.0, abs=0.01)
    assert found.cap is None


def test_waits_without_jitter_are_exact() -> None:
    found = fit(waits(Policy(1.0, 2.0, 16.0, 0.0, 9), 30, np.random.default_rng(1)), 200, 0)
    assert found.base is not None
    assert found.cap is not None
    assert (found.base.value, found.cap.value, found.jitter) == pytest.approx((1.0, 16.0, 0.0))


def test_limits_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(7)
    policy = Policy(1.0, 2.0, 8.0, 0.5, 8)
    inside = 0
    for seed in range(100):
        found = fit(waits(policy, 60, rng), 200, seed)
        assert found.base is not None
        inside += found.base.low <= policy.base_s <= found.base.high
    assert 86 <= inside <= 100


def test_few_waits_are_refused_and_so_are_none() -> None:
    few = fit(np.array([[1.0, 2.0, 4.0], [1.1, 2.1, np.nan]]), 200, 0)
    assert few.base is None
    assert "needs 10" in few.verdict
    assert fit(np.full((5, 3), np.nan), 200, 0).gaps == 0
    assert fit(np.full((0, 0), np.nan), 200, 0).gaps == 0


def test_only_first_retries_give_a_base_and_no_factor() -> None:
    found = fit(np.random.default_rng(0).uniform(0.8, 1.2, (40, 1)), 200, 0)
    assert found.base is not None
    assert found.factor is None
    assert "no factor" in found.verdict


def test_retries_at_once_have_no_back_off() -> None:
    assert fit(np.zeros((40, 2)), 200, 0).verdict == "retried at once: no back-off"


def test_linear_waits_are_said_to_be_no_power() -> None:
    rng = np.random.default_rng(3)
    steps = np.arange(1, 9) * rng.uniform(0.95, 1.05, (200, 8))
    assert "do not grow as a power" in fit(steps, 200, 0).verdict


def test_a_wait_far_beyond_its_kind_changes_nothing() -> None:
    made = waits(Policy(), 100, np.random.default_rng(2))
    spoiled = np.vstack([made, np.full(made.shape[1], 3600.0)])
    assert fit(spoiled, 50, 0).gaps == fit(made, 50, 0).gaps


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 2**20))
def test_the_unit_of_time_does_not_matter(scale: float, seed: int) -> None:
    made = waits(Policy(jitter=0.3), 40, np.random.default_rng(seed))
    one, other = fit(made, 20, 0), fit(made * scale, 20, 0)
    assert one.base is not None
    assert other.base is not None
    assert other.base.value == pytest.approx(one.base.value * scale)
    assert other.factor is not None
    assert one.factor is not None
    assert other.factor.value == pytest.approx(one.factor.value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=40))
def test_survival_quantiles_are_those_of_statsmodels(seen: list[tuple[int, bool]]) -> None:
    from statsmodels.duration.survfunc import SurvfuncRight

    times = np.array([t for t, _ in seen], dtype=float)
    ended = np.array([e for _, e in seen])
    theirs = SurvfuncRight(times, ended.astype(int))
    for q in (0.25, 0.5, 0.9):
        wanted = [t for t, s in zip(theirs.surv_times, theirs.surv_prob, strict=True) if s <= 1 - q + 1e-12]
        assert survival_quantile(times, ended, q) == (wanted[0] if wanted else None)


def test_nothing_has_no_survival_quantile() -> None:
    assert survival_quantile(np.array([]), np.array([], dtype=bool), 0.5) is None
    assert survival_quantile(np.array([5.0]), np.array([False]), 0.5) is None
    assert math.isfinite(survival_quantile(np.array([5.0]), np.array([True]), 0.5) or math.nan)
