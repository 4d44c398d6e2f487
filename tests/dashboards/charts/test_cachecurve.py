"""The curve of a cache: the bend is marked and named, one group is drawn, and nothing where there is no curve."""

import json
from datetime import UTC, datetime

import polars as pl

from analytics.result import Result, Status
from dashboards.charts.cachecurve import CacheCurve
from dashboards.charts.plate import Plate
from dashboards.theme import DARK
from store.window import Window

WINDOW = Window(datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 11, 30, 13, tzinfo=UTC))


def drawn(curve: pl.DataFrame):  # type: ignore[no-untyped-def]
    frames = {"curve": curve}
    return CacheCurve().draw(Plate(Result("cache", Status.OK, WINDOW, {}, frames), frames, DARK))


def curve(service: str = "llm", **columns: list[object]) -> pl.DataFrame:
    given = {"blocks": [10, 1_000, 20_000], "hit_ratio": [0.1, 0.3, 0.36], "gain_doubling": [0.05, 0.02, 0.0]}
    whole = pl.DataFrame(given | {"bend": [False, True, False]} | columns)
    return whole.select(pl.lit(service).alias("service"), pl.all())


def test_the_bend_stands_in_the_title_and_as_a_line() -> None:
    found = drawn(curve())
    assert found.title == "1,000 blocks find 30 % of the lookups; twice as many add 2 %"
    (line,) = found.figure["layout"]["shapes"]
    assert line["x0"] == 1_000
    assert found.figure["layout"]["annotations"][0]["text"] == "bends at 1,000 blocks"
    json.dumps(found.figure)


def test_a_curve_without_a_bend_tells_its_largest_size() -> None:
    found = drawn(curve(bend=[False] * 3))
    assert found.title == "A cache of 20,000 blocks finds 36 % of the lookups"
    assert found.figure["layout"]["shapes"] == []


def test_one_group_is_drawn_and_one_size_is_no_curve() -> None:
    both = drawn(pl.concat([curve(), curve("other", blocks=[1, 2, 3])]))
    assert both.title.startswith("1,000 blocks")
    assert drawn(curve().head(1)) is None
    assert drawn(curve().clear()) is None
