"""How long blocks stay: against a simulation of LRU, and decays that are known."""

from collections import OrderedDict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cache import survival, traces
from analytics.stats.stack_distance import stack
from tests.analytics.frames_of import times


def lru(blocks: list[int], size: int) -> list[int]:
    """Access that evicts each block, by keeping the cache."""
    cache: OrderedDict[int, int] = OrderedDict()
    found = [-1] * len(blocks)
    for at, block in enumerate(blocks):
        cache[block] = at
        cache.move_to_end(block)
        if len(cache) > size:
            found[cache.popitem(last=False)[1]] = at
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.integers(1, 8))
def test_blocks_leave_when_an_lru_cache_evicts_them(blocks: list[int], size: int) -> None:
    found = stack(np.array(blocks))
    assert survival.evicted_at(found.previous, found.following, found.distance, size).tolist() == lru(blocks, size)


def test_the_median_life_counts_blocks_that_are_still_there() -> None:
    assert survival.median_life([1.0, 2.0, 9.0, 9.0], [True, True, False, False]) == 2.0
    assert survival.median_life([1.0, 9.0, 9.0], [True, False, False]) is None
    assert survival.median_life([None], [False]) is None


def stored(a: float, tau: float, n: int = 20_000, seed: int = 1) -> pl.DataFrame:
    """Blocks of which a share `a` leaves, after an exponential time; others stay. Seen for 600 s."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.uniform(0, 600, n))
    life = np.where(rng.random(n) < a, rng.exponential(tau, n), np.inf)
    seen = 600 - start
    return pl.DataFrame({"ts": times(start), "age_s": np.minimum(life, seen), "evicted": life < seen})


def test_the_decay_of_blocks_is_found_in_spite_of_those_still_there() -> None:
    retention, (decay,), (reuse,) = survival.of_events(stored(0.38, 60.0))
    assert decay["verdict"] == "fitted"
    for name, truth in (("r0", 1.0), ("a", 0.38), ("tau", 60.0)):
        assert decay[f"{name}_low"] <= decay[name] <= decay[f"{name}_high"]
        assert decay[name] == pytest.approx(truth, rel=0.08)
    at = next(row for row in retention if row["step"] > 300)
    assert at["retention"] == pytest.approx(0.62, abs=0.02)
    assert reuse["p90"] is None  # 62 % stay: nobody knows until when
    assert reuse["p99_above"] > 300


def test_a_decay_that_is_slower_than_the_window_has_no_tau() -> None:
    _, (decay,), _ = survival.of_events(stored(1.0, 2_000.0))
    assert decay.get("tau") is None
    assert "not told" in decay["verdict"]


def test_a_traced_cache_keeps_blocks_as_long_as_others_do_not_push_them_out() -> None:
    accesses = list(range(100)) * 3  # every block comes again after 100 others
    rows = pl.DataFrame({"ts": times(range(300)), "block_hashes": [[b] for b in accesses], "conversation": None,
                         "block_size": 16, "unit": "tokens"})  # fmt: skip
    trace = traces.read(rows)
    assert trace is not None
    _, _, reuse = survival.of_trace(trace, 20)
    by = {row["what"]: row for row in reuse}
    assert by["idle_before_evict"]["p50"] == 20
    assert (by["reuse_gap"]["p50"], by["reuse_distance"]["p50"]) == (100, 100)
