"""Growth of counters through restarts, dips, gaps and churn (cases 05, 09, 28, 62)."""

import csv
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.metrics import counters
from store.window import Window
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, span, stored

POINT = st.tuples(st.integers(0, 5), st.one_of(st.none(), st.floats(-1e3, 1e6), st.just(float("nan"))))
SERIES = st.lists(POINT, min_size=1, max_size=12)


def counted(values: list[tuple[float, float | None]], series_id: int = 1, **more: object) -> pl.DataFrame:
    seconds, levels = zip(*values, strict=True)
    return metric("c_total", times(list(seconds)), list(levels), series_id=series_id, **more)


def by_pod(path: Path) -> pl.DataFrame:
    rows = list(csv.DictReader(path.open()))
    pods = sorted({row["pod"] for row in rows})
    return pl.concat(
        counted([(float(r["t_s"]), float(r["value"])) for r in rows if r["pod"] == pod], i, labels=f'{{"pod":"{pod}"}}')
        for i, pod in enumerate(pods)
    )


def test_a_restart_counts_from_zero_and_a_new_pod_adds_what_it_was_seen_to_add(shared: Path) -> None:
    case = shared / "cases/09-counter-reset-and-pod-churn"
    expected = json.loads((case / "expected.json").read_text())
    grown = counters.increase(by_pod(case / "samples.csv"), span(0, 120))
    pods = counters.by_entity(grown, ["pod"])
    assert dict(pods.select("pod", "increase").iter_rows()) == {"a": expected["a"], "b": expected["b"]}
    whole = counters.by_entity(grown, ["service"]).row(0, named=True)
    assert (whole["increase"], whole["resets"], whole["series"], whole["span_s"]) == (expected["total"], 1, 2, 120)
    assert whole["per_second"] == expected["total"] / 120


def test_a_dip_is_told_beside_what_prometheus_would_make_of_it(shared: Path) -> None:
    grown = counters.increase(by_pod(shared / "cases/09-counter-reset-and-pod-churn/dip.csv"))
    row = grown.row(0, named=True)
    assert (row["increase"], row["prometheus_increase"], row["resets"], row["dips"]) == (4, 1004, 0, 1)
    assert "decreased by 0.2 %" in counters.hints(grown)[0]


