"""Values of an entity now: sums, means with their hottest, dead workers (cases 26, 27, 41)."""

import csv
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from analytics.drivers import STALE_AFTER
from analytics.metrics.combine import combined, frozen_workers, latest
from analytics.metrics.counters import by_entity, increase
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, span, stored


def test_engines_of_one_server_add_up_and_their_ratios_do_not(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/26-vllm-data-parallel-engines"
    names = ["requests_running", "requests_waiting", "kv_cache_usage_ratio", "generation_tokens_total"]
    rows = stored(tmp_path, {t: (case / f"t{t}.prom").read_text() for t in (0, 10)}, names)
    expected = json.loads((case / "expected.json").read_text())
    found = {row["name"]: row for row in combined(latest(rows, at(10)), ["service"], "engine").to_dicts()}
    assert found["requests_running"]["value"] == expected["running"]
    assert found["requests_waiting"]["value"] == expected["waiting"]
    kv = found["kv_cache_usage_ratio"]
    assert (kv["value"], kv["max"]) == pytest.approx((expected["kv_mean"], expected["kv_max"]))
    assert (kv["hottest"], found["requests_waiting"]["hottest"], kv["series"]) == ("3", "3", 4)
    tokens = rows.filter(pl.col("name") == "generation_tokens_total")
    grown = by_entity(increase(tokens, span(0, 10)), ["service"])
    assert grown["per_second"].item() == expected["tokens_per_s"]


@pytest.mark.parametrize("page", ["old", "both", "new"])
def test_a_metric_under_two_names_counts_once(shared: Path, tmp_path: Path, page: str) -> None:
    case = shared / "cases/27-vllm-metric-renames"
    rows = stored(tmp_path, {0: (case / f"{page}.prom").read_text()}, ["kv_cache_usage_ratio"])
    found = combined(latest(rows, at(1)), ["service"])
    assert found.select("value", "series").rows() == [(0.4, 1)]


def test_a_gauge_of_a_dead_worker_is_told_from_those_that_move(shared: Path) -> None:
    lines = list(csv.DictReader((shared / "cases/41-multiprocess-stale-pids/inflight.csv").open()))
    rows = pl.concat(
        metric(
            "inflight",
            times([float(one["t_s"]) for one in lines if one["pid"] == pid]),
            [float(one["value"]) for one in lines if one["pid"] == pid],
            series_id=int(pid),
            labels=f'{{"app":"x","pid":"{pid}"}}',
        )
        for pid in ("101", "202")
    )
    found = frozen_workers(rows, at(1800))
    assert found["hint"].to_list() == ["stale pid 101 (unchanged 30 min while others move)"]
    living = latest(rows, at(1800)).join(found, on="series_id", how="anti")
    assert combined(living, ["service"])["value"].item() == 4
    assert frozen_workers(rows, at(300)).height == 0


def test_workers_that_all_stand_still_are_idle_not_dead() -> None:
    rows = pl.concat(
        metric("inflight", times([0, 900]), [3, 3], series_id=i, labels=f'{{"pid":"{i}"}}') for i in (1, 2)
    )
    assert frozen_workers(rows, at(900)).height == 0


def test_series_that_ended_or_went_silent_no_longer_count() -> None:
    silent = STALE_AFTER.total_seconds() + 1
    rows = pl.concat(
        [
            metric("g", times([0]), [1], series_id=1),
            metric("g", times([silent - 10, silent]), [2, None], series_id=2),
            metric("g", times([silent - 10]), [4], series_id=3),
            metric("g", times([silent + 60]), [8], series_id=4),
        ]
    )
    assert combined(latest(rows, at(silent)), ["service"])["value"].to_list() == [4]
    assert combined(latest(rows, at(silent), timedelta(hours=1)), ["service"])["value"].to_list() == [5]


def test_an_empty_label_is_no_label() -> None:
    pods = {1: "", 2: "a"}
    rows = pl.concat(metric("g", times([0]), [i], series_id=i, labels=f'{{"pod":"{pod}"}}') for i, pod in pods.items())
    found = combined(latest(rows, at(0)), ["pod"]).sort("pod")
    assert found.select("pod", "value").rows() == [(None, 1.0), ("a", 2.0)]
