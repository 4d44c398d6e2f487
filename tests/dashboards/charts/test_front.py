"""The front of `pareto` as a step line, what it beats in grey."""

from datetime import UTC, datetime

from analytics.pareto import ANALYSIS
from analytics.result import Result
from dashboards.charts.front import ParetoFront
from dashboards.charts.plate import Plate
from dashboards.theme import DARK
from store.window import Window

WINDOW = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))


def result(points: str, objectives: str) -> Result:
    return ANALYSIS.run({}, ANALYSIS.make_params({"points": points, "objectives": objectives}), WINDOW)


def plate(answer: Result) -> Plate:
    return Plate(answer, answer.frames, DARK)


def test_the_front_is_joined_by_steps_and_the_rest_is_grey() -> None:
    drawn = ParetoFront().draw(plate(result("a:1:9,b:2:4,c:3:8,d:8:1", "cost_per_1k:min,ttft_p99_s:min")))
    assert drawn is not None
    assert drawn.title.startswith("3 of 4 configurations are beaten by no other; without b ")
    beaten, line, front = drawn.figure["data"]
    assert (beaten["text"], beaten["marker"]["color"]) == (["c<br>cost_per_1k 3, ttft_p99_s 8"], DARK.quiet)
    assert line["line"]["shape"] == "hv"
    assert len(front["text"]) == 3
    assert drawn.figure["layout"]["xaxis"]["title"]["text"].startswith("cost_per_1k (less is better)")


def test_of_three_objectives_no_line_is_drawn() -> None:
    drawn = ParetoFront().draw(plate(result("a:1:9:1,b:2:4:2", "x:min,y:min,z:max")))
    assert drawn is not None
    assert [trace["name"] for trace in drawn.figure["data"]] == ["on the front"]


def test_more_is_better_turns_the_steps() -> None:
    drawn = ParetoFront().draw(plate(result("a:1:1,b:2:4", "speed:max,cost:min")))
    assert drawn is not None
    assert drawn.figure["data"][0]["line"]["shape"] == "vh"


def test_names_that_would_touch_are_left_to_the_hover_and_markup_is_escaped() -> None:
    drawn = ParetoFront().draw(plate(result("<a>:1:9,b:1.01:8.99,c:9:1", "x:min,y:min")))
    assert drawn is not None
    assert [note["text"] for note in drawn.figure["layout"]["annotations"]] == ["&lt;a>", "c"]


def test_one_configuration_is_no_figure() -> None:
    assert ParetoFront().draw(plate(result("a:1:9", "x:min,y:min"))) is None
