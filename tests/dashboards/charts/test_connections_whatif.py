"""Figures of `connections` and `whatif`: the finding as the title, marks where they belong."""

from base64 import b64decode
from decimal import Decimal

import numpy as np
import polars as pl

from dashboards.charts.plate import Plate
from dashboards.charts.tornado import Tornado
from dashboards.charts.unitcost import UnitCost
from dashboards.figures import Drawn
from dashboards.theme import DARK
from tests.dashboards import answers


def drawn(chart: UnitCost | Tornado, name: str, **frames: pl.DataFrame) -> Drawn | None:
    result = answers.bare(name, **frames)
    return chart.draw(Plate(result, result.frames, DARK))


def hours(*costs: int) -> pl.DataFrame:
    n = len(costs)
    return pl.DataFrame(
        {"service": ["edge"] * n, "currency": ["USD"] * n, "concurrency": [float(i + 1) for i in range(n)]}
        | {"unit_cost": [Decimal(c) for c in costs], "fitted": [float(c) for c in costs]}
    )


def cheapest(concurrency: float | None) -> pl.DataFrame:
    limits = {"low": 1.5, "high": 2.5, "growth": 1.0} if concurrency else dict.fromkeys(("low", "high", "growth"))
    row = {"service": "edge", "currency": "USD", "concurrency": concurrency, "verdict": "no answer: flat"} | limits
    return pl.DataFrame([row], schema_overrides=dict.fromkeys(("concurrency", "low", "high", "growth"), pl.Float64))


def test_the_cheapest_concurrency_is_the_title_and_marked_with_its_limits() -> None:
    made = drawn(UnitCost(), "connections", unit_costs=hours(4, 2, 4), cheapest=cheapest(2.0))
    assert made is not None
    assert made.title == "edge: a request is cheapest at 2 in progress; at most seen it costs 100 % more"
    shapes = made.figure["layout"]["shapes"]
    assert [(s["x0"], s["x1"]) for s in shapes if s["type"] in ("rect", "line")][-2:] == [(1.5, 2.5), (2.0, 2.0)]


def test_without_an_answer_the_reason_is_the_title_and_nothing_is_marked() -> None:
    made = drawn(UnitCost(), "connections", unit_costs=hours(4, 4, 4), cheapest=cheapest(None))
    assert made is not None
    assert made.title == "edge: no answer: flat"
    assert made.figure["layout"]["shapes"] == []


def test_one_hour_is_no_figure() -> None:
    assert drawn(UnitCost(), "connections", unit_costs=hours(4), cheapest=cheapest(None)) is None


def test_the_most_sensitive_input_is_the_title_and_both_sides_are_drawn() -> None:
    rows = pl.DataFrame(
        {"input": ["requests_per_year", "hit_ratio"], "elasticity": [1.0, -0.5], "currency": ["USD"] * 2}
        | {"less": [Decimal(-10), Decimal(5)], "more": [Decimal(10), Decimal(-5)]}
    )
    made = drawn(Tornado(), "whatif", sensitivity=rows)
    assert made is not None
    assert made.title.startswith("Requests per year matters most")
    values = [np.frombuffer(b64decode(trace["x"]["bdata"]), trace["x"]["dtype"]) for trace in made.figure["data"]]
    assert [list(v) for v in values] == [[-10.0, 5.0], [10.0, -5.0]]
