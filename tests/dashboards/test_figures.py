"""Figures state the finding, keep gaps, and stay small."""

from base64 import b64decode
from datetime import timedelta
from typing import Any

import numpy as np
import orjson
import plotly.graph_objects as go
import polars as pl
import pytest

from dashboards import figures
from dashboards.theme import DARK, LIGHT, Colours
from store.window import Window
from tests.dashboards.samples import NOW, finding, overview_result, p99_result

COLOURS = Colours()


def decoded(values: Any) -> np.ndarray:
    return np.frombuffer(b64decode(values["bdata"]), values["dtype"])


def of(frame: pl.DataFrame, service: str = "chat-api") -> pl.DataFrame:
    return frame.filter(pl.col("service") == service)


@pytest.fixture(params=[DARK, LIGHT], ids=lambda theme: theme.name)
def drawn(request: pytest.FixtureRequest) -> list[figures.Drawn]:
    p99, overview = p99_result(), overview_result()
    colour = lambda name: COLOURS.of(name, request.param)  # noqa: E731
    return [
        figures.p99_timeline(of(p99.frames["windows"]), p99.findings, p99, "P99 TTFT", request.param),
        figures.contribution_bars(of(p99.frames["contributions"]), "fit", "P99 TTFT", request.param),
        figures.residual_plot(of(p99.frames["residuals"]), 0.1, p99, request.param),
        figures.service_timeline(overview.frames["timeline"], overview, colour, request.param),
    ]


def test_every_figure_is_one_that_plotly_accepts(drawn: list[figures.Drawn]) -> None:
    for item in drawn:
        go.Figure(item.figure)


def test_no_array_is_sent_as_a_list_of_numbers(drawn: list[figures.Drawn]) -> None:
    for item in drawn:
        for trace in item.figure["data"]:
            assert "bdata" in trace["x"]


def test_the_p99_title_states_the_finding_and_the_subtitle_its_basis() -> None:
    result = p99_result()
    item = figures.p99_timeline(of(result.frames["windows"]), result.findings, result, "P99 TTFT", DARK)
    assert item.title == "P99 TTFT 412 ms, 2.29× its baseline, since 30 Nov 14:05 UTC"
    assert "requests" in item.subtitle
    assert "UTC" in item.subtitle
    assert "one point per 5 min" in item.subtitle


def test_without_a_finding_the_title_says_it_is_inside_its_band() -> None:
    result = p99_result()
    item = figures.p99_timeline(of(result.frames["windows"]), (), result, "P99 TTFT", DARK)
    assert item.title.endswith("inside its band")
    assert item.figure["layout"]["shapes"] == []


def test_an_episode_is_shaded_from_its_start_to_its_end() -> None:
    result = p99_result()
    over = finding(until=NOW - timedelta(minutes=10))
    item = figures.p99_timeline(of(result.frames["windows"]), (over,), result, "P99 TTFT", DARK)
    (box,) = item.figure["layout"]["shapes"]
    assert box["x0"] == over.since.timestamp() * 1000
    assert box["x1"] == (NOW - timedelta(minutes=10)).timestamp() * 1000


def test_missing_windows_are_a_gap_with_a_hatch_and_never_a_line() -> None:
    result = p99_result()
    item = figures.p99_timeline(of(result.frames["windows"]), (), result, "P99 TTFT", DARK)
    p99 = next(trace for trace in item.figure["data"] if trace["name"] == "P99")
    assert np.isnan(decoded(p99["y"])).any()
    assert p99["connectgaps"] is False
    assert any(trace["name"] == "no data" for trace in item.figure["data"])


def test_a_month_of_windows_stays_below_2000_points_a_trace_and_shows_its_spike() -> None:
    window = Window.last(timedelta(days=30), NOW)
    result = p99_result(window=window)
    frame = of(result.frames["windows"]).with_row_index()
    spike = frame.with_columns(p99=pl.when(pl.col("index") == 1234).then(9.0).otherwise("p99"))
    item = figures.p99_timeline(spike, (), result, "P99 TTFT", DARK)
    assert all(decoded(trace["x"]).size <= 2000 for trace in item.figure["data"])
    p99 = next(trace for trace in item.figure["data"] if trace["name"] == "P99")
    assert np.nanmax(decoded(p99["y"])) == 9.0
    assert "extremes kept" in item.subtitle
    assert len(orjson.dumps(item.figure)) < 300_000


