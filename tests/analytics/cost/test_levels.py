"""The newest level of daily costs, and schedules of prices that a bill shows: found where they are, and only there."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from analytics.cost.items import named
from analytics.cost.levels import newest
from analytics.cost.schedules import schedules
from tests.analytics.cost.lines import lines
from tests.analytics.cost.test_projection import simulated


@pytest.mark.parametrize("factor", [1.4, 0.6])
def test_a_step_of_five_days_is_found_where_it_began(factor: float) -> None:
    found = []
    for seed in range(20):
        made = simulated(56, seed)
        made[51:] *= factor
        found.append(newest(made))
    assert np.mean(np.abs(np.array(found) - 51) <= 1) >= 0.9


def test_noise_growth_and_rare_costs_have_no_newest_level() -> None:
    growing = np.exp(0.007 * np.arange(56))
    assert np.mean([newest(simulated(56, seed)) > 0 for seed in range(40)]) <= 0.05
    assert np.mean([newest(simulated(56, seed) * growing) > 0 for seed in range(40)]) <= 0.2
    assert newest(np.where(np.arange(40) % 3 == 0, 50.0, 0.0)) == 0
    assert newest(simulated(10, 0)) == 0


def bill(days: int, price: object) -> dict[str, object]:
    """Ten units a day from the first of November on, at a price of the month's quantity so far."""
    rows = []
    for d in range(days):
        at = datetime(2026, 11, 1) + timedelta(days=d)
        so_far = 10.0 * (at.day - 1)
        cost = f"{10 * price(d, so_far):.2f}"  # type: ignore[operator]
        rows.append({"bucket": at, "sku": "s", "unit": "k", "quantity": 10.0, "cost": cost})
    return dict(schedules(named(lines(rows))))


def test_tiers_are_told_once_a_month_began_anew_with_them() -> None:
    def tiers(_: int, so_far: float) -> float:
        return 2.0 if so_far < 50 else 1.5

    found = bill(45, tiers)["s"]
    assert [(float(tier.from_q), float(tier.unit_price)) for tier in found.tiers] == [(0.0, 2.0), (50.0, 1.5)]  # type: ignore[attr-defined]
    assert bill(28, tiers) == {}, "within one month a new price looks the same"


def test_one_price_or_a_new_one_is_no_schedule() -> None:
    assert bill(45, lambda *_: 2.0) == {}
    assert bill(45, lambda d, _: 2.0 if d < 20 else 2.4) == {}
