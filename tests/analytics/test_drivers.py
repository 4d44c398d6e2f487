"""As-of join: what a request could know when it arrived."""

from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.drivers import STALE_AFTER, asked_for, join_metrics, matching, selected, stated_units, unit_of
from store.errors import UsageError
from tests.analytics.frames_of import metric, times


def arrivals(seconds: list[float], service: str | list[str] = "llm") -> pl.DataFrame:
    services = [service] * len(seconds) if isinstance(service, str) else service
    return pl.DataFrame({"ts": times(seconds), "service": services})


def joined(requests: pl.DataFrame, *series: pl.DataFrame) -> list[Any]:
    return join_metrics(requests, pl.concat(series).sort("ts"), ["m"])["m"].to_list()


def test_a_request_sees_the_last_sample_at_or_before_its_arrival() -> None:
    series = metric("m", times([10, 20, 30]), [1, 2, 3])
    assert joined(arrivals([9.9, 10, 19.9, 20, 31]), series) == [None, 1, 1, 2, 3]


def test_a_null_sample_ends_the_series() -> None:
    series = metric("m", times([10, 20, 30]), [1, None, 3])
    assert joined(arrivals([15, 25, 30]), series) == [1, None, 3]


def test_a_sample_older_than_the_limit_says_nothing() -> None:
    limit = STALE_AFTER.total_seconds()
    series = metric("m", times([0]), [7])
    assert joined(arrivals([limit, limit + 0.001]), series) == [7, None]


@pytest.mark.parametrize(("combine", "value"), [("sum", 30.0), ("mean", 15.0), ("max", 20.0)])
def test_series_of_one_service_combine_as_they_say(combine: str, value: float) -> None:
    one = metric("m", times([0, 10]), [10, 10], combine=combine)
    other = metric("m", times([5]), [20], combine=combine, series_id=2)
    assert joined(arrivals([2, 7, 12]), one, other) == [10, value, value]


def test_a_series_that_ended_leaves_the_sum_to_the_others_and_a_sum_of_none_is_missing() -> None:
    one = metric("m", times([0, 10]), [10, None])
    other = metric("m", times([0, 20]), [5, None], series_id=2)
    assert joined(arrivals([1, 11, 21]), one, other) == [15, 5, None]


def test_requests_see_their_own_service_where_services_meet() -> None:
    requests = arrivals([5, 5, 5], ["a", "b", "c"])
    series = [metric("m", times([0]), [v], service=s, series_id=v) for v, s in ((1, "a"), (2, "b"))]
    assert joined(requests, *series) == [1, 2, None]


def test_all_requests_see_a_metric_whose_services_meet_none() -> None:
    assert joined(arrivals([5, 5], ["a", "b"]), metric("m", times([0]), [3], service="dcgm")) == [3, 3]


def test_a_metric_without_samples_is_missing_for_all() -> None:
    frame = join_metrics(arrivals([1, 2]), metric("m", times([]), []), ["m", "other"])
    assert frame["m"].null_count() == frame["other"].null_count() == 2


def test_a_filter_leaves_out_series_that_disagree_and_keeps_those_that_do_not_know_it() -> None:
    series = [
        metric("m", times([0]), [i], series_id=i, labels=labels)
        for i, labels in enumerate(['{"zone": "a"}', '{"zone": "b"}', "{}"])
    ]
    kept = matching(pl.concat(series), (("zone", "a"),))
    assert kept["series_id"].to_list() == [0, 2]


def test_units_come_from_the_schema_or_the_metric_name() -> None:
    assert unit_of("input_tokens") == "tokens"
    assert unit_of("gpu_pcie_bytes_per_second") == "bytes/s"
    assert unit_of("kv_cache_usage_ratio") == "ratio"
    assert unit_of("mystery") == ""


def test_a_unit_that_the_samples_state_goes_before_the_name() -> None:
    samples = pl.DataFrame({"name": ["mystery", "mystery", "other"], "unit": ["lanes", "lanes", None]})
    stated = stated_units(samples)
    assert stated == {"mystery": "lanes"}
    assert unit_of("mystery", stated) == "lanes"
    assert unit_of("input_tokens", {"input_tokens": "odd"}) == "tokens"
    assert stated_units(pl.DataFrame()) == {}


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 2), st.none() | st.integers(0, 9)), max_size=25),
    st.lists(st.integers(0, 900), min_size=1, max_size=10),
)
def test_the_join_is_the_definition_applied_to_every_series(
    points: list[tuple[int, int, int | None]], asked: list[int]
) -> None:
    points = list({(t, s): (t, s, v) for t, s, v in points}.values())
    asked = sorted(asked)
    series = pl.concat([metric("m", times([t]), [v], series_id=s) for t, s, v in points] or [metric("m", [], [])])
    limit = STALE_AFTER // timedelta(seconds=1)
    expected: list[float | None] = []
    for at in asked:
        last = [max((p for p in points if p[1] == s and p[0] <= at), default=None) for s in range(3)]
        live = [p[2] for p in last if p is not None and p[2] is not None and at - p[0] <= limit]
        expected.append(sum(live) if live else None)
    assert join_metrics(arrivals([float(a) for a in asked]), series.sort("ts"), ["m"])["m"].to_list() == expected