def test_null_values_are_drawn_as_nothing() -> None:
    result = p99_result()
    frame = of(result.frames["windows"]).with_columns(pl.lit(None, pl.Float64).alias("p99"))
    item = figures.p99_timeline(frame, (), result, "P99 TTFT", DARK)
    assert item.title == "No P99 TTFT in this window"
    go.Figure(item.figure)


def test_contributions_are_sorted_and_say_share_and_interval() -> None:
    item = figures.contribution_bars(of(p99_result().frames["contributions"]), "fit", "P99 TTFT", DARK)
    assert item.title.startswith("kv_transfer_s carries 68 %")
    assert item.figure["layout"]["annotations"][0]["text"] == "<b>68 %</b>  [61-74]"
    assert item.figure["data"][0]["y"][0] == "kv_transfer_s"


def test_contributions_without_a_share_say_that_no_driver_was_identified() -> None:
    frame = pl.DataFrame({"driver": ["a"], "share": [None], "ci_low": [None], "ci_high": [None]}).cast(
        {"share": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64}
    )
    item = figures.contribution_bars(frame, "", "P99 TTFT", DARK)
    assert item.title == "No driver of the P99 TTFT could be identified"
    go.Figure(item.figure)


def test_one_row_is_enough_for_every_timeline() -> None:
    p99, overview = p99_result(), overview_result()
    for item in (
        figures.p99_timeline(p99.frames["windows"].head(1), (), p99, "P99 TTFT", DARK),
        figures.residual_plot(p99.frames["residuals"].head(1), None, p99, DARK),
        figures.service_timeline(overview.frames["timeline"].head(1), overview, lambda _: "#000", DARK),
    ):
        go.Figure(item.figure)


def test_time_axes_are_labelled_utc(drawn: list[figures.Drawn]) -> None:
    axes = [item.figure["layout"]["xaxis"] for item in drawn]
    assert [axis["title"]["text"] for axis in axes if axis.get("type") == "date"] == ["time (UTC)"] * 3


def test_a_service_has_one_colour_on_every_page_and_eight_differ() -> None:
    colours = Colours()
    names = [f"service-{i}" for i in range(8)]
    colours.learn(names)
    slots = [colours.slot(name) for name in names]
    assert sorted(slots) == list(range(8))
    colours.learn(["another"])
    assert [colours.slot(name) for name in names] == slots


def test_a_peak_that_would_hide_the_rest_makes_the_axis_logarithmic_and_says_so() -> None:
    result = p99_result()
    frame = of(result.frames["windows"]).with_row_index()
    peak = frame.with_columns(p99=pl.when(pl.col("index") == 9).then(54.8).otherwise("p99"))
    axis = figures.p99_timeline(peak, (), result, "P99 TTFT", DARK).figure["layout"]["yaxis"]
    assert (axis["type"], axis["title"]["text"]) == ("log", "P99 TTFT (s)<br>log scale")
    calm = figures.p99_timeline(of(result.frames["windows"]), (), result, "P99 TTFT", DARK).figure["layout"]["yaxis"]
    assert calm["range"][0] == 0


def test_the_clear_colours_are_given_first() -> None:
    colours = Colours()
    assert {colours.slot(f"s{i}") for i in range(6)} == set(range(6))


def test_labels_at_the_ends_of_lines_stay_apart_and_inside_the_plot() -> None:
    item = figures.service_timeline(overview_result().frames["timeline"], overview_result(), lambda _: "#000", DARK)
    for place in ("y", "y2", "y3"):
        heights = sorted(n["y"] for n in item.figure["layout"]["annotations"] if n["yref"] == f"{place} domain")
        assert heights[-1] <= 1
        assert (np.diff(heights) > 0.18).all()
