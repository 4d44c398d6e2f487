"""Cases from public bug reports about engines: which series are canonical, and how they combine."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl
import pytest

from collector.prometheus.series import Resolver, sample_frame, series_frame
from collector.prometheus.text import parse
from store.batch import Batch
from store.database import Database
from store.query import MetricQuery
from store.window import Window
from tests.collector.presets.read_page import AT, Page, read


def case(shared: Path, number: int) -> Path:
    (path,) = (shared / "cases").glob(f"{number}-*")
    return path


def expected(path: Path) -> Any:
    return json.loads((path / "expected.json").read_text())


def page(path: Path, name: str) -> Page:
    return read((path / f"{name}.prom").read_text())


def values(found: Page, canonical: str, **labels: str) -> list[float]:
    return [row.value for row in found.of(canonical, **labels) if row.value is not None]


def test_case_12_a_series_is_kept_under_the_name_on_the_wire(shared: Path) -> None:
    path = case(shared, 12)
    found = page(path, "metrics")
    assert {row.name: row.value for row in found.rows} == expected(path)
    assert {row.canonical for row in found.rows} == {
        "gpu_pcie_replay_total",
        "e2e_seconds_count",
        "prompt_tokens_total",
    }


def test_case_26_engines_add_up_and_ratios_do_not(shared: Path) -> None:
    path = case(shared, 26)
    wanted, first, last = expected(path), page(path, "t0"), page(path, "t10")
    assert sum(values(first, "requests_running")) == wanted["running"]
    assert sum(values(first, "requests_waiting")) == wanted["waiting"]
    usage = values(first, "kv_cache_usage_ratio")
    assert mean(usage) == pytest.approx(wanted["kv_mean"])
    assert max(usage) == wanted["kv_max"]
    assert values(first, "requests_waiting", engine="3") == [9.0]
    before, after = (sum(values(p, "generation_tokens_total")) for p in (first, last))
    assert (after - before) / 10 == wanted["tokens_per_s"]


@pytest.mark.parametrize("name", ["old", "both", "new"])
def test_case_27_an_upgrade_neither_loses_nor_doubles(shared: Path, name: str) -> None:
    path = case(shared, 27)
    wanted, found = expected(path), page(path, name)
    assert values(found, "kv_cache_usage_ratio") == [wanted["kv"]]
    assert values(found, "itl_seconds_count") == [wanted["itl_count"]]
    assert sum(values(found, "itl_seconds_sum")) / wanted["itl_count"] == pytest.approx(wanted["itl_mean"])
    hits, queries = values(found, "prefix_cache_hits_total"), values(found, "prefix_cache_queries_total")
    assert hits[0] / queries[0] == wanted["hit_ratio"]
    assert len(hits) == len(queries) == 1


def test_case_27_the_history_is_one_series_at_a_time_over_the_upgrade(shared: Path, tmp_path: Path) -> None:
    path = case(shared, 27)
    resolver, batches = Resolver({"job": "llm", "instance": "a:1"}), []
    for minute, name in enumerate(("old", "both", "new")):
        at, parsed = AT + timedelta(minutes=minute), parse((path / f"{name}.prom").read_bytes())
        resolved = resolver.resolve(parsed.series)
        samples, _ = sample_frame(parsed, resolved, at)
        rows = series_frame(list(resolved.rows.values()), at.replace(tzinfo=None))
        batches.append(Batch("test", {"metric_series": rows, "metric_samples": samples}))
    with Database(tmp_path) as database:
        database.append(batches)
        frame = database.read(MetricQuery(("kv_cache_usage_ratio",)), Window(AT, AT + timedelta(hours=1)))
    assert frame.group_by("ts").agg(pl.col("value").sum()).sort("ts")["value"].to_list() == [0.4] * 3
    assert frame["unit"].unique().to_list() == ["ratio"]


def test_case_27_a_version_with_neither_name_shows_nothing_not_zero() -> None:
    assert read("vllm:num_requests_running 1\n").of("kv_cache_usage_ratio") == []


def test_case_28_the_counters_of_the_prefix_cache_are_tokens_that_add_up(shared: Path) -> None:
    with (case(shared, 28) / "samples.csv").open() as file:
        for row in csv.DictReader(file):
            found = read(
                f"vllm:prefix_cache_queries_total {row['queries']}\nvllm:prefix_cache_hits_total {row['hits']}\n"
                f"vllm:num_preemptions_total {row['preemptions']}\n"
            )
            (hits,), (queries,) = values(found, "prefix_cache_hits_total"), values(found, "prefix_cache_queries_total")
            assert (hits, queries) == (float(row["hits"]), float(row["queries"]))
            assert {r.unit for r in found.of("prefix_cache_hits_total")} == {"tokens"}
            assert found.value("preemptions_total") == float(row["preemptions"])


def test_case_28_a_hit_rate_of_minus_one_is_not_available() -> None:
    found = read("vllm:gpu_prefix_cache_hit_rate -1\n")
    assert found.value("prefix_cache_hit_ratio", tier="device") is None
    assert found.drops == {"out_of_range": 1}


def test_case_30_the_mean_of_triton_comes_from_sum_and_count_in_seconds(shared: Path) -> None:
    path = case(shared, 30)
    wanted, first, last = expected(path), page(path, "t0"), page(path, "t60")
    for model in ("a", "b"):
        seconds, requests = (
            values(last, name, model=model)[0] - values(first, name, model=model)[0]
            for name in ("e2e_seconds_sum", "e2e_seconds_count")
        )
        assert seconds / requests * 1000 == pytest.approx(wanted[f"{model}_mean_ms"])
    assert {r.canonical for r in first.rows if r.name == "nv_inference_exec_count"} == {"inferences_executed_total"}
    (quantile,) = (r for r in first.rows if r.labels.get("quantile"))
    assert (quantile.canonical, quantile.value) == (None, wanted["a_p99"])


def test_case_42_buckets_keep_the_bounds_of_their_own_version(shared: Path) -> None:
    found = page(case(shared, 42), "mixed")
    bounds = {pod: [row.labels["le"] for row in found.of("e2e_seconds_bucket", pod=pod)] for pod in ("old", "new")}
    assert bounds == {"old": ["30.0", "60.0", "+Inf"], "new": ["30.0", "60.0", "120.0", "480.0", "+Inf"]}
    assert values(found, "e2e_seconds_count") == [100.0, 100.0]