def test_a_request_sees_the_replica_that_served_it_else_its_host_else_its_service() -> None:
    requests = arrivals([5, 5, 5, 5, 5], ["llm", "llm", "llm", "client", "other"]).with_columns(
        server_address=pl.Series(["a:8000", None, None, "b:8000", None]), host=pl.Series([None, "b", "z", None, "b"])
    )
    one = metric("m", times([0]), [1], combine="sum", series_id=1).with_columns(instance=pl.lit("a:8000"))
    two = metric("m", times([0]), [10], combine="sum", series_id=2).with_columns(instance=pl.lit("b:8000"))
    assert joined(requests, one, two) == [1, 10, 11, 10, None]


def test_a_counter_is_its_growth_per_second_and_a_restart_is_no_fall() -> None:
    series = metric("m_total", times([0, 10, 20, 30]), [100, 150, 20, 40])
    found = join_metrics(arrivals([5, 15, 25, 35]), series, ["m_total"])["m_total"].to_list()
    assert found == [None, 5.0, 2.0, 2.0]


def test_a_counter_that_ended_says_nothing_any_more() -> None:
    series = metric("m_total", times([0, 10, 20]), [100, 150, None])
    assert join_metrics(arrivals([15, 25]), series, ["m_total"])["m_total"].to_list() == [5.0, None]


def test_rates_of_the_series_of_one_service_add_up() -> None:
    one = metric("m_total", times([0, 10]), [0, 10])
    other = metric("m_total", times([0, 10]), [0, 30], series_id=2)
    both = pl.concat([one, other]).sort("ts")
    assert join_metrics(arrivals([12]), both, ["m_total"])["m_total"].to_list() == [4.0]


def test_labels_select_among_the_series_of_a_name() -> None:
    rx = metric("m", times([0]), [1], labels='{"type":"rx"}')
    tx = metric("m", times([0]), [2], labels='{"type":"tx"}', series_id=2)
    both = pl.concat([rx, tx]).sort("ts")
    found = join_metrics(arrivals([1]), both, ["m{type=tx}", "m{type=rx}"])
    assert found.select("m{type=tx}", "m{type=rx}").row(0) == (2.0, 1.0)


def test_a_name_alone_means_its_usual_series() -> None:
    busy = metric("gpu_utilization_ratio", times([0]), [0.9], labels='{"engine":"graphics"}', combine="mean")
    idle = metric("gpu_utilization_ratio", times([0]), [0], labels='{"engine":"encoder"}', combine="mean", series_id=2)
    both = pl.concat([busy, idle]).sort("ts")
    found = join_metrics(arrivals([1]), both, ["gpu_utilization_ratio"])
    assert found["gpu_utilization_ratio"].to_list() == [0.9]


def test_a_driver_is_split_into_name_and_labels() -> None:
    assert selected('m{a=x,b="y z"}') == ("m", (("a", "x"), ("b", "y z")))
    assert selected("m") == ("m", ())
    assert selected("m{}") == ("m", ())
    with pytest.raises(UsageError) as refused:
        selected("m{a}")
    assert "name{label=value" in refused.value.hint


def test_the_unit_of_a_counter_is_per_second() -> None:
    assert unit_of("host_softirqs_total{type=NET_RX}") == "1/s"
    assert unit_of("prompt_tokens_total", {"prompt_tokens_total": "tokens"}) == "tokens/s"


def test_a_client_sees_the_metrics_of_the_machine_at_the_address_it_calls() -> None:
    requests = arrivals([5, 5], ["web", "web"]).with_columns(
        server_address=pl.Series(["10.0.0.1:8000", "10.0.0.2:8000"])
    )
    series = [metric("m", times([0]), [v], service="node", series_id=v, instance=f"10.0.0.{v}:9100") for v in (1, 2)]
    assert joined(requests, *series) == [1, 2]


def test_a_ratio_of_two_counters_is_of_the_last_minute_and_stands_while_nothing_is_asked() -> None:
    seconds = [0, 30, 60, 90, 120, 150]
    hits = metric("prefix_cache_hits_total", times(seconds), [0, 50, 100, 100, 100, 100], series_id=1)
    queries = metric("prefix_cache_queries_total", times(seconds), [0, 100, 200, 300, 300, 300], series_id=2)
    samples = pl.concat([hits, queries]).sort("ts")
    found = join_metrics(arrivals([10, 31, 91, 121, 200]), samples, ["prefix_cache_hit_ratio"])
    assert found["prefix_cache_hit_ratio"].to_list() == [None, 0.5, 0.25, 0.0, 0.0]
    assert asked_for(["prefix_cache_hit_ratio", "m{a=b}"]) == (
        "prefix_cache_hit_ratio", "prefix_cache_hits_total", "prefix_cache_queries_total", "m"
    )  # fmt: skip
