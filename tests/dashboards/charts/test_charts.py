"""Figures of analyses: the finding as the title, what is drawn, and nothing where the frames do not carry it."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from analytics.catalog import ANALYSES, load
from analytics.result import Result
from dashboards.charts.banded import Banded
from dashboards.charts.bars import Bars
from dashboards.charts.budgets import BurnRates
from dashboards.charts.catalog import CHARTS
from dashboards.charts.curve import QuantileDifference
from dashboards.charts.decomposition import Decomposition
from dashboards.charts.episodes import Episodes
from dashboards.charts.errormap import ErrorMap
from dashboards.charts.lines import Lines
from dashboards.charts.plate import Plate
from dashboards.charts.streams import Jitter, WorstGaps
from dashboards.theme import DARK
from tests.dashboards import answers
from tests.dashboards.samples import SINCE, TRACE, naive


def plate(result: Result) -> Plate:
    return Plate(result, result.frames, DARK, trace=lambda trace_id: f"/trace/{trace_id}?theme=light")


@pytest.mark.parametrize("name", sorted(set(CHARTS) & set(ANALYSES)))
def test_no_figure_is_drawn_of_empty_frames(name: str) -> None:
    empty = answers.result(name, {})
    assert [spec.draw(plate(empty)) for spec in CHARTS[name]] == [None] * len(CHARTS[name])


@pytest.mark.parametrize("name", sorted(set(CHARTS) & set(ANALYSES)))
def test_every_column_a_figure_of_bars_or_lines_names_is_declared(name: str) -> None:
    declared = {frame: {column.name for column in columns} for frame, columns in load(name).frames.items()}
    for spec in CHARTS[name]:
        if isinstance(spec, Bars):
            named = {*spec.label, spec.value, *filter(None, (spec.low, spec.high, spec.only[0]))} - {"service"}
            assert named <= declared[spec.frame], spec
        if isinstance(spec, Lines):
            named = {spec.ts, *(column for column, _ in spec.columns), *filter(None, (spec.by,))} - {"service"}
            assert named <= declared[spec.frame]
        if isinstance(spec, QuantileDifference):
            assert {spec.q, spec.value, spec.low, spec.high} <= declared[spec.frame]


def test_the_error_map_outlines_what_stands_out_and_leads_to_a_trace() -> None:
    drawn = ErrorMap().draw(plate(answers.errors()))
    assert drawn is not None
    assert drawn.title == "1 cell stands out; worst: HTTP_429 in gcp europe-west4, 21× the expected"
    heat = drawn.figure["data"][0]
    assert len(drawn.figure["layout"]["shapes"]) == 1
    assert heat["customdata"][0][3] == f"/trace/{TRACE}?theme=light"
    assert heat["z"][0][3] == 3.0, "more than eight times the expected has the full colour"
    assert heat["z"][1][0] == 0.0, "as many as expected is the middle"


def test_cells_without_requests_are_holes_in_the_map() -> None:
    whole = answers.errors()
    cells = whole.frames["cells"].filter(~((pl.col("code") == "TIMEOUT") & (pl.col("bucket") > naive(SINCE))))
    drawn = ErrorMap().draw(plate(answers.bare("errors", cells=cells)))
    assert drawn is not None
    assert drawn.figure["data"][0]["z"][1] == [0.0, None, None, None, None, None]


def test_the_parts_of_both_bars_add_up_to_the_mean_request() -> None:
    drawn = Decomposition().draw(plate(answers.latency()))
    assert drawn is not None
    assert drawn.title == "Queue takes 80 % of the slowest requests' time"
    lengths = np.sum([trace["x"] for trace in drawn.figure["data"]], axis=0)
    assert lengths == pytest.approx([30.0, 2.0])


def test_the_worst_streams_have_a_row_each_and_lead_to_their_trace() -> None:
    drawn = WorstGaps().draw(plate(answers.stream()))
    assert drawn is not None
    assert drawn.title == "The longest wait within a stream was 1.2 s"
    assert len(drawn.figure["data"]) == 5
    assert drawn.figure["data"][0]["customdata"][0].startswith("/trace/0")


def test_jitter_is_drawn_up_to_all_streams() -> None:
    drawn = Jitter().draw(plate(answers.stream()))
    assert drawn is not None
    assert "40 streams" in drawn.subtitle


def test_a_budget_that_burns_is_the_title_and_missing_rates_are_left_out() -> None:
    rates = {"burn_5m": [20.0, None], "burn_1h": [29.0, 0.0], "burn_6h": [3.0, 0.2], "burn_3d": [0.5, None]}
    slos = pl.DataFrame({"slo": ["availability", "ttft"], "budget_left": [0.2, 0.9], **rates})
    drawn = BurnRates().draw(plate(answers.bare("slo", slos=slos)))
    assert drawn is not None
    assert drawn.title == "The budget of availability burns 29× over 1 h"
    assert drawn.figure["data"][0]["x"][1] is None
    assert "NaN" not in json.dumps(drawn.figure["data"][0]["x"])


def test_the_difference_by_quantile_has_the_verdict_as_its_title() -> None:
    curve = pl.DataFrame({"tau": [0.1, 0.5, 0.99], "difference_s": [0.0, 0.01, 0.2], "ci_low": [-0.01, 0.0, 0.1],
                          "ci_high": [0.01, 0.02, 0.3]})  # fmt: skip
    verdicts = pl.DataFrame({"metric": ["p99_s"], "estimate": [0.2], "verdict": ["b is slower"]})
    drawn = QuantileDifference(frame="quantiles", q="tau", value="difference_s").draw(
        plate(answers.bare("ab", quantiles=curve, difference=verdicts))
    )
    assert drawn is not None
    assert drawn.title == "P99: b is slower"
    alone = QuantileDifference(frame="quantiles", q="tau", value="difference_s").draw(
        plate(answers.bare("ab", quantiles=curve))
    )
    assert alone is not None
    assert alone.title == "The largest difference is 200 ms at quantile 0.99"


def test_every_variant_has_its_curve_and_the_slowest_gives_the_title() -> None:
    rows = [{"variant": name, "tau": tau, "difference_s": d, "ci_low": d - 0.1, "ci_high": d + 0.1}
            for name, d in (("v2", 0.1), ("v3", 0.4)) for tau in (0.5, 0.9, 0.99)]  # fmt: skip
    verdicts = pl.DataFrame({"variant": ["v2", "v3"], "metric": ["p99_s"] * 2, "estimate": [0.1, 0.4],
                             "verdict": ["no difference shown", "slower (+40 %)"]})  # fmt: skip
    drawn = QuantileDifference(frame="quantiles", q="tau", value="difference_s").draw(
        plate(answers.bare("ab", quantiles=pl.DataFrame(rows), difference=verdicts))
    )
    assert drawn is not None
    assert [line["name"] for line in drawn.figure["data"]] == ["v2", "v3"]
    assert drawn.title == "v3, P99: slower (+40 %)"


def test_an_episode_that_lasts_reaches_the_end_of_the_window() -> None:
    rows = pl.DataFrame({"series": ["ttft p99"], "labels": ['{"service":"chat"}'], "start": [naive(SINCE)],
                         "end": [None], "level": ["page"]}).cast({"end": pl.Datetime("us")})  # fmt: skip
    drawn = Episodes(frame="anomalies", lane=("series", "labels"), title="{count}", loud=("level", "page")).draw(
        plate(answers.bare("anomalies", anomalies=rows))
    )
    assert drawn is not None
    bar = drawn.figure["data"][0]
    assert bar["base"][0] + bar["x"][0] == answers.WINDOW.end.timestamp() * 1000
    assert bar["marker"]["color"] == [DARK.mark]
    assert drawn.figure["layout"]["yaxis"]["ticktext"] == ["ttft p99, chat"]


def test_names_from_data_are_text_in_a_figure() -> None:
    frame = pl.DataFrame({"code": ["<b>x</b>"], "share": [0.5]})
    spec = Bars(frame="top", label=("code",), value="share", axis="share", title="{label}", unit="ratio")
    drawn = spec.draw(plate(answers.bare("errors", top=frame)))
    assert drawn is not None
    assert drawn.figure["layout"]["yaxis"]["ticktext"] == ["&lt;b>x&lt;/b>"]


def test_a_line_per_objective_and_its_limit() -> None:
    at = [naive(SINCE), naive(SINCE + timedelta(minutes=5))]
    rows = pl.DataFrame({"slo": ["a", "a", "b", "b"], "ts": at * 2, "budget_left": [0.9, 0.7, 0.5, -0.1]})
    spec = Lines(
        frame="timeline", by="slo", columns=(("budget_left", "left"),), axis="left", title="{peak}", unit="ratio"
    )
    drawn = spec.draw(plate(answers.bare("slo", timeline=rows)))
    assert drawn is not None
    assert drawn.title == "90 %"
    assert [trace["name"] for trace in drawn.figure["data"][:2]] == ["a", "b"]


def test_a_chart_of_the_whole_compares_services_whichever_is_in_view() -> None:
    frame = pl.DataFrame({"service": ["a", "b"], "p99": [1.0, 2.0]})
    spec = Bars(frame="engines", label=("service",), value="p99", axis="P99", title="{label}", whole=True)
    seen = replace(plate(answers.bare("engines", engines=frame)), frames={"engines": frame.head(1)})
    drawn = spec.draw(seen)
    assert drawn is not None
    assert drawn.title == "b"


def banded(series: int = 2) -> Result:
    """Values of some series with a band, of which the first has an episode that pages and lasts."""
    result = answers.result("anomalies", {})
    ts = [naive(SINCE) + timedelta(minutes=5 * i) for i in range(40)]
    values = pl.concat(
        pl.DataFrame({"ts": ts}).select(
            pl.lit(f"m{n}").alias("series"), pl.lit(f'{{"service": "s{n}"}}').alias("labels"), "ts",
            pl.lit(0.2).alias("value"), pl.lit(0.1).alias("low"), pl.lit(0.3).alias("high"), pl.lit("s").alias("unit"),
        )
        for n in range(series)
    )  # fmt: skip
    row = {"series": "m0", "labels": '{"service": "s0"}', "start": ts[20], "end": None, "level": "page"}
    marks = pl.DataFrame([row], schema_overrides={"end": pl.Datetime("us"), "start": pl.Datetime("us")})
    return replace(result, frames={**result.frames, "values": values, "anomalies": marks})


def test_values_have_a_panel_each_with_band_and_the_episode_shaded_to_the_end() -> None:
    spec = Banded(frame="values", key=("series", "labels"), marks="anomalies", title="{count}", loud=("level", "page"))
    drawn = spec.draw(plate(banded()))
    assert drawn is not None
    assert drawn.title == "2"
    assert [trace["yaxis"] for trace in drawn.figure["data"]] == ["y", "y", "y2", "y2"]
    assert [note["text"] for note in drawn.figure["layout"]["annotations"]] == ["m0, s0", "m1, s1"]
    (mark,) = drawn.figure["layout"]["shapes"]
    assert mark["yref"] == "y domain"
    assert mark["fillcolor"] == DARK.mark
    json.dumps(drawn.figure["layout"])


def test_no_more_than_six_series_are_drawn_and_the_rest_is_counted() -> None:
    drawn = Banded(frame="values", key=("series", "labels"), marks="anomalies", title="{count}").draw(plate(banded(8)))
    assert drawn is not None
    assert drawn.title == "6"
    assert "2 more in the table" in drawn.subtitle
