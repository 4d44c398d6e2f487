"""Engines: one row each, from their pages (cases 26, 27, 28, 30, 41, 42, and captures)."""

import csv
import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.fleet.engine_requests import outcomes
from analytics.fleet.engines import COLUMNS, ENGINE_METRICS, engines
from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from store.database import Database
from store.query import MetricQuery
from store.window import Window
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, span, stored


def shown(folder: Path, pages: dict[float, str]) -> list[dict[str, Any]]:
    end = max(pages)
    return engines(stored(folder, pages, ENGINE_METRICS), span(0, end), at(end)).to_dicts()


def read(folder: Path, *names: str) -> list[str]:
    return [(folder / f"{name}.prom").read_text() for name in names]


def one(*parts: pl.DataFrame, end: float = 60) -> dict[str, Any]:
    (row,) = engines(pl.concat(parts), span(0, end), at(end)).to_dicts()
    return row


def test_a_server_with_four_engines_is_one_row_with_its_hottest(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/26-vllm-data-parallel-engines"
    expected = json.loads((case / "expected.json").read_text())
    (row,) = shown(tmp_path, dict(zip((0, 10), read(case, "t0", "t10"), strict=True)))
    assert (row["requests_running"], row["requests_waiting"]) == (expected["running"], expected["waiting"])
    assert (row["kv_usage_ratio"], row["kv_usage_max_ratio"]) == (expected["kv_mean"], expected["kv_max"])
    assert row["generation_tokens_per_second"] == expected["tokens_per_s"]
    assert (row["model"], row["hottest_engine"], row["hottest_waiting"]) == ("m", "3", 9)


@pytest.mark.parametrize("page", ["old", "both", "new"])
def test_renamed_metrics_count_once(shared: Path, tmp_path: Path, page: str) -> None:
    case = shared / "cases/27-vllm-metric-renames"
    expected = json.loads((case / "expected.json").read_text())
    (row,) = shown(tmp_path, {0: read(case, page)[0]})
    assert (row["kv_usage_ratio"], row["itl_mean_s"]) == (expected["kv"], expected["itl_mean"])
    assert row["prefix_hit_ratio"] == expected["hit_ratio"]
    assert row["since_start"]
    assert "since its start" in row["notes"]


def cache(shared: Path, first: int, last: int) -> dict[str, Any]:
    rows = list(csv.DictReader((shared / "cases/28-prefix-cache-ratio/samples.csv").open()))
    seconds = times([float(row["t_s"]) for row in rows])
    names = {
        "queries": "prefix_cache_queries_total", "hits": "prefix_cache_hits_total", "preemptions": "preemptions_total",
    }  # fmt: skip
    parts = pl.concat(
        metric(name, seconds, [float(row[key]) for row in rows], series_id=i)
        for i, (key, name) in enumerate(names.items())
    )
    (row,) = engines(parts, span(first + 1, last), at(last)).to_dicts()
    return row


def test_the_hit_ratio_has_its_caveats(shared: Path) -> None:
    found = [cache(shared, t, t + 60) for t in (0, 60, 120, 180)]
    expected = json.loads((shared / "cases/28-prefix-cache-ratio/expected.json").read_text())["ratio"]
    assert [row["prefix_hit_ratio"] for row in found] == expected
    assert found[0]["notes"] is None
    assert "block granularity" in found[3]["notes"]
    assert "3 preemptions" in found[3]["notes"]


def test_triton_has_means_of_requests_not_of_executions(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/30-triton-cumulative-us"
    expected = json.loads((case / "expected.json").read_text())
    a, b = shown(tmp_path, dict(zip((0, 60), read(case, "t0", "t60"), strict=True)))
    assert a["e2e_mean_s"] == pytest.approx(expected["a_mean_ms"] / 1000)
    assert a["e2e_p99"] is expected["a_p99"]
    assert a["requests_per_second"] == pytest.approx(200 / 60)
    assert b["e2e_mean_s"] == pytest.approx(expected["b_mean_ms"] / 1000)
    assert "0.28 ms is implausible" in b["notes"]
    assert "decoupled backend" in b["notes"]


def test_the_gauge_of_a_dead_worker_is_left_out_and_told(shared: Path) -> None:
    lines = list(csv.DictReader((shared / "cases/41-multiprocess-stale-pids/inflight.csv").open()))
    parts = [
        metric(
            "requests_running",
            times([float(one["t_s"]) for one in lines if one["pid"] == pid]),
            [float(one["value"]) for one in lines if one["pid"] == pid],
            series_id=int(pid),
            labels=f'{{"pid":"{pid}"}}',
        )
        for pid in ("101", "202")
    ]
    row = one(*parts, end=1800)
    assert (row["requests_running"], row["notes"]) == (4, "stale pid 101 (unchanged 30 min while others move)")


def test_latencies_say_what_their_buckets_know(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/42-histogram-bucket-layouts"
    (mixed,) = shown(tmp_path / "mixed", {0: read(case, "mixed")[0]})
    assert (mixed["e2e_p50_s"], mixed["e2e_p99"], mixed["e2e_p99_s"], mixed["e2e_p99_low_s"]) == (
        30,
        "> 60 s",
        None,
        60,
    )
    assert "common ones used" in mixed["notes"]
    (zero,) = shown(tmp_path / "zero", {0: read(case, "zero")[0]})
    assert zero["ttft_mean_s"] == pytest.approx(73e-6, rel=0.01)
    assert "mean TTFT 0.073 ms is implausible" in zero["notes"]


def test_an_overloaded_sglang_is_plain_to_see(shared: Path, tmp_path: Path) -> None:
    page = (shared / "data/engine_metrics/sglang_docs_llama31_8b_overloaded.prom").read_text()
    (row,) = shown(tmp_path, {0: page})
    assert row["requests_waiting"] == 2826
    assert (row["ttft_p50"], row["ttft_p99"]) == ("> 30 s", "> 30 s")
    assert row["ttft_mean_s"] == pytest.approx(213.65, abs=0.01)
    assert (row["itl_p50"], row["itl_p99"]) == ("0.0931 s", "0.632 s")


def test_a_vllm_page_gives_its_hit_ratio(shared: Path, tmp_path: Path) -> None:
    page = (shared / "data/engine_metrics/datadog_vllm_v0_v1_union.prom").read_text()
    (row,) = shown(tmp_path, {0: page})
    assert row["prefix_hit_ratio"] == pytest.approx(64 / 117)
    assert (row["outcomes"], row["model"]) == ("length 1", "facebook/opt-125m")


def test_a_triton_model_has_its_mean_since_the_start(shared: Path, tmp_path: Path) -> None:
    page = (shared / "data/engine_metrics/datadog_triton.prom").read_text()
    found = {row["model"]: row for row in shown(tmp_path, {0: page})}
    assert found["densenet_onnx"]["e2e_mean_s"] == pytest.approx(0.442655)


def counter(name: str, values: list[float], series: int, **labels: str) -> pl.DataFrame:
    return metric(name, times([0, 60]), values, series_id=series, labels=json.dumps(labels))


def test_errors_are_failures_not_aborts() -> None:
    parts = [
        counter("requests_total", [0, n], i, outcome=outcome, model="m")
        for i, (outcome, n) in enumerate({"stop": 90, "abort": 6, "error": 4}.items())
    ]
    row = one(*parts)
    assert row["error_ratio"] == pytest.approx(0.04)
    assert row["outcomes"] == "stop 1.5/s, abort 0.1/s, error 0.0667/s"
    assert outcomes(pl.concat(parts), span(0, 60))["increase"].sum() == 100


def test_where_only_http_tells_errors_scrapes_do_not_thin_them() -> None:
    row = one(
        counter("requests_total", [0, 10], 1, outcome="stop", model="m"),
        counter("http_requests_total", [0, 9], 2, handler="/v1/completions", status="2xx"),
        counter("http_requests_total", [0, 1], 3, handler="/v1/completions", status="5xx"),
        counter("http_requests_total", [0, 10], 5, handler="/v1/completions", status="4xx"),
        counter("http_requests_total", [0, 900], 4, handler="/metrics", status="2xx"),
    )
    assert (row["model"], row["error_ratio"], row["client_error_ratio"]) == ("m", 0.05, 0.5)


def test_what_nobody_tells_is_null() -> None:
    errors = one(counter("request_errors_total", [0, 3], 1, code="500"))
    assert (errors["error_ratio"], errors["requests_per_second"], errors["kv_usage_ratio"]) == (None, None, None)
    silent = one(counter("requests_total", [0, 3], 1, outcome="stop"))
    assert (silent["error_ratio"], silent["requests_per_second"]) == (None, 0.05)


def test_an_engine_that_stopped_answering_has_no_level_now() -> None:
    row = one(metric("requests_running", times([0]), [5]), end=3600)
    assert (row["requests_running"], row["fresh"], row["age_s"]) == (None, False, 3600)


def test_the_kind_of_an_engine_comes_from_the_names_on_the_wire() -> None:
    raw = {"vllm:num_requests_running": "vllm", "ray_sglang_num_running_reqs": "sglang", "nv_inference_count": "triton"}
    parts = [
        metric("requests_running", times([0]), [1], series_id=i, instance=kind).with_columns(raw=pl.lit(name))
        for i, (name, kind) in enumerate(raw.items())
    ]
    found = engines(pl.concat(parts), span(0, 0), at(0))
    assert found["engine"].to_list() == found["instance"].to_list()
    assert one(metric("requests_running", times([0]), [1]), end=0)["engine"] is None


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("cases/26-vllm-data-parallel-engines/t10.prom", "vllm"),
        ("cases/27-vllm-metric-renames/old.prom", "vllm"),
        ("cases/30-triton-cumulative-us/t60.prom", "triton"),
        ("data/engine_metrics/sglang_docs_llama31_8b_overloaded.prom", "sglang"),
        ("data/engine_metrics/datadog_vllm_v0_v1_union.prom", "vllm"),
        ("data/engine_metrics/datadog_triton.prom", "triton"),
    ],
)
def test_the_kind_of_an_engine_is_told_by_what_the_store_has_of_it(
    shared: Path, tmp_path: Path, page: str, kind: str
) -> None:
    rows = shown(tmp_path, {0: (shared / page).read_text()})
    assert {row["engine"] for row in rows} == {kind}


# README.md of the recording: hit ratio, preemptions, most waiting, P99 of TTFT in the client (ms)
PHASES = {
    "burst": (0.648, 0, 113, 23010.9),
    "unique_long_prompts": (0.0, 4, 39, 35519.5),
    "cpu_contention": (0.744, 0, 19, 9846.9),
    "client_aborts": (0.743, 0, 0, 162.7),
}


def recorded(folder: Path, captures: Path, windows: Iterable[Window]) -> pl.DataFrame:
    """Scrapes of the recorded vLLM within the windows."""
    batches = []
    with gzip.open(captures / "vllm_metrics.jsonl.gz", "rt") as file:
        for scrape in map(json.loads, file):
            when = datetime.fromtimestamp(scrape["ts_ms"] / 1000, UTC)
            if any(window.start <= when < window.end for window in windows):
                page = parse(scrape["text"].encode())
                batches.append(to_batch("vllm", page, when, {"job": "llm", "instance": "a:1"}))
    with Database(folder) as database:
        database.append(batches)
        whole = database.extent("metric_samples")
        assert whole
        return database.read(MetricQuery(ENGINE_METRICS), whole)


def test_the_phases_of_a_real_vllm_read_as_they_were(shared: Path, tmp_path: Path) -> None:
    captures = shared / "data/vllm_real"
    labels = map(json.loads, (captures / "labels.jsonl").read_text().splitlines())
    windows = {
        one["phase"]: Window(*(datetime.fromtimestamp(one[key], UTC) for key in ("start", "end")))
        for one in labels
        if one["phase"] in PHASES
    }
    rows = recorded(tmp_path, captures, windows.values())
    for phase, (hits, preemptions, waiting, ttft_ms) in PHASES.items():
        window = windows[phase]
        within = pl.col("ts").is_between(*(t.replace(tzinfo=None) for t in (window.start, window.end)))
        (row,) = engines(rows.filter(within), window, window.end).to_dicts()
        assert row["prefix_hit_ratio"] == pytest.approx(hits, abs=0.015)
        assert row["preemptions"] == preemptions
        assert row["requests_waiting"] <= waiting
        assert row["ttft_p99_low_s"] <= 1.6 * ttft_ms / 1000  # by finish there, by start here; buckets double
        assert row["ttft_p99_high_s"] >= 0.6 * ttft_ms / 1000
        assert row["error_ratio"] == 0


def test_no_samples_give_no_engines() -> None:
    found = engines(metric("requests_running", [], []), span(0, 60), at(60))
    assert (found.columns, found.height) == (list(COLUMNS), 0)
