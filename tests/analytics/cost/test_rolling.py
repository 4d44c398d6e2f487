"""The plain rule is what its words say: mean + k sample standard deviations of seven days, hour by hour."""

import statistics
from typing import Any

import numpy as np
import pytest

from analytics.cost.rolling import Kind, parse
from store.errors import UsageError
from tests.analytics.cost.asked import START, analysed, hours, noisy


def by_hand(costs: list[float | None], k: float, tolerance: float = 0.0) -> list[int]:
    """The rule in plain Python over hours that have a line."""
    found = []
    for at, cost in enumerate(costs):
        past = [c for c in costs[max(0, at - 168) : at] if c is not None]
        if cost is None or len(past) < 24:
            continue
        mean, spread = statistics.fmean(past), statistics.stdev(past)
        if cost > mean + k * spread and cost > mean * (1 + tolerance):
            found.append(at)
    return found


def alerts(costs: list[float | None], service: str = "chat", **params: Any) -> list[int]:
    frame = analysed(hours({service: costs}), method="rolling", **params).frames["hours"]
    return [int((at - START).total_seconds() // 3600) for at in frame.filter(frame["alert"])["bucket"]]


@pytest.mark.parametrize("k", [1.5, 2.5])
def test_it_agrees_with_the_rule_in_plain_python(k: float) -> None:
    rng = np.random.default_rng(4)
    costs: list[float | None] = [round(float(c), 6) for c in noisy(16, 4)[:, 0] * rng.gamma(4, 0.25, 16 * 24)]
    gaps: list[float | None] = [None if rng.random() < 0.2 and i else c for i, c in enumerate(costs)]
    assert alerts(costs, k=k) == by_hand(costs, k)
    assert alerts(gaps, k=k) == by_hand(gaps, k)
    assert alerts(gaps, k=k, empty="zero") == by_hand([c or 0.0 for c in gaps], k)


def test_kinds_have_their_own_factor_and_tolerance() -> None:
    costs: list[float | None] = [round(float(c), 6) for c in noisy(10, 5)[:, 0]]
    costs[-1] = 1.17 * statistics.fmean([c for c in costs[-169:-1] if c is not None])
    plain = by_hand(costs, 0.2)
    assert len(costs) - 1 in plain
    kind = "database=0.2/0.18"
    assert len(costs) - 1 in alerts(costs, k=0.2)
    assert len(costs) - 1 not in alerts(costs, "my-Database", k=0.2, kinds=kind)
    assert parse("serverless=3.5") == Kind("serverless", 3.5, 0.0)


@pytest.mark.parametrize("text", ["database", "=2", "database=x", "database=2/y"])
def test_a_kind_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        parse(text)


def test_a_flat_cost_is_not_above_itself() -> None:
    assert alerts([2.5] * 400) == []
