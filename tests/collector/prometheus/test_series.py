"""Pages to frames: identities, canonical names, values that are not available."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.presets.catalog import lookup
from collector.presets.names import key
from collector.prometheus.exposition import Exposition, Series
from collector.prometheus.identity import series_id, series_row, with_target
from collector.prometheus.series import Resolver, to_batch
from collector.prometheus.text import PageMemo, parse
from store.batch import Batch
from store.database import Database
from store.query import MetricQuery
from store.window import Window

NOW = datetime(2026, 11, 30, 0, 0, 30, tzinfo=UTC)
TARGET = {"job": "j", "instance": "i:1"}
LABELS = st.dictionaries(st.sampled_from("abc"), st.text(max_size=3), max_size=3)


def case(shared: Path, name: str, file: str) -> bytes:
    return (shared / "cases" / name / file).read_bytes()


def expected(shared: Path, name: str) -> Any:
    return json.loads(case(shared, name, "expected.json"))


def read(tmp_path: Path, batches: list[Batch], *names: str) -> pl.DataFrame:
    with Database(tmp_path) as database:
        database.append(batches)
        return database.read(MetricQuery(names), Window(NOW - timedelta(days=1), NOW + timedelta(days=1)))


def batch(body: bytes, at: datetime = NOW) -> Batch:
    return to_batch("test", parse(body), at, TARGET, honor_labels=False)


def test_an_id_is_the_same_in_every_process() -> None:
    assert series_id("up", {"job": "j", "instance": "i:1"}) == 3895222716924031665


@given(st.text(max_size=3), LABELS, st.text(max_size=3), LABELS)
def test_ids_differ_where_name_or_labels_differ(
    name: str, labels: dict[str, str], other: str, others: dict[str, str]
) -> None:
    same = (name, labels) == (other, others)
    assert (series_id(name, labels) == series_id(other, others)) == same


def test_the_order_of_labels_does_not_matter() -> None:
    assert series_id("a", {"x": "1", "y": "2"}) == series_id("a", {"y": "2", "x": "1"})


def test_a_clashing_label_is_kept_as_exported() -> None:
    scraped = {"pod": "llm-0", "exported_pod": "old", "job": "", "gpu": "0"}
    target = {"job": "dcgm", "pod": "exporter"}
    assert with_target(scraped, target, honor=False) == {
        "gpu": "0",
        "exported_pod": "old",
        "job": "dcgm",
        "pod": "exporter",
        "exported_exported_pod": "llm-0",
    }
    assert with_target(scraped, target, honor=True) == {**scraped}


def test_a_row_of_a_known_metric_carries_meaning_and_conversion() -> None:
    row = series_row("DCGM_FI_DEV_FB_FREE", {"gpu": "0", "job": "dcgm"}, "gauge")
    assert (row["canonical"], row["scale"], row["unit"]) == ("gpu_memory_bytes", 1048576.0, "bytes")
    assert json.loads(row["labels"]) == {"gpu": "0", "job": "dcgm", "state": "free"}
    assert row["service"] == "dcgm"


def test_a_row_of_an_unknown_metric_has_nulls_and_the_unit_given() -> None:
    row = series_row("room_temperature", {"service": "hall"}, unit="celsius")
    assert (row["canonical"], row["semantic"], row["scale"], row["job"]) == (None, None, None, None)
    assert (row["unit"], row["service"]) == ("celsius", "hall")


def test_a_workload_is_found_whichever_way_the_pod_label_comes(shared: Path) -> None:
    page = parse(case(shared, "11-exported-labels", "metrics.prom"))
    rows = Resolver(TARGET).resolve(page.series).rows.values()
    found: dict[str, list[int]] = {}
    for labels in (json.loads(row["labels"]) for row in rows):
        pod = labels.get("workload_pod")
        key = f"{labels['workload_namespace']}/{pod}" if pod else "unallocated"
        found.setdefault(key, []).append(int(labels["gpu"]))
    assert found == expected(shared, "11-exported-labels")


def test_blank_values_of_dcgm_become_null_and_are_counted(shared: Path, tmp_path: Path) -> None:
    wanted = expected(shared, "13-dcgm-blank-sentinels")
    made = batch(case(shared, "13-dcgm-blank-sentinels", "metrics.prom"))
    assert made.drops == {"blank_value": wanted["null_count"]}
    frame = read(tmp_path, [made], *wanted["mean"])
    assert frame["value"].null_count() == wanted["null_count"]
    means = frame.group_by("name").agg(pl.col("value").mean())
    assert dict(means.iter_rows()) == pytest.approx(wanted["mean"])


def test_a_memory_temperature_without_permission_is_null(shared: Path) -> None:
    made = batch((shared / "data/gpu_metrics_text/dcgm_exporter_readme_1.prom").read_bytes())
    assert made.drops == {"blank_value": 1}
    assert made.frames["metric_samples"]["value"].to_list() == [139.0, 405.0, None]


def test_a_utilisation_above_100_percent_is_null_and_counted(shared: Path, tmp_path: Path) -> None:
    wanted = expected(shared, "14-gpu-util-out-of-range")
    rows = csv.DictReader(case(shared, "14-gpu-util-out-of-range", "util.csv").decode().splitlines())
    batches = [
        batch(f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {r["value"]}\n'.encode(), NOW + timedelta(seconds=int(r["t_s"])))
        for r in rows
    ]
    assert sum(b.drops.get("out_of_range", 0) for b in batches) == wanted["rejected"]
    values = read(tmp_path, batches, "gpu_utilization_ratio")["value"]
    assert values.mean() == pytest.approx(wanted["mean"] / 100)
    assert values.max() == pytest.approx(wanted["max"] / 100)


def test_nvlink_bandwidth_is_a_rate_in_megabytes(shared: Path, tmp_path: Path) -> None:
    wanted = expected(shared, "15-nvlink-bandwidth-is-a-gauge")
    rows = list(csv.DictReader(case(shared, "15-nvlink-bandwidth-is-a-gauge", "samples.csv").decode().splitlines()))
    assert {r["type"] for r in rows if r["metric"].endswith("TOTAL")} == {"counter"}
    alone, both = tmp_path / "alone", tmp_path / "both"
    pages = [
        (f"# TYPE {r['metric']} {r['type']}\n{r['metric']} {r['value']}\n".encode(), int(r["t_s"]))
        for r in rows
        if r["metric"].endswith("TOTAL")
    ]
    batches = [batch(body, NOW + timedelta(seconds=t)) for body, t in pages]
    assert set(batches[0].frames["metric_series"]["semantic"]) == {"rate"}
    single = read(alone, batches, "gpu_nvlink_bytes_per_second")["value"].mean()
    assert single == pytest.approx(wanted["GBps"] * 1e9)
    whole = "".join(f"{r['metric']} {r['value']}\n" for r in rows if r["t_s"] == "0").encode()
    summed = read(both, [batch(whole)], "gpu_nvlink_bytes_per_second")["value"].sum()
    assert summed == pytest.approx(19.5e9)
    assert summed == pytest.approx(single, rel=0.01)


@pytest.mark.parametrize("file", ["old.prom", "new.prom", "dev.prom"])
def test_pcie_traffic_has_one_unit_in_every_version(shared: Path, tmp_path: Path, file: str) -> None:
    made = batch(case(shared, "16-pcie-units-and-type-by-version", file))
    frame = read(tmp_path, [made], "gpu_pcie_bytes_per_second")
    assert frame["value"].to_list() == [expected(shared, "16-pcie-units-and-type-by-version")["GBps"] * 1e9]
    assert made.frames["metric_series"]["semantic"].to_list() == ["rate"]
    assert json.loads(frame["labels"][0])["direction"] == "tx"


def test_engines_of_one_server_add_up_and_ratios_do_not(shared: Path, tmp_path: Path) -> None:
    name, wanted = "26-vllm-data-parallel-engines", expected(shared, "26-vllm-data-parallel-engines")
    batches = [
        batch(case(shared, name, "t0.prom")),
        batch(case(shared, name, "t10.prom"), NOW + timedelta(seconds=10)),
    ]
    names = ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "generation_tokens_total")
    frame = read(tmp_path, batches, *names)
    assert dict(frame.select("name", "combine").unique().iter_rows()) == {
        "requests_running": "sum",
        "requests_waiting": "sum",
        "kv_cache_usage_ratio": "mean",
        "generation_tokens_total": "sum",
    }
    values = {name: frame.filter(pl.col("name") == name)["value"] for name in names}
    assert values["requests_running"].sum() == wanted["running"]
    assert values["requests_waiting"].sum() == wanted["waiting"]
    assert values["kv_cache_usage_ratio"].mean() == pytest.approx(wanted["kv_mean"])
    assert values["kv_cache_usage_ratio"].max() == wanted["kv_max"]
    tokens = frame.filter(pl.col("name") == "generation_tokens_total").group_by("ts").agg(pl.col("value").sum())
    first, last = tokens.sort("ts")["value"]
    assert (last - first) / 10 == wanted["tokens_per_s"]


@pytest.mark.parametrize("files", [["old.prom"], ["both.prom"], ["new.prom"], ["old.prom", "both.prom", "new.prom"]])
def test_a_renamed_metric_counts_once_before_during_and_after_the_upgrade(
    shared: Path, tmp_path: Path, files: list[str]
) -> None:
    wanted = expected(shared, "27-vllm-metric-renames")
    resolver_free = [
        batch(case(shared, "27-vllm-metric-renames", file), NOW + timedelta(minutes=i)) for i, file in enumerate(files)
    ]
    names = ("kv_cache_usage_ratio", "itl_seconds_count", "itl_seconds_sum")
    counters = ("prefix_cache_queries_total", "prefix_cache_hits_total")
    frame = read(tmp_path, resolver_free, *names, *counters)
    sums = frame.group_by("ts", "name").agg(pl.col("value").sum())
    assert sums.height == len(files) * 5
    for name, value in zip((*names, *counters), (0.4, 100, 3.0, 4000, 1000), strict=True):
        assert sums.filter(pl.col("name") == name)["value"].to_list() == pytest.approx([value] * len(files))
    assert wanted == {"kv": 0.4, "itl_count": 100, "itl_mean": 0.03, "hit_ratio": 0.25}


def test_the_old_name_stays_readable_by_its_own_name(shared: Path, tmp_path: Path) -> None:
    made = batch(case(shared, "27-vllm-metric-renames", "both.prom"))
    assert read(tmp_path, [made], "vllm:gpu_cache_usage_perc")["value"].to_list() == [0.4]


def test_what_a_router_repeats_of_its_engines_is_not_canonical(tmp_path: Path) -> None:
    made = batch(b'vllm:num_requests_running{server="http://a"} 3\nvllm:num_requests_running{engine="0"} 4\n')
    assert read(tmp_path, [made], "requests_running")["value"].to_list() == [4.0]


def test_nan_is_null_and_infinity_stays() -> None:
    made = batch(b"a NaN\nb +Inf\n")
    assert made.frames["metric_samples"]["value"].to_list() == [None, float("inf")]
    assert made.drops == {}


def test_stated_times_are_kept_and_impossible_ones_refused(shared: Path) -> None:
    multi = batch(case(shared, "06-timestamps-ms-vs-s", "multi.prom"))
    assert multi.frames["metric_samples"]["ts"].dt.second().to_list() == [0, 4, 8]
    stale = batch(case(shared, "06-timestamps-ms-vs-s", "stale.prom"))
    assert stale.frames["metric_samples"]["ts"].to_list() == [datetime(2026, 11, 29, 18)]
    wrong = batch(b"a 1 1795996800\nb 1 1795996800000000\nc 1 99999999999999999999999\nd 1\n")
    assert wrong.drops == {"time_out_of_range": 3}
    assert wrong.frames["metric_series"]["name"].to_list() == ["d"]


def test_lines_that_could_not_be_read_are_counted_in_the_batch() -> None:
    assert batch(b"a 1\nb x\n").drops == {"unreadable_line": 1}


def test_first_ts_is_the_earliest_sample_of_a_series() -> None:
    made = batch(b"g 12 1795996804000\ng 10 1795996800000\n")
    assert made.frames["metric_series"]["first_ts"].to_list() == [datetime(2026, 11, 30)]


def test_a_page_without_samples_is_a_batch_without_frames() -> None:
    assert batch(b"").frames == {}


def canonical(resolver: Resolver, page: Exposition) -> list[str | None]:
    resolved = resolver.resolve(page.series)
    return [resolved.rows[i]["canonical"] for i in resolved.ids.tolist()]


def test_parts_of_a_push_are_judged_with_all_that_came_before() -> None:
    old, new = parse(b"vllm:gpu_cache_usage_perc 0.4\n"), parse(b"vllm:kv_cache_usage_perc 0.4\n")
    resolver = Resolver(keep=True)
    assert canonical(resolver, old) == ["kv_cache_usage_ratio"]
    assert canonical(resolver, new) == ["kv_cache_usage_ratio"]
    assert canonical(resolver, old) == [None]
    resolver.forget(new.series)
    assert canonical(resolver, old) == ["kv_cache_usage_ratio"]


def test_pages_of_a_scrape_are_judged_alone() -> None:
    old, new = parse(b"vllm:gpu_cache_usage_perc 0.4\n"), parse(b"vllm:kv_cache_usage_perc 0.4\n")
    resolver = Resolver()
    assert [canonical(resolver, page) for page in (old, new, old)] == [["kv_cache_usage_ratio"]] * 3


def test_the_targets_of_one_page_are_judged_apart() -> None:
    page = parse(
        b'vllm:gpu_cache_usage_perc{job="l",instance="a"} 0.4\nvllm:gpu_cache_usage_perc{job="l",instance="b"} 0.4\n'
        b'vllm:kv_cache_usage_perc{job="l",instance="b"} 0.4\n'
    )
    assert canonical(Resolver(honor_labels=True), page) == ["kv_cache_usage_ratio", None, "kv_cache_usage_ratio"]


NAMES = ["DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] + [
    f"vllm:{name}_{part}"
    for name in ("inter_token_latency_seconds", "time_per_output_token_seconds")
    for part in ("bucket", "count")
]
MAYBE = st.sampled_from(["", "0", "1"])
RIVALS = st.lists(
    st.builds(
        lambda name, gpu, model, le: Series(name, {"gpu": gpu, "model_name": model, "le": le}, "gauge"),
        st.sampled_from(NAMES), MAYBE, MAYBE, MAYBE,
    ),
    max_size=14,
    unique_by=lambda one: (one.name, *one.labels.values()),
)  # fmt: skip


def verdicts(resolver: Resolver, series: list[Series]) -> dict[Series, tuple[int, str | None]]:
    resolved = resolver.resolve(series)
    return {one: (i, resolved.rows[i]["canonical"]) for one, i in zip(series, resolved.ids.tolist(), strict=True)}


def agree(one: Series, other: Series) -> bool:
    """Whether no label that both carry has two values; the bound of a bucket is no such label."""
    return all("" in (v := {one.labels[name], other.labels[name]}) or len(v) == 1 for name in ("gpu", "model_name"))


@settings(deadline=None)  # the first one reads the presets
@given(RIVALS)
def test_a_series_is_canonical_unless_one_of_a_newer_name_agrees_with_it(series: list[Series]) -> None:
    found = verdicts(Resolver(), series)
    for one in series:
        (preset,) = lookup(one.name)
        newer = [other for other in series if key(other.name) in preset.yields_to and agree(one, other)]
        assert (found[one][1] is None) == bool(newer)


@settings(deadline=None)  # the first one reads the presets
@given(RIVALS, st.randoms())
def test_the_order_of_series_does_not_matter(series: list[Series], random: Random) -> None:
    mixed = random.sample(series, len(series))
    assert verdicts(Resolver(), series) == verdicts(Resolver(), mixed)


@settings(deadline=None)  # the first one reads the presets
@given(RIVALS, RIVALS, st.integers(0, 14))
def test_a_page_in_two_parts_ends_as_the_whole_page(before: list[Series], series: list[Series], cut: int) -> None:
    parts = Resolver(keep=True)
    verdicts(parts, before)
    parts.forget(before)
    verdicts(parts, series[:cut])
    verdicts(parts, series[cut:])
    assert verdicts(parts, series) == verdicts(Resolver(), series)


@settings(deadline=None)  # the first one reads the presets
@given(st.lists(RIVALS, max_size=3))
def test_what_was_on_earlier_pages_does_not_matter(pages: list[list[Series]]) -> None:
    resolver = Resolver()
    for series in pages:
        assert verdicts(resolver, series) == verdicts(Resolver(), series)


def test_a_name_on_some_devices_leaves_those_of_the_others_to_an_older_name() -> None:
    page = parse(
        b'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0"} 1\nDCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="3"} 1\n'
        b'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="3"} 1\n'
    )
    assert [name is not None for name in canonical(Resolver(), page)] == [True, False, True]


def test_a_total_yields_to_the_same_divided_by_a_label_it_lacks() -> None:
    page = parse(
        b'vllm:prompt_tokens_cached_total{engine="0"} 3\nvllm:prompt_tokens_cached_total{engine="1"} 3\n'
        b'vllm:prompt_tokens_cached_by_source_total{engine="0",source="local"} 3\n'
    )
    assert canonical(Resolver(), page) == [None, "cached_tokens_total", "cached_tokens_total"]


def test_a_router_that_repeats_the_newer_name_takes_no_engines_place() -> None:
    page = parse(b'vllm:gpu_cache_usage_perc 0.4\nvllm:kv_cache_usage_perc{server="http://a"} 0.4\n')
    assert canonical(Resolver(), page) == ["kv_cache_usage_ratio", None]


def test_a_rank_that_repeats_another_gets_an_id_of_its_own_so_that_its_canonical_series_ends() -> None:
    second = b'sglang:num_running_reqs{tp_rank="1"} 5\n'
    alone, beside = parse(second), parse(b'sglang:num_running_reqs{tp_rank="0"} 5\n' + second)
    assert canonical(Resolver(), alone) == ["requests_running"]
    assert canonical(Resolver(), beside) == ["requests_running", None]
    assert Resolver().resolve(alone.series).ids[0] != Resolver().resolve(beside.series).ids[1]


def test_a_known_series_keeps_its_row_while_what_is_beside_it_stays() -> None:
    memo, resolver = PageMemo(), Resolver(TARGET)
    first = resolver.resolve(memo.parse(b'a 1\nvllm:num_requests_running{engine="0"} 1\n').series)
    grown = resolver.resolve(
        memo.parse(b'a 1\nvllm:num_requests_running{engine="0"} 1\nvllm:num_requests_running{engine="1"} 1\n').series
    )
    assert all(grown.rows[i] is first.rows[i] for i in first.ids.tolist())
