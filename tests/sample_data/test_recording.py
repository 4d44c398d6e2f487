"""The recording: every row is there, client and engine agree, and it can be made again from what was recorded."""

import gzip
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from sample_data import client, files, host, scraped
from sample_data.compact_recording import compact, read_recorded
from sample_data.incidents import from_json
from sample_data.scrapes import unpack

PACKED = ("vllm_metrics.jsonl.gz", "node_metrics.jsonl.gz")


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """The client's spans."""
    return client.decode(files.lines("real", "client.jsonl.gz")).frames["spans"]


def test_the_client_saw_1575_requests_and_their_outcomes(rows: pl.DataFrame) -> None:
    assert rows.height == 1575
    assert Counter(rows["error_code"]) == {None: 1505, "HTTP_400": 42, "HTTP_404": 27, "ServerDisconnectedError": 1}
    assert Counter(rows["finish_reason"]) == {None: 1528, "abort": 47}


def test_times_to_first_token_are_the_client_s_and_missing_where_no_token_came(rows: pl.DataFrame) -> None:
    refused = rows.filter(pl.col("error_code").is_not_null())
    assert refused["ttft_s"].null_count() == refused.height
    served = rows.filter(pl.col("error_code").is_null())
    assert set(served["ttft_source"]) == {"client"}
    whole = served.filter(pl.col("finish_reason").is_null())
    assert whole["ttft_s"].quantile(0.99, "linear") == pytest.approx(33.72, abs=0.01)
    assert (served["ttft_s"] <= served["duration_s"]).all()


def test_a_refused_model_is_not_named_as_the_model_that_answered(rows: pl.DataFrame) -> None:
    assert rows.filter(pl.col("error_code") == "HTTP_404")["model"].null_count() == 27


def test_a_row_keeps_what_only_the_driver_knew(rows: pl.DataFrame) -> None:
    assert rows["attributes"][0] == '{"phase":"warmup","conversation":"c1","turn":0}'


def test_packed_scrapes_are_all_there_in_order_of_time() -> None:
    times = [[ts_ms for ts_ms, _ in unpack(files.lines("real", name))] for name in PACKED]
    assert [len(t) for t in times] == [319, 128]
    assert all(t == sorted(t) for t in times)


def test_the_shipped_recording_stays_small() -> None:
    names = (*PACKED, "client.jsonl.gz", "host.jsonl.gz", "kv.jsonl.gz", "otlp_traces.jsonl.gz")
    assert sum(len(files.read("real", name)) for name in names) < 2_500_000


def test_the_cpus_were_contended_while_other_processes_ran() -> None:
    contended = from_json(files.read("real", "truth.json"))[2]
    found = scraped.batch("host", host.pages(files.lines("real", "host.jsonl.gz")), {"service": "vllm-tiny"})
    series = found.frames["metric_series"].filter(pl.col("name") == "cpu_pressure_ratio")
    pressure = found.frames["metric_samples"].join(series.select("series_id"), on="series_id")
    start, end = (t.replace(tzinfo=None) for t in (contended.start, contended.end))
    inside = pl.col("ts").is_between(start, end)
    assert pressure.filter(inside)["value"].max() > 0.9
    assert pressure.filter(~inside & (pl.col("ts") < start))["value"].median() < 0.3


def test_the_labelled_incidents_are_four_and_settle_after_they_end() -> None:
    truth = from_json(files.read("real", "truth.json"))
    assert [i.kind for i in truth] == ["burst", "unique_long_prompts", "cpu_contention", "error_storm"]
    assert all(i.start < i.end <= i.settled for i in truth)


def test_compacting_the_recording_again_gives_the_shipped_files(shared: Path, tmp_path: Path) -> None:
    compact(shared / "data" / "vllm_real", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "client.jsonl.gz", "host.jsonl.gz", "kv.jsonl.gz", "labels.jsonl", "node_metrics.jsonl.gz",
        "otlp_traces.jsonl.gz", "truth.json", "vllm_metrics.jsonl.gz",
    }  # fmt: skip
    for path in tmp_path.iterdir():
        made, shipped = path.read_bytes(), files.read("real", path.name)
        assert (gzip.decompress(made) == gzip.decompress(shipped)) if path.suffix == ".gz" else (made == shipped)


def test_every_value_of_the_kept_families_is_as_the_engine_wrote_it(shared: Path) -> None:
    whole = list(read_recorded(shared / "data" / "vllm_real" / "vllm_metrics.jsonl.gz"))
    packed = list(unpack(files.lines("real", "vllm_metrics.jsonl.gz")))
    for (at, text), (packed_at, packed_text) in zip(whole, packed, strict=True):
        assert at == packed_at
        assert set(packed_text.splitlines()) <= set(text.splitlines())
        assert sum(line.startswith("vllm:") and "_created" not in line for line in text.splitlines()) == sum(
            line.startswith("vllm:") for line in packed_text.splitlines()
        )
