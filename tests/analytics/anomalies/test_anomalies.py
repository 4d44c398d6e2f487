"""`analyze anomalies`: incidents in metrics and requests, calm on noise, exclusions, refusals in words."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics import codec
from analytics.anomalies.series import step_for
from analytics.anomalies.words import often
from analytics.catalog import load
from analytics.result import Result, Status
from store.window import Window
from tests.analytics.frames_of import lines, metric, vllm_real, window_of

ANALYSIS = load("anomalies")
END = datetime(2026, 11, 30, tzinfo=UTC)
POINTS = 2016
WINDOW = Window(END - timedelta(days=7), END)
LABELS = '{"engine": "0"}'


def times(step: int = 300, points: int = POINTS) -> pl.Series:
    first = int((END - timedelta(seconds=step * points)).timestamp())
    return pl.Series([first + step * i for i in range(points)]).cast(pl.Int64) * 1_000_000


def rolled(name: str, values: Any, number: int, **more: Any) -> pl.DataFrame:
    """Rows of the rollup of one series: level `values`; with increase=True, growth per second."""
    grows = more.pop("increase", False)
    ts = times(points=len(values)).cast(pl.Datetime("us"))
    known = pl.Series(values, dtype=pl.Float64, strict=False).fill_nan(None)
    frame = pl.DataFrame({"bucket": ts, "value": known}).drop_nulls()
    return frame.select(
        "bucket",
        pl.lit(name).alias("name"),
        pl.lit(number).cast(pl.UInt64).alias("series_id"),
        pl.lit(20, pl.Int64).alias("n"),
        (pl.col("value") * 20).alias("sum"),
        (pl.col("value") * 300 if grows else pl.lit(0.0)).alias("increase"),
        (pl.col("bucket") + pl.duration(seconds=285)).alias("last_ts"),
        pl.lit(more.get("unit")).cast(pl.String).alias("unit"),
        pl.lit(None, pl.String).alias("kind"),
        pl.lit(name).alias("raw"),
        pl.lit(more.get("service", "llm")).alias("service"),
        pl.lit(more.get("instance", "a:8000")).alias("instance"),
        pl.lit("j").alias("job"),
        pl.lit(LABELS).alias("labels"),
    )


def run(*parts: pl.DataFrame, window: Window = WINDOW, **given: Any) -> Result:
    result = ANALYSIS.run({"metrics": pl.concat(parts)}, ANALYSIS.make_params(given), window)
    codec.from_json(codec.to_json(result), ANALYSIS.frames)
    return result


def noise(seed: int, size: float = 100.0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(25.0, size / 25, POINTS)


def test_a_spike_now_pages_and_says_in_one_sentence_why_and_what_else_moved() -> None:
    latency, waiting = noise(0, 0.2), noise(1, 5)
    latency[-3:] = 2.5
    waiting[-3:] = 60
    result = run(rolled("ttft", latency, 1, unit="s"), rolled("requests_waiting", waiting, 2), rolled("x", noise(2), 3))
    assert result.samples["anomalous_series"].rows() == [("llm", 2.0)]
    (finding,) = [f for f in result.findings if f.until is None]
    assert finding.trigger == "MetricAnomalous"
    assert finding.since == END - timedelta(minutes=15)
    assert "the nearest" in finding.summary
    assert {one["series"] for one in finding.evidence["series"]} == {"ttft", "requests_waiting"}
    assert finding.summary.startswith("ttft of llm is 2.5 s, usually ")
    assert " at this hour; since 2026-11-29T23:45:00Z; far beyond every value" in finding.summary
    assert finding.summary.endswith("; with it: requests_waiting")
    assert (
        finding.evidence["exclude"]
        == f"ttft service=llm {END - timedelta(minutes=15):%Y-%m-%dT%H:%M:%SZ}..2026-11-30T00:00:00Z"
    )


def test_a_past_spike_is_a_finding_with_an_end() -> None:
    latency = noise(0, 0.2)
    latency[1500:1504] = 2.5
    (finding,) = run(rolled("ttft", latency, 1, unit="s")).findings
    assert finding.since == WINDOW.start + timedelta(minutes=5 * 1500)
    assert finding.until == WINDOW.start + timedelta(minutes=5 * 1504)


def test_noise_alone_has_no_finding() -> None:
    result = run(*(rolled(f"m{i}", noise(i), i) for i in range(30)))
    assert result.status is Status.OK
    assert result.findings == ()
    assert result.samples["anomalous_series"]["value"].to_list() == [0.0]


def test_several_metrics_of_one_instance_together_page_where_one_alone_does_not() -> None:
    series = [noise(i) for i in range(12)]
    for one in series[:5]:
        one[1800] = np.quantile(one[:1800], 0.99) + 5.2 * (one[:1800].max() - np.quantile(one[:1800], 0.99)) / 2
    alone = run(rolled("m0", series[0], 0), *(rolled(f"m{i}", noise(50 + i), i) for i in range(1, 12)))
    together = run(*(rolled(f"m{i}", one, i) for i, one in enumerate(series)))
    assert alone.findings == ()
    assert len(together.findings) == 1
    assert len(together.findings[0].evidence["series"]) >= 3


def test_a_counter_is_judged_by_its_growth_per_second() -> None:
    rate = noise(3, 40)
    rate[-2:] = 400
    result = run(rolled("generation_tokens_total", rate, 1, increase=True, unit="tokens"))
    row = result.frames["anomalies"].row(0, named=True)
    assert row["value"] == pytest.approx(400, rel=0.05)
    assert "tokens/s" in row["reason"]


def test_an_excluded_incident_is_neither_reported_nor_learnt() -> None:
    first, again = WINDOW.start + timedelta(minutes=5 * 1000), 1600
    values = noise(4)
    values[1000:1010] = 900
    values[again : again + 3] = 900
    start, end = first, first + timedelta(minutes=50)
    remembered = run(rolled("m", values, 1))
    excluded = run(rolled("m", values, 1), exclude=f"{start:%Y-%m-%dT%H:%M:%SZ}..{end:%Y-%m-%dT%H:%M:%SZ}")
    at = WINDOW.start + timedelta(minutes=5 * again)
    assert [f.since for f in remembered.findings] == [first]
    assert [f.since for f in excluded.findings] == [at]


def test_a_series_is_excluded_by_name_or_label() -> None:
    values = noise(4)
    values[-2:] = 900
    for what in ("m", "engine=0", "instance=a:8000"):
        result = run(rolled("m", values, 1), rolled("other", noise(5), 2, instance="b:8000"), exclude=what)
        assert result.findings == ()


def test_a_level_that_shifted_is_told_as_such() -> None:
    values = noise(6)
    values[-200:] *= 2
    result = run(rolled("m", values, 1))
    assert result.samples["shifted_series"]["value"].to_list() == [1.0]
    (finding,) = [f for f in result.findings if f.trigger == "MetricLevelShifted"]
    assert "and stayed" in finding.summary


def test_data_that_end_before_the_window_are_not_now() -> None:
    values = noise(7)
    values[-3:] = 900
    later = Window(WINDOW.start, WINDOW.end + timedelta(hours=2))
    result = run(rolled("m", values, 1), window=later)
    assert result.samples["anomalous_series"]["value"].to_list() == [0.0]
    assert all(f.until is not None for f in result.findings)


def test_too_few_points_are_refused_in_words_and_listed() -> None:
    result = run(rolled("m", noise(8)[:30], 1), rolled("flat", np.full(500, 3.0), 2))
    assert result.status is Status.REFUSED
    assert "too short or constant" in result.notes[0]
    reasons = dict(result.frames["coverage"].select("series", "skipped_reason").rows())
    assert reasons == {"m": "fewer than 60 points of 5m", "flat": "one value only"}


def test_a_gap_of_everything_is_no_anomaly_of_each_series() -> None:
    series = [noise(i) for i in range(3)]
    for one in series:
        one[1000:1100] = np.nan
    result = run(*(rolled(f"m{i}", one, i) for i, one in enumerate(series)))
    assert "missing" not in result.frames["anomalies"]["kind"].to_list()


def test_a_series_that_stops_while_others_go_on_is_missing() -> None:
    stopped = noise(1)
    stopped[1000:1040] = np.nan
    result = run(rolled("m0", noise(0), 0), rolled("m1", stopped, 1))
    rows = result.frames["anomalies"].filter(pl.col("kind") == "missing")
    assert rows["series"].to_list() == ["m1"]


def test_labels_of_a_row_are_those_that_tell_series_apart() -> None:
    result = run(rolled("m", noise(0), 0), rolled("m", noise(1), 1, instance="b:8000"))
    labels = [json.loads(text) for text in result.frames["coverage"]["labels"]]
    assert labels == [{"service": "llm", "instance": name} for name in ("a:8000", "b:8000")]


def test_how_often_is_said_in_words() -> None:
    assert often(1e-6, 300) == "less than once in 496 weeks"
    assert often(1e-9, 300) == "less than once in ten years"
    assert often(1e-3, 300) == "about once in 3 days"


def test_the_recorded_burst_is_an_episode_and_calm_phases_are_calm(shared: Path) -> None:
    folder = shared / "data" / "vllm_real"
    spans, samples = vllm_real(folder)
    running = []
    for scrape in lines(folder / "vllm_metrics.jsonl.gz"):
        said = (t for t in scrape["text"].splitlines() if t.startswith("vllm:num_requests_running{"))
        running += [(scrape["ts_ms"] * 1000, float(text.rpartition(" ")[2])) for text in said]
    ts = pl.Series([t for t, _ in running]).cast(pl.Datetime("us"))
    samples = pl.concat([samples, metric("requests_running", ts.to_list(), [v for _, v in running], series_id=9)]).sort(
        "ts"
    )
    spans = spans.with_columns(status=pl.lit("ok"), error_code=pl.lit(None, pl.String), e2e_s=pl.col("ttft_s") * 2)
    inputs = {"samples": samples, "requests": spans}
    result = ANALYSIS.run(inputs, ANALYSIS.make_params({"step": "2s"}), window_of(samples))
    phases = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    bad = [p for p in phases if p["phase"] in ("burst", "unique_long_prompts", "cpu_contention")]
    starts = [row["start"].replace(tzinfo=UTC).timestamp() for row in result.frames["anomalies"].iter_rows(named=True)]
    by_series = dict(zip(result.frames["anomalies"]["series"], starts, strict=True))
    assert all(any(p["start"] <= at < p["end"] for p in bad) for at in starts)
    assert {"requests_waiting", "requests_running", "ttft p50"} <= set(by_series)
    paged = result.frames["anomalies"].filter(pl.col("level") == "page")
    assert "ttft p50" in paged["series"].to_list()


def test_a_maintenance_hour_of_one_series_is_left_out_of_it_alone_and_is_no_gap() -> None:
    values, other = noise(4), noise(5)
    at = [i for i in range(POINTS) if 12 * 2 <= (i % 288) < 12 * 3]  # 02:00 to 03:00 every day
    values[at] += 900
    other[-2:] = 900
    given = f"m service=llm daily 02:00..03:00 until {END:%Y-%m-%d}"
    result = run(rolled("m", values, 1), rolled("other", other, 2, instance="b:8000"), exclude=[given])
    assert set(result.frames["anomalies"].filter(pl.col("level") == "page")["series"]) == {"other"}
    assert "missing" not in result.frames["anomalies"].filter(pl.col("series") == "m")["kind"].to_list()
    assert any("1 exclusions as given; 84 points" in note for note in result.notes)
    points = dict(result.frames["coverage"].select("series", "points").rows())
    assert points == {"m": POINTS - 84, "other": POINTS}


def test_values_around_the_episodes_come_with_a_band_and_are_few() -> None:
    series = [noise(i) for i in range(12)]
    for one in series:
        one[-3:] = 900
    result = run(*(rolled(f"m{i}", one, i) for i, one in enumerate(series)))
    values = result.frames["values"]
    assert values["series"].n_unique() == 8
    assert values.group_by("series").len()["len"].max() <= 400
    last = values.filter(pl.col("ts") == values["ts"].max())
    assert last["value"].to_list() == [900.0] * 8
    assert all(low < 100 < high < 200 for low, high in last.select("low", "high").rows())


def test_a_drift_is_a_finding_of_its_own_and_no_page() -> None:
    values = noise(6) * (1 + 0.25 * np.maximum(np.arange(POINTS) - 288 * 3, 0) / 288)
    result = run(rolled("m", values, 1, unit="bytes"), rolled("process_uptime_seconds", np.arange(POINTS) * 300.0, 2))
    assert result.samples["drifting_series"]["value"].to_list() == [1.0]
    (finding,) = [f for f in result.findings if f.trigger == "MetricDrifting"]
    assert finding.summary.startswith("m of llm went from ")
    assert " days, " in finding.summary
    assert finding.until is None


def called(slow: str = "", spans: int = 8, minutes: int = 12 * 60) -> pl.DataFrame:
    """Traces web → shop → bank and web → search, several every five minutes; for the last quarter of an hour slow."""
    rng = np.random.default_rng(0)
    own = {"web": 0.02, "shop": 0.03, "bank": 0.05, "search": 0.04}
    tree = {"web": None, "shop": "web", "bank": "shop", "search": "web"}
    rows = []
    for n in range(minutes // 5 * spans * 5):
        at = END - timedelta(minutes=minutes) + timedelta(seconds=300 / (spans * 5) * n)
        late = at >= END - timedelta(minutes=15)
        took = {k: v * rng.gamma(50, 1 / 50) * (20 if late and k == slow else 1) for k, v in own.items()}
        took["shop"] += took["bank"]
        took["web"] += took["shop"] + took["search"]
        rows += [
            (at.replace(tzinfo=None), f"t{n}", f"{n}{k}", p and f"{n}{p}", k, took[k], "ok") for k, p in tree.items()
        ]
    names = ["ts", "trace_id", "span_id", "parent_span_id", "service", "duration_s", "status"]
    return pl.DataFrame(rows, names, orient="row").with_columns(pl.col("ts").cast(pl.Datetime("us")))


@pytest.mark.parametrize("slow", ["bank", "search"])
def test_services_that_got_slow_are_led_back_along_the_calls_to_where_it_was_added(slow: str) -> None:
    params, window = ANALYSIS.make_params({}), Window(END - timedelta(hours=12), END)
    inputs = {"metrics": rolled("pressure", noise(1), 1, service=slow), "calls": called(slow)}
    result = ANALYSIS.run(inputs, params, window)
    rows = result.frames["causes"].filter(pl.col("service") == "web")
    assert rows.row(0, named=True)["cause"] == slow
    assert rows["share"][0] > 0.9
    assert rows["path"][0] == {"bank": "web → shop → bank", "search": "web → search"}[slow]
    (finding,) = [f for f in result.findings if f.labels == {"service": "web"} and f.until is None]
    assert f"of the time added at {slow} (web → " in finding.summary
    assert finding.evidence["causes"][0]["cause"] == slow
    codec.from_json(codec.to_json(result), ANALYSIS.frames)


def test_calls_without_an_incident_have_no_causes() -> None:
    inputs = {"metrics": rolled("pressure", noise(1), 1, service="bank"), "calls": called()}
    result = ANALYSIS.run(inputs, ANALYSIS.make_params({}), Window(END - timedelta(hours=12), END))
    assert result.frames["causes"].height == 0
    assert result.findings == ()


@pytest.mark.parametrize(("hours", "step", "apart"), [(0.5, 2, 2), (0.5, 60, 15), (6, 10, 2), (7.5, 60, 2), (4, 10, 5)])
def test_the_step_follows_from_the_window_and_from_how_often_samples_come(hours: float, step: int, apart: int) -> None:
    window = Window(END - timedelta(hours=hours), END)
    ts = [(window.start + timedelta(seconds=i * apart)).replace(tzinfo=None) for i in range(int(hours * 3600) // apart)]
    samples = metric("requests_waiting", ts, [float(i % 7) for i in range(len(ts))])
    assert step_for({"samples": samples}, ANALYSIS.make_params({}), window) == step


def test_long_windows_are_read_from_rollups_and_the_note_says_so() -> None:
    choice = ANALYSIS.inputs(ANALYSIS.make_params({}))["samples"]
    assert choice.shorter_than == timedelta(hours=8)
    asked = [choice.rolled(Window(END - timedelta(days=days), END))["metrics"].step_s for days in (1, 7, 21, 22)]
    assert asked == [300, 300, 300, 3600]
    assert (
        "points of 5m from five-minute rollups, chosen by the window and the data"
        in run(rolled("m", noise(0), 1)).notes[0]
    )
