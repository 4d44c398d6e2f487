"""Pushed series: what is sent to the store, when, and what of it again."""

import json
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.prometheus.exposition import Series
from collector.prometheus.series import Resolver
from collector.push.batch import Pushed, committed, push
from collector.push.columns import STALE_NAN, Points
from collector.push.series import IDLE, PushedSeries
from store.database import Database

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
T0_US = int(AT.timestamp()) * 10**6
SECOND = 10**6


def send(series: PushedSeries, *points: tuple[str, int, float], at: datetime = AT, **labels: str) -> Pushed:
    """Push (name, seconds after AT, value) of one target."""
    with series.lock:
        slots = []
        for name, _, _ in points:
            key = (name, *sorted(labels.items()))
            slot = series.known.get(key)
            if slot is None:
                slot = series.learn(key, Series(name, {"job": "j", "instance": "i", **labels}, "gauge"))
            slots.append(slot)
        times, values = [T0_US + s * SECOND for _, s, _ in points], [value for *_, value in points]
        columns = Points(np.array(slots, np.int64), np.array(times, np.int64), np.array(values, np.float64))
        return push(series, "test", columns, at, {})


def canonical(pushed: Pushed) -> dict[str, Any]:
    frame = pushed.batch.frames.get("metric_series")
    return dict(frame.select("name", "canonical").iter_rows()) if frame is not None else {}


def test_rows_of_series_go_along_until_one_batch_with_them_is_committed() -> None:
    series = PushedSeries()
    lost, again = send(series, ("a", 0, 1.0)), send(series, ("a", 1, 2.0))
    assert "metric_series" in lost.batch.frames
    assert "metric_series" in again.batch.frames
    committed(series, again)
    assert "metric_series" not in send(series, ("a", 2, 3.0)).batch.frames


def test_a_request_once_more_stores_nothing_twice(tmp_path: Any) -> None:
    series = PushedSeries()
    with Database(tmp_path) as database:
        for _ in range(2):
            pushed = send(series, ("a", 0, 1.0), ("a", 1, 2.0))
            receipts = database.append([pushed.batch])
            committed(series, pushed)
        assert (receipts[0].stored["metric_samples"], receipts[0].duplicates["metric_samples"]) == (0, 2)


def test_a_stale_marker_is_a_null_and_any_other_nan_is_counted_too() -> None:
    assert struct.pack(">d", STALE_NAN).hex() == "7ff0000000000002"
    pushed = send(PushedSeries(), ("a", 0, STALE_NAN), ("a", 1, float("nan")), ("a", 2, 1.0))
    assert pushed.batch.frames["metric_samples"]["value"].to_list() == [None, None, 1.0]
    assert pushed.batch.drops == {"not_a_number": 1}
    assert pushed.refused == {}


def test_times_out_of_range_are_refused_and_counted() -> None:
    pushed = send(PushedSeries(), ("a", 0, 1.0), ("a", 7200, 1.0), ("a", -(10**9), 1.0))
    assert pushed.refused == {"time_out_of_range": 2}
    assert pushed.samples == 1


def test_the_rules_of_presets_hold_for_what_is_pushed() -> None:
    series = PushedSeries()
    pushed = send(series, ("vllm:kv_cache_usage_perc", 0, 0.5), ("DCGM_FI_DEV_POWER_USAGE", 0, 9e15))
    rows = {row["name"]: row for row in pushed.batch.frames["metric_series"].iter_rows(named=True)}
    assert rows["vllm:kv_cache_usage_perc"]["canonical"] == "kv_cache_usage_ratio"
    assert pushed.batch.frames["metric_samples"]["value"].to_list() == [0.5, None]
    assert sum(pushed.batch.drops.values()) == 1


def test_an_old_name_yields_to_a_new_one_of_the_same_target_though_it_came_in_an_earlier_request() -> None:
    series = PushedSeries()
    old, new = "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"
    first = send(series, (old, 0, 0.4))
    committed(series, first)
    assert canonical(first) == {old: "kv_cache_usage_ratio"}
    first_id = first.batch.frames["metric_series"]["series_id"][0]
    send(series, (new, 0, 0.4), job="other")
    second = send(series, (new, 1, 0.5))
    ends = second.batch.frames["metric_samples"].filter(pl.col("value").is_null())
    assert ends["series_id"].to_list() == [first_id]
    assert ends["ts"].to_list() == [AT.replace(tzinfo=None) + timedelta(microseconds=1)]
    committed(series, second)
    third = send(series, (old, 2, 0.4))
    assert canonical(third) == {old: None}
    assert third.batch.frames["metric_series"]["series_id"].to_list() != [first_id]


