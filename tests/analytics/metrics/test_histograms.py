"""Histograms over time: layouts that meet, restarts, missing bounds (cases 42 and 60, and the captures)."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.metrics.histograms import buckets, means
from analytics.metrics.quantiles import quantiles, text, within
from collector.prometheus.identity import series_row
from collector.prometheus.series import samples_at, series_frame
from store.batch import Batch
from store.database import Database
from store.query import MetricQuery
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, span, stored

BY = ["service"]
PARTS = ("_bucket", "_sum", "_count")


def zeroed(page: str) -> str:
    """The page of the same process at its start."""
    return re.sub(r"(?m)^([^#].*) \S+$", r"\1 0", page)


def grown(folder: Path, page: Path, name: str) -> pl.DataFrame:
    written = page.read_text()
    return stored(folder, {0: zeroed(written), 60: written}, [name + part for part in PARTS])


def answers(rows: pl.DataFrame, name: str, *qs: float) -> list[dict[str, object]]:
    table = quantiles(buckets(rows, name, BY), BY, qs)
    return table.with_columns(text("s").alias("text")).to_dicts()


def test_old_and_new_bounds_meet_on_the_common_ones(shared: Path, tmp_path: Path) -> None:
    rows = grown(tmp_path, shared / "cases/42-histogram-bucket-layouts/mixed.prom", "e2e_seconds")
    found = buckets(rows, "e2e_seconds", BY)
    assert found["le"].to_list() == [30, 60, float("inf")]
    assert found["count"].to_list() == [100, 170, 200]
    assert found["merged"].all()
    p50, p99 = answers(rows, "e2e_seconds", 0.5, 0.99)
    assert p50["value"] == 30.0
    assert (p99["value"], p99["low"], p99["high"], p99["relation"], p99["text"]) == (None, 60, None, ">", "> 60 s")


def test_the_lowest_bucket_gives_an_upper_bound_only(shared: Path, tmp_path: Path) -> None:
    rows = grown(tmp_path, shared / "cases/42-histogram-bucket-layouts/fast.prom", "queue_seconds")
    (p99,) = answers(rows, "queue_seconds", 0.99)
    assert (p99["value"], p99["high"], p99["relation"], p99["text"]) == (None, 0.3, "<=", "<= 0.3 s")
    assert p99["width_ratio"] == 1


@pytest.mark.parametrize("name", ["only_inf", "zeros"])
def test_without_finite_bounds_or_observations_nothing_is_known(shared: Path, tmp_path: Path, name: str) -> None:
    (p99,) = answers(grown(tmp_path, shared / "cases/60-quantile-at-bucket-edges/cases.prom", name), name, 0.99)
    assert [p99[key] for key in ("value", "low", "high", "relation", "text")] == [None] * 5


def test_quantiles_at_the_edges_of_buckets(shared: Path, tmp_path: Path) -> None:
    page = shared / "cases/60-quantile-at-bucket-edges/cases.prom"
    p50, p90, p99 = answers(grown(tmp_path / "o", page, "overflow"), "overflow", 0.5, 0.9, 0.99)
    assert (p50["value"], p90["value"], p99["text"], p99["low"]) == (1, 10, "> 10 s", 10)
    mixed = buckets(grown(tmp_path / "m", page, "le_mix"), "le_mix", BY)
    assert mixed.select("le", "count").rows() == [(1.0, 30.0), (float("inf"), 30.0)]
    lifted = buckets(grown(tmp_path / "n", page, "nonmono"), "nonmono", BY)
    assert lifted["count"].to_list() == [50, 50, 60, 60]
    assert lifted["repaired"].all()
    bare = grown(tmp_path / "b", page, "no_buckets")
    assert buckets(bare, "no_buckets", BY).height == 0
    assert means(bare, "no_buckets", BY)["mean"].to_list() == [0.5]
    assert means(grown(tmp_path / "i", page, "only_inf"), "only_inf", BY)["mean"].to_list() == [2.0]


def test_an_overloaded_sglang_is_slower_than_its_buckets_reach(shared: Path, tmp_path: Path) -> None:
    names = [f"{name}_seconds{part}" for name in ("ttft", "itl") for part in PARTS]
    page = (shared / "data/engine_metrics/sglang_docs_llama31_8b_overloaded.prom").read_text()
    rows = stored(tmp_path, {0: page}, names)
    found = buckets(rows, "ttft_seconds", BY, from_zero=True)
    total, up_to_30 = found["count"].to_list()[-1], found.filter(pl.col("le") == 30)["count"].item()
    assert (total - up_to_30, total) == (8495, 11008)
    table = quantiles(found, BY, (0.5, 0.99)).with_columns(text("s").alias("text"))
    assert table["text"].to_list() == ["> 30 s", "> 30 s"]
    assert means(rows, "ttft_seconds", BY, from_zero=True)["mean"].item() == pytest.approx(213.65, abs=0.01)
    steps = quantiles(buckets(rows, "itl_seconds", BY, from_zero=True), BY, (0.5, 0.99))
    assert steps["value"].to_list() == pytest.approx([0.0931, 0.6323], abs=5e-5)


def bucket(le: str, values: list[float], seconds: list[float], series_id: int, **more: object) -> pl.DataFrame:
    return metric("h_bucket", times(seconds), values, series_id=series_id, labels=f'{{"le":"{le}"}}', **more)


def test_a_missing_inf_bucket_takes_the_count_and_is_flagged() -> None:
    rows = [bucket("1", [0, 50], [0, 60], 1), metric("h_count", times([0, 60]), [0, 80], series_id=2)]
    found = buckets(pl.concat(rows), "h", BY)
    assert found.select("le", "count").rows() == [(1.0, 50.0), (float("inf"), 80.0)]
    assert found["no_inf"].all()


def test_all_buckets_restart_with_the_one_that_fell() -> None:
    rows = [bucket("0.3", [5, 6], [0, 60], 1), bucket("+Inf", [100, 7], [0, 60], 2)]
    assert buckets(pl.concat(rows), "h", BY)["count"].to_list() == [6, 7]


def test_a_restart_with_other_bounds_keeps_those_that_were_there_all_the_time() -> None:
    rows = [
        bucket("30", [0, 10, 15], [0, 30, 60], 1),
        bucket("120", [9], [60], 2),
        bucket("240", [9, 18], [30, 60], 3),
        bucket("+Inf", [0, 20, 40], [0, 30, 60], 4),
    ]
    found = buckets(pl.concat(rows), "h", BY)
    assert found.select("le", "count").rows() == [(30.0, 15.0), (float("inf"), 40.0)]
    assert found["merged"].all()


def test_parts_that_saw_nothing_do_not_coarsen_the_others() -> None:
    idle = pl.concat([bucket("60", [0, 0], [0, 60], 1, instance="a"), bucket("+Inf", [0, 0], [0, 60], 2, instance="a")])
    busy = pl.concat([bucket("1", [0, 5], [0, 60], 3, instance="b"), bucket("+Inf", [0, 5], [0, 60], 4, instance="b")])
    assert buckets(pl.concat([idle, busy]), "h", BY)["le"].to_list() == [1, float("inf")]


def test_an_exponential_histogram_fills_bounds_that_come_later() -> None:
    rows = pl.concat(
        [
            bucket("1", [10, 12], [0, 60], 1),
            bucket("2", [17], [60], 2),
            bucket("4", [10, 20], [0, 60], 3),
            bucket("+Inf", [10, 20], [0, 60], 4),
        ]
    ).with_columns(kind=pl.lit("exponential_histogram"))
    found = buckets(rows, "h", BY)
    assert found.select("le", "count").rows() == [(1, 2), (2, 7), (4, 10), (float("inf"), 10)]
    assert not found["merged"].any()


def test_bounds_that_come_later_are_filled_in_what_the_store_gives_too(tmp_path: Path) -> None:
    counts = {0: {"1": 10, "4": 10, "+Inf": 10}, 60: {"1": 12, "2": 17, "4": 20, "+Inf": 20}}
    with Database(tmp_path) as database:
        for second, at_bound in counts.items():
            rows = [
                series_row("h_bucket", {"le": le, "job": "llm", "instance": "i"}, "exponential_histogram")
                for le in at_bound
            ]
            ids = np.array([row["series_id"] for row in rows], np.uint64)
            values = np.array(list(at_bound.values()), np.float64)
            frames = {
                "metric_series": series_frame(rows, at(second)),
                "metric_samples": samples_at(ids, values, at(second)),
            }
            database.append([Batch("test", frames)])
        stored_rows = database.read(MetricQuery(("h_bucket",)), span(0, 60))
    found = buckets(stored_rows, "h", BY)
    assert found.select("le", "count").rows() == [(1, 2), (2, 7), (4, 10), (float("inf"), 10)]


def test_merging_buckets_of_an_exponential_histogram_is_no_restart() -> None:
    rows = pl.concat(
        [
            bucket("1", [50, 55], [0, 60], 1),
            bucket("1.5", [60], [0], 2),
            bucket("2", [70, 80], [0, 60], 3),
            bucket("+Inf", [70, 80], [0, 60], 4),
        ]
    ).with_columns(kind=pl.lit("exponential_histogram"))
    found = dict(buckets(rows, "h", BY).select("le", "count").iter_rows())
    assert (found[1.0], found[2.0], found[float("inf")]) == (5, 10, 10)


def test_the_share_within_an_objective_lies_between_the_bounds_around_it() -> None:
    rows = pl.concat(
        [bucket("0.1", [0, 40], [0, 60], 1), bucket("1", [0, 90], [0, 60], 2), bucket("+Inf", [0, 100], [0, 60], 3)]
    )
    found = buckets(rows, "h", BY)
    at = {limit: within(found, BY, limit).row(0, named=True) for limit in (0.1, 0.5, 5.0)}
    assert [at[0.1][key] for key in ("low", "high", "share_low", "share_high")] == [0.1, 0.1, 0.4, 0.4]
    assert [at[0.5][key] for key in ("low", "high", "share_low", "share_high")] == [0.1, 1, 0.4, 0.9]
    assert [at[5.0][key] for key in ("low", "high", "share_low", "share_high")] == [1, None, 0.9, 1]


OBSERVED = st.lists(st.sampled_from([0.05, 0.2, 0.6, 3.0, 20.0, 90.0]), min_size=1, max_size=40)


@given(observed=OBSERVED, q=st.floats(0.01, 1.0))
def test_a_quantile_lies_within_its_bounds_and_so_does_the_truth(observed: list[float], q: float) -> None:
    bounds = (0.1, 0.5, 1.0, 10.0, 60.0)
    rows = [
        bucket(str(le), [0, sum(x <= le for x in observed)], [0, 60], i)
        for i, le in enumerate((*bounds, float("inf")), start=1)
    ]
    answer = quantiles(buckets(pl.concat(rows), "h", BY), BY, [q]).row(0, named=True)
    rank = max(1, -(-round(q * len(observed) * 1e9) // 10**9))
    truth = sorted(observed)[rank - 1]
    assert answer["low"] <= truth <= (answer["high"] or float("inf"))
    if answer["value"] is not None:
        assert answer["low"] <= answer["value"] <= answer["high"]


def test_quantiles_outside_0_and_1_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        quantiles(buckets(bucket("1", [0, 1], [0, 60], 1), "h", BY), BY, [0.0])
