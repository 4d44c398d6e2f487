"""Time-series tables → series and samples: names, conversions, labels, refusals."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.files.content import open_content
from collector.files.decoded import Decoded
from collector.files.options import ImportOptions
from collector.files.rows import read_rows
from collector.files.series import decode_series
from store.batch import Batch
from store.database import Database
from store.errors import UsageError
from store.query import MetricQuery
from store.tables import METRIC_SAMPLES, METRIC_SERIES
from store.window import Window

DAY = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "engine.csv"


def decode(path: Path, text: str, **options: Any) -> Decoded:
    path.write_text(text)
    return decode_series(read_rows(open_content(path)), ImportOptions(**options))


def series(decoded: Decoded) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in decoded.frames["metric_series"].to_dicts()}


def values(decoded: Decoded, name: str) -> list[float]:
    ids = decoded.frames["metric_series"].filter(name=name)["series_id"]
    return decoded.frames["metric_samples"].filter(pl.col("series_id").is_in(ids.to_list()))["value"].to_list()


def test_each_numeric_column_is_a_series_under_its_own_name(table: Path) -> None:
    decoded = decode(table, "time,queue,kv\n2026-11-30 10:00:00,1,0.5\n2026-11-30 10:00:01,2,\n")
    assert (values(decoded, "queue"), values(decoded, "kv")) == ([1.0, 2.0], [0.5])
    assert series(decoded)["queue"]["canonical"] is None
    assert series(decoded)["kv"]["first_ts"] == datetime(2026, 11, 30, 10, tzinfo=UTC).replace(tzinfo=None)
    for declared in (METRIC_SERIES, METRIC_SAMPLES):
        assert decoded.frames[declared.name].schema == declared.schema()


def test_a_mapped_column_keeps_its_raw_value_and_gains_a_canonical_one(table: Path, tmp_path: Path) -> None:
    decoded = decode(
        table,
        "time,cache,pending\n2026-11-30 10:00:00,40,3\n",
        mapping={"kv_cache_usage_ratio": "cache", "requests_waiting": "pending"},
        units={"kv_cache_usage_ratio": "percent"},
        labels={"service": "chat"},
    )
    row = series(decoded)["cache"]
    assert (row["canonical"], row["unit"], row["scale"], row["combine"], row["semantic"], row["service"]) == (
        "kv_cache_usage_ratio", "ratio", 0.01, "mean", "level", "chat",
    )  # fmt: skip
    with Database(tmp_path / "store") as store:
        store.append([Batch("import", decoded.frames)])
        found = {n: store.read(MetricQuery((n,)), DAY)["value"].to_list() for n in ("cache", "kv_cache_usage_ratio")}
    assert found == {"cache": [40.0], "kv_cache_usage_ratio": [0.4]}


def test_the_ending_of_a_name_is_its_unit(table: Path) -> None:
    decoded = decode(table, "time,used_mib\n2026-11-30,2\n", mapping={"gpu_memory_bytes": "used_mib"})
    assert (series(decoded)["used_mib"]["scale"], series(decoded)["used_mib"]["unit"]) == (2.0**20, "bytes")


def test_a_column_named_as_an_engine_names_it_is_known_without_a_mapping(table: Path) -> None:
    decoded = decode(table, "time,vllm:num_requests_waiting\n2026-11-30,2\n")
    assert series(decoded)["vllm:num_requests_waiting"]["canonical"] == "requests_waiting"


def test_a_computed_metric_is_named_by_its_field(table: Path) -> None:
    decoded = decode(table, "time,free,all\n2026-11-30,30,40\n", mapping={"kv_cache_usage_ratio": "1 - free / all"})
    assert values(decoded, "kv_cache_usage_ratio") == [0.25]
    assert set(series(decoded)) == {"kv_cache_usage_ratio", "free", "all"}


def test_text_columns_are_labels_and_make_a_series_each(table: Path) -> None:
    text = "time,host,util\n" + "".join(f"2026-11-30 10:00:{i:02},{'ab'[i % 2]},{2 * i}\n" for i in range(30))
    decoded = decode(table, text, labels={"job": "gpu"})
    frame = decoded.frames["metric_series"]
    assert sorted(json.loads(text)["host"] for text in frame["labels"]) == ["a", "b"]
    assert frame["job"].to_list() == ["gpu", "gpu"]
    sizes = decoded.frames["metric_samples"].group_by("series_id").len()
    assert sizes["len"].to_list() == [15, 15]


def test_a_missing_label_is_no_label(table: Path) -> None:
    decoded = decode(table, "time,host,util\n2026-11-30 10:00:00,a,1\n2026-11-30 10:00:01,,2\n")
    assert sorted(decoded.frames["metric_series"]["labels"]) == ['{"host":"a"}', "{}"]


def test_row_numbers_and_text_that_differs_in_every_row_are_left_out_and_named(table: Path) -> None:
    text = "n,time,note,x\n" + "".join(f"{i},2026-11-30 10:00:{i:02},note {i},{i % 3}\n" for i in range(30))
    decoded = decode(table, text)
    assert set(series(decoded)) == {"x"}
    assert "n is the row number: left out" in decoded.notes
    assert "note differs from row to row, so it is no label: left out" in decoded.notes


def test_broken_times_refuse_the_row_and_broken_cells_the_cell(table: Path) -> None:
    decoded = decode(
        table, "time,a,b\n2026-11-30 10:00,1,1\n,2,2\nnow,3,3\n2026-11-30 10:01,x,4\n2026-11-30 10:02,5,N/A\n"
    )
    assert {reason: (r.count, r.first) for reason, r in decoded.refused.items()} == {
        "no time": (1, f"{table}:3"),
        "unreadable time": (1, f"{table}:4"),
        "a is not a number": (1, f"{table}:5"),
    }
    assert (values(decoded, "a"), values(decoded, "b")) == ([1.0, 5.0], [1.0, 4.0])


def test_a_name_that_no_preset_knows_is_taken_and_reported(table: Path) -> None:
    decoded = decode(table, "time,x\n2026-11-30,1\n", mapping={"my_metric": "x"})
    assert series(decoded)["x"]["canonical"] == "my_metric"
    assert "my_metric is no canonical name of a preset" in decoded.notes


def test_a_total_is_a_counter(table: Path) -> None:
    decoded = decode(table, "time,bytes_total,x\n2026-11-30,1,1\n")
    assert (series(decoded)["bytes_total"]["kind"], series(decoded)["x"]["kind"]) == ("counter", "gauge")


@pytest.mark.parametrize(
    ("text", "options", "fact"),
    [
        ("x,y\n1,2\n", {}, "no column is known as the time"),
        ("time,host\n2026-11-30,a\n", {}, "no column of numbers beside the time"),
        ("time,x\n2026-11-30,1\n", {"mapping": {"a b": "x"}}, "'a b' is no metric name"),
        (
            "time,x\n2026-11-30,1\n",
            {"mapping": {"a_ratio": "x"}, "units": {"a_ratio": "ms"}},
            "a_ratio is measured in ratio",
        ),
        ("time,x\n2026-11-30,1\n", {"units": {"x": "ms"}}, "--unit names x, which no column is mapped to"),
    ],
)
def test_tables_and_options_that_do_not_fit_are_refused(
    table: Path, text: str, options: dict[str, Any], fact: str
) -> None:
    with pytest.raises(UsageError) as caught:
        decode(table, text, **options)
    assert fact in str(caught.value)
    assert caught.value.hint


def test_the_gpu_log_of_burstgpt_is_converted_to_base_units(shared: Path) -> None:
    path = shared / "data" / "burstgpt_vllm_replay" / "gpu_log_scale100_prompt500.json.gz"
    decoded = decode_series(read_rows(open_content(path)), ImportOptions())
    assert set(series(decoded)) == {"GPU_used_mem", "GPU_total_mem", "GPU_utilization", "GPU_temperature"}
    assert series(decoded)["GPU_utilization"]["scale"] == 0.01
    assert "monitor_id is the row number: left out" in decoded.notes
