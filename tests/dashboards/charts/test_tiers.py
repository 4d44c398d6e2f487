"""Cost by quantity: the bill's points, the schedule, and where its tiers begin."""

from datetime import UTC, datetime

from analytics.result import Result
from analytics.tiers import ANALYSIS
from dashboards.charts.plate import Plate
from dashboards.charts.tiers import CostByQuantity
from dashboards.theme import DARK
from store.window import Window

WINDOW = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
TWO = ",".join(f"{q}:{min(2 * q, 50 + q)}" for q in (10, 20, 30, 45, 60, 80, 90, 100))


def result(points: str) -> Result:
    return ANALYSIS.run({}, ANALYSIS.make_params({"points": points}), WINDOW)


def test_points_schedule_and_limits_are_drawn() -> None:
    answer = result(TWO)
    drawn = CostByQuantity().draw(Plate(answer, answer.frames, DARK))
    assert drawn is not None
    assert drawn.title == "given: graduated, each unit at the price of its tier"
    assert [trace["name"] for trace in drawn.figure["data"]] == ["bill", "schedule"]
    assert [shape["x0"] for shape in drawn.figure["layout"]["shapes"]] == [50]
    assert [note["text"] for note in drawn.figure["layout"]["annotations"]] == ["2 each", "1 each"]


def test_without_a_schedule_the_points_stand_alone() -> None:
    answer = result("30:36.0,80:103.5,250:249.0")
    drawn = CostByQuantity().draw(Plate(answer, answer.frames, DARK))
    assert drawn is not None
    assert [trace["name"] for trace in drawn.figure["data"]] == ["bill"]
    assert "not identifiable" in drawn.title