PUSHED = st.lists(
    st.tuples(
        st.sampled_from(["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:num_running_reqs"]),
        st.sampled_from(["", "0", "1"]),
        st.sampled_from(["", "0", "1"]),
    ),
    max_size=8,
    unique=True,
)


@settings(deadline=None)  # the first one reads the presets
@given(PUSHED, st.integers(0, 8))
def test_series_in_two_requests_mean_what_they_mean_in_one(pushed: list[tuple[str, str, str]], cut: int) -> None:
    sent = [Series(name, {"engine": engine, "tp_rank": rank}, "gauge") for name, engine, rank in pushed]
    series = PushedSeries()
    slots = []
    for part in (sent[:cut], sent[cut:]):
        slots += [series.learn(one, one) for one in part]
        series.settle()
    whole = Resolver().resolve(sent)
    assert series.columns.ids[slots].tolist() == whole.ids.tolist()
    assert [series.at(slot).row["canonical"] for slot in slots] == [whole.rows[i]["canonical"] for i in whole.ids]


def test_a_device_under_the_newer_name_takes_over_though_that_name_was_there_for_another_device() -> None:
    series = PushedSeries()
    old, new = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
    committed(series, send(series, (old, 0, 1.0), gpu="0"))
    committed(series, send(series, (new, 0, 1.0), gpu="3"))
    kept = series.columns.ids[0]
    committed(series, send(series, (new, 1, 1.0), gpu="0"))
    assert series.at(0).row["canonical"] is None
    assert series.columns.ids[0] != kept


def test_a_name_that_fell_silent_no_longer_takes_the_place_of_another() -> None:
    series = PushedSeries()
    old, new = "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"
    committed(series, send(series, (old, 0, 0.4), (new, 0, 0.4)))
    for turn in range(1, 4):
        at = AT + turn * IDLE
        pushed = send(series, (old, int(IDLE.total_seconds()) * turn, 0.4), at=at)
    assert canonical(pushed) == {old: "kv_cache_usage_ratio"}
    assert len(series) == 1


def test_slots_of_silent_series_are_used_again_and_late_commits_do_not_describe_the_new_ones() -> None:
    series = PushedSeries()
    early = send(series, ("a", 0, 1.0))
    later = AT + 3 * IDLE
    send(series, ("b", 1, 1.0), at=later)
    third = send(series, ("c", 2, 1.0), at=later)
    committed(series, early)
    assert canonical(third) == {"c": None}
    again = send(series, ("b", 3, 1.0), ("c", 3, 1.0), at=later)
    assert set(canonical(again)) == {"b", "c"}


@pytest.mark.parametrize(("start_s", "zeros"), [(-30, 1), (-7200, 0), (5, 0)])
def test_a_series_that_started_lately_starts_with_a_zero_sample(start_s: int, zeros: int) -> None:
    series = PushedSeries()
    with series.lock:
        slot = series.learn("a", Series("a_total", {}, "counter"))
        one = [np.array([x], np.int64) for x in (slot, T0_US, T0_US + start_s * SECOND)]
        pushed = push(series, "test", Points(one[0], one[1], np.array([7.0]), one[2]), AT, {})
    frame = pushed.batch.frames["metric_samples"]
    assert frame.height == 1 + zeros
    assert (
        frame.filter(pl.col("value") == 0)["ts"].to_list()
        == [AT.replace(tzinfo=None) + timedelta(seconds=start_s)] * zeros
    )
    committed(series, pushed)
    with series.lock:
        after = push(series, "test", Points(one[0], one[1] + SECOND, np.array([8.0]), one[2]), AT, {})
    assert after.batch.frames["metric_samples"].height == 1


def test_a_type_that_comes_later_is_sent_to_the_store() -> None:
    series = PushedSeries()
    with series.lock:
        slot = series.learn("a", Series("a", {"x": "1"}, "unknown"))
    points = Points(np.array([slot]), np.array([T0_US]), np.array([1.0]))
    with series.lock:
        first = push(series, "test", points, AT, {})
    committed(series, first)
    with series.lock:
        series.retype(lambda _: "gauge")
        second = push(series, "test", points, AT, {})
    kinds = [p.batch.frames["metric_series"].row(0, named=True)["kind"] for p in (first, second)]
    assert kinds == [None, "gauge"]
    assert json.loads(second.batch.frames["metric_series"]["labels"][0]) == {"x": "1"}
