"""Schedules from points: known ones are found, and what points cannot tell is said."""

from decimal import Decimal

import numpy as np
import pytest

from analytics.tiers.infer import Inferred, distinct, infer
from analytics.tiers.schedule import Schedule, parse_schedule
from analytics.tiers.segments import Segments
from benchmarks.accuracy.tiers import CASES, limits_right, prices_right, row, wrong_identified

DOCUMENTS = parse_schedule(("0:1.20", "50:0.95", "200:0.78"))
CENT = Decimal("0.01")


def asked(schedule: Schedule, quantities: list[float], half: float = 0.005) -> Inferred:
    costs = [schedule.cost(Decimal(repr(q))).quantize(CENT) for q in quantities]
    return infer(quantities, costs, [half] * len(quantities))


def test_the_documents_three_points_are_not_identifiable_and_inconsistent_with_falling_prices() -> None:
    found = infer([30, 80, 250], [Decimal(36), Decimal("103.5"), Decimal(249)], [0.005] * 3)
    assert found.model == "unknown"
    assert found.schedule is None
    assert "not identifiable: 3 points for at least 2 prices and a limit" in found.reason
    assert "average price rises" in found.reason
    assert not any(tier.identified or tier.start_identified for tier in found.tiers)
    assert len(found.alternatives) == 2


def test_the_documents_schedule_is_read_back_exactly() -> None:
    found = asked(DOCUMENTS, [7.5, 18.25, 33.3, 48, 61, 99.9, 130, 155.5, 199, 210.2, 240, 281])
    assert found.model == "graduated"
    assert found.schedule is not None
    assert found.schedule.tiers == DOCUMENTS.tiers
    assert found.schedule.known_to == 281
    assert [tier.identified for tier in found.tiers] == [True] * 3
    assert found.residual is not None
    assert found.residual <= 1.01


def test_two_points_in_a_tier_are_consistent_but_not_identified() -> None:
    found = asked(DOCUMENTS, [20.0, 41.5, 60, 90, 120, 150, 180])
    assert found.model == "graduated"
    assert [tier.identified for tier in found.tiers] == [False, True]
    assert not found.tiers[1].start_identified


def test_three_points_that_are_nearly_two_check_nothing() -> None:
    found = asked(DOCUMENTS, [60, 70, 80, 90, 110, 130, 220.0, 260, 260.01])
    assert found.tiers[-1].points == 3
    assert not found.tiers[-1].identified


def test_minimum_fee_free_allowance_and_fixed_fee_have_their_names() -> None:
    q = [float(x) for x in (3, 8, 12, 15, 20, 30, 45, 49, 60, 90, 130, 180, 199, 220, 250, 290)]
    minimum = asked(Schedule("graduated", DOCUMENTS.tiers, minimum=Decimal(20)), q)
    assert minimum.schedule is not None
    assert minimum.schedule.minimum == 20
    assert "minimum fee of 20" in minimum.reason
    free = asked(parse_schedule(("0:0", "50:1.2", "200:0.95")), q)
    assert "free allowance" in free.reason
    assert free.tiers[0].price == 0
    assert free.tiers[0].identified
    fixed = asked(Schedule("graduated", DOCUMENTS.tiers, fee=Decimal(10)), q)
    assert fixed.schedule is not None
    assert fixed.schedule.fee == 10
    assert "or a dearer tier below the first point" in fixed.reason


def test_volume_prices_are_told_from_graduated_ones() -> None:
    found = asked(parse_schedule(("0:1.20", "50:0.95", "200:0.78"), "volume"), [10.0, 25, 40, 60, 100, 180, 220, 250])
    assert found.model == "volume"
    assert [tier.price for tier in found.tiers] == [Decimal("1.2"), Decimal("0.95"), Decimal("0.78")]
    assert [tier.start for tier in found.tiers[1:]] == [(40, 60), (180, 220)]


def test_one_price_says_nothing_of_what_lies_beyond() -> None:
    found = asked(parse_schedule(("0:0.37",)), [10, 20, 300])
    assert found.model == "one price"
    assert found.tiers[0].identified
    assert asked(parse_schedule(("0:0.37",)), [10, 20]).reason.startswith("consistent with one price, unverified")
    assert asked(parse_schedule(("0:0.37",)), [10]).model == "unknown"


def test_one_quantity_with_two_costs_is_inconsistent() -> None:
    found = infer([10, 10, 20], [Decimal(10), Decimal(11), Decimal(20)], [0.005] * 3)
    assert found.reason.startswith("inconsistent: the quantity 10 has two costs")


def test_nothing_and_no_quantity_are_unknown() -> None:
    assert infer([], [], []).model == "unknown"
    assert infer([0.0, -3.0], [Decimal(1), Decimal(1)], [0.005] * 2).model == "unknown"


def test_noise_follows_no_schedule() -> None:
    rng = np.random.default_rng(0)
    q = rng.uniform(1, 300, 60).tolist()
    assert infer(q, [Decimal(repr(round(x * rng.uniform(0.8, 1.2), 2))) for x in q], [0.005] * 60).model == "unknown"


@pytest.mark.parametrize("share", ["0.9", "0.375"])
def test_a_discount_on_all_prices_scales_them(share: str) -> None:
    tiers = parse_schedule(tuple(f"{t.from_q}:{t.unit_price * Decimal(share)}" for t in DOCUMENTS.tiers))
    found = asked(tiers, [7.5, 18.25, 33.3, 48, 61, 99.9, 130, 155.5, 199, 210.2, 240, 281])
    assert found.model == "graduated"
    for one, tier in zip(found.tiers, tiers.tiers, strict=True):
        assert one.identified
        assert one.price == pytest.approx(tier.unit_price, rel=Decimal("0.002"))


def test_cuts_that_differ_in_a_point_on_the_limit_are_one() -> None:
    found = asked(parse_schedule(("0:2", "50:1.5", "200:1")), [float(x) for x in range(10, 310, 10)])
    assert len(found.alternatives) == 1
    assert distinct(Segments(found.q, found.low, found.high), list(found.alternatives)) == list(found.alternatives)


def test_simulated_bills_of_two_years_are_read_and_never_wrongly() -> None:
    got = row(CASES[0], 24, 40)
    assert got[0] >= 0.85
    assert got[1] >= 0.85
    for case in CASES:
        for n in (6, 12, 24):
            assert row(case, n, 8, seed=1, peer=False)[5] == 0


def test_the_benchmark_sees_a_wrong_claim() -> None:
    case = CASES[0]
    wrong = asked(parse_schedule(("0:2", "70:1")), [10.0, 20, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180])
    assert wrong_identified(wrong, case) > 0
    assert not prices_right([2.0, 1.0], case)
    assert not limits_right(wrong, case)