def test_growth_over_a_restart_comes_from_the_pages_of_the_engine(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/05-created-series"
    pages = {0: "t0.prom", 30: "t30.prom", 60: "t60-restarted.prom"}
    rows = stored(tmp_path, {t: (case / f).read_text() for t, f in pages.items()}, ["generation_tokens_total"])
    expected = json.loads((case / "expected.json").read_text())["increase_0_60"]
    found = counters.by_entity(counters.increase(rows, span(0, 60)), ["engine"])
    assert dict(found.select("engine", "increase").iter_rows()) == expected
    first = counters.by_entity(counters.increase(rows, span(0, 30)), ["engine"])
    assert first["per_second"].to_list() == [5, 5]


def test_the_prefix_hit_ratio_is_null_while_idle_and_right_over_a_restart(shared: Path) -> None:
    case = shared / "cases/28-prefix-cache-ratio"
    rows = list(csv.DictReader((case / "samples.csv").open()))
    seconds = times([float(row["t_s"]) for row in rows])
    steps = {n: counters.steps(metric(n, seconds, [float(r[n]) for r in rows])) for n in ("queries", "hits")}
    both = steps["hits"].join(steps["queries"], on="ts", suffix="_queries").drop_nulls("step")
    ratio = both.select(counters.share(pl.col("step"), pl.col("step_queries")))
    assert ratio.to_series().to_list() == json.loads((case / "expected.json").read_text())["ratio"]


def test_one_sample_is_no_growth_unless_the_whole_life_is_asked_for() -> None:
    once = counted([(0, 40)])
    assert counters.increase(once)["increase"].to_list() == [None]
    assert counters.rate(once)["per_second"].to_list() == [None]
    assert counters.increase(once, from_zero=True)["increase"].to_list() == [40]
    assert counters.increase(counted([(0, 0), (10, 40)]))["increase"].to_list() == [40]


def test_a_rate_over_a_gap_takes_the_time_that_passed() -> None:
    row = counters.rate(counted([(0, 0), (15, 15), (30, None), (1830, 1830)])).row(0, named=True)
    assert (row["increase"], row["span_s"], row["per_second"]) == (1830, 1830, 1)


def test_values_that_are_not_available_do_not_spread() -> None:
    rows = counted([(0, 1), (10, float("nan")), (20, float("inf")), (30, None), (40, 5)])
    assert counters.increase(rows)["increase"].to_list() == [4]


def test_a_sample_before_the_window_is_the_base_of_its_first_step() -> None:
    row = counters.increase(counted([(0, 10), (60, 70), (120, 100)]), span(60, 120)).row(0, named=True)
    assert (row["increase"], row["n"], row["span_s"]) == (90, 2, 120)


def test_series_that_restart_together_are_taken_to_restart_at_once() -> None:
    few, many = counted([(0, 5), (10, 6)], 1), counted([(0, 100), (10, 7)], 2)
    together = pl.DataFrame({"series_id": pl.Series([1, 2], dtype=pl.UInt64), "member": ["m", "m"]})
    grown = counters.increase(pl.concat([few, many]), together=together)
    assert dict(grown.select("series_id", "increase").iter_rows()) == {1: 6, 2: 7}


@pytest.mark.parametrize(("part", "whole", "share"), [(1, 4, 0.25), (0, 0, None), (None, 3, None), (5, 4, 1.0)])
def test_a_share_is_within_0_and_1_or_null(part: float | None, whole: float, share: float | None) -> None:
    frame = pl.DataFrame({"p": [part], "w": [whole]}, {"p": pl.Float64, "w": pl.Float64})
    assert frame.select(counters.share(pl.col("p"), pl.col("w"))).item() == share


def walk(points: list[tuple[int, float | None]], series_id: int) -> pl.DataFrame:
    seconds, rows = 0, []
    for gap, value in points:
        seconds += gap + 1
        rows.append((float(seconds), value))
    return counted(rows, series_id)


@given(points=SERIES, cut=st.integers(1, 70))
def test_growth_over_adjacent_windows_adds_up(points: list[tuple[int, float | None]], cut: int) -> None:
    rows = walk(points, 1)
    sums = [
        counters.increase(rows, window)["increase"].sum()
        for window in (Window(at(0), at(cut)), Window(at(cut), at(cut + 100)), Window(at(0), at(cut + 100)))
    ]
    assert sums[0] + sums[1] == pytest.approx(sums[2], rel=1e-9, abs=1e-6)


@given(points=SERIES)
def test_growth_is_never_negative_and_never_more_than_prometheus_says(points: list[tuple[int, float | None]]) -> None:
    row = counters.increase(walk(points, 1))
    for growth, peer in row.select("increase", "prometheus_increase").drop_nulls().iter_rows():
        assert 0 <= growth <= peer * (1 + 1e-9) + 1e-6


@given(first=SERIES, second=SERIES, seed=st.integers(0, 99))
def test_the_order_of_rows_and_series_does_not_matter(
    first: list[tuple[int, float | None]], second: list[tuple[int, float | None]], seed: int
) -> None:
    rows = pl.concat([walk(first, 1), walk(second, 2)])
    mixed = rows.sample(fraction=1.0, shuffle=True, seed=seed)
    assert_frame_equal(counters.increase(rows), counters.increase(mixed))


def test_no_rows_give_no_growth() -> None:
    empty = counted([(0, 1)]).clear()
    assert counters.increase(empty).height == 0
    assert counters.by_entity(counters.increase(empty), ["service"]).height == 0
    assert counters.increase(counted([(0, 1)]), Window(at(60), at(60) + timedelta(seconds=1))).height == 0
