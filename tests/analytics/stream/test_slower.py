"""Streams that become slower: found where they do, and nowhere else."""

from datetime import UTC, timedelta
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest

from analytics.result import Finding, Result
from analytics.stats.clusters import design_effect, effect_of_counts
from analytics.stream import slower
from analytics.stream.gaps import events, streams
from tests.analytics.frames_of import lines, window_of
from tests.analytics.stream.simulated import hour
from tests.analytics.stream.test_stream import START, arrivals, run


def slowed(result: Result) -> list[Finding]:
    return [finding for finding in result.findings if finding.trigger == "StreamsSlower"]


def test_streams_of_the_latest_minutes_that_are_slower_are_a_finding_that_lasts() -> None:
    result = run(hour(1, slow=(3300, 3600, 3.0)))
    lasting = [finding for finding in slowed(result) if finding.until is None]
    (sample,) = result.samples["stream_gap_ratio"]["value"]
    assert len(lasting) == 1
    assert lasting[0].value == sample > 1.5
    assert lasting[0].since >= (START + timedelta(seconds=3200)).replace(tzinfo=UTC)
    assert "of the calm buckets before" in lasting[0].summary
    assert len(lasting[0].evidence["trace_ids"]) == 5


def test_a_slow_stretch_that_is_over_is_told_with_its_end_and_lifts_no_later_baseline() -> None:
    result = run(hour(2, slow=(1800, 2400, 3.0)))
    (finding,) = slowed(result)
    assert finding.until is not None
    assert finding.until <= (START + timedelta(seconds=2700)).replace(tzinfo=UTC)
    after = result.frames["timeline"].filter(pl.col("ts") >= START + timedelta(seconds=2700))
    before = result.frames["timeline"].filter(pl.col("ts") < START + timedelta(seconds=1700))
    assert after["baseline_s"].to_list()[-1] == pytest.approx(before["baseline_s"].to_list()[-1], rel=0.1)


def test_steady_streams_are_no_finding() -> None:
    """Reduced from benchmarks/accuracy/stream.py, which has 200 seeds a row."""
    assert [slowed(run(hour(seed))) for seed in range(100, 125)] == [[]] * 25


def test_few_streams_are_not_judged_however_slow() -> None:
    result = run(hour(3, n=60, slow=(3000, 3600, 20.0)))
    assert slowed(result) == []


def test_other_chunks_are_not_slower_streams() -> None:
    """Chunks of four tokens in the last ten minutes: gaps four times as long, tokens as fast as before."""
    single = [np.cumsum([100_000, *[20_000 + 100 * (i % 7)] * 40]).tolist() for i in range(500)]
    chunked = [np.cumsum([100_000, *[80_000 + 100 * (i % 7)] * 10]).tolist() for i in range(100)]
    arrived = arrivals([*single, *chunked], [[1] * 41] * 500 + [[1, *[4] * 10]] * 100)
    times = pl.Series("ts", [START + timedelta(seconds=6 * i) for i in range(600)]).cast(pl.Datetime("us"))
    result = run(arrived.with_columns(times))
    assert slowed(result) == []
    assert result.samples["stream_gap_ratio"]["value"].to_list() == [None], "not to be compared, rather than fine"


def test_quantiles_of_a_bucket_are_within_a_percent_and_its_limit_is_below() -> None:
    arrived = hour(4)
    rows = events(arrived)
    whole = streams(rows).join(arrived.with_row_index("stream").select("stream", "ts"), on="stream")
    placed = whole.with_columns(pl.lit("chat").alias("service"), pl.lit(0, pl.Int64).alias("bucket"))
    (row,) = slower.measured(rows, placed, ["service"], timedelta(hours=1)).to_dicts()
    gaps = rows["gap_us"].drop_nulls().to_numpy() / 1e6
    assert row["gaps"] == gaps.size
    assert row["gap_p50_s"] == pytest.approx(np.quantile(gaps, 0.5), rel=0.011)
    assert row["gap_p99_s"] == pytest.approx(np.quantile(gaps, 0.99), rel=0.02)
    assert row["gap_p99_low_s"] < row["gap_p99_s"]
    assert 100 < row["independent"] < gaps.size / 2, "gaps of a stream are alike"


def test_the_effect_of_clusters_is_the_same_from_counts() -> None:
    rng = np.random.default_rng(5)
    cell = rng.integers(0, 30, 2000)
    hit = rng.uniform(size=2000) < 0.05 + 0.2 * (cell % 3 == 0)
    hits, sizes = np.bincount(cell, hit).astype(float), np.bincount(cell).astype(float)
    assert design_effect(hit, cell) == pytest.approx(effect_of_counts(hits, sizes))
    assert design_effect(hit, cell) > 2
    frame = pl.DataFrame({"hits": hits, "gaps": sizes}).select(slower._effect())
    assert frame.item() == pytest.approx(effect_of_counts(hits, sizes))


def test_the_calm_phases_of_the_recording_stay_calm(shared: Path) -> None:
    folder = shared / "data" / "vllm_real"
    requests = lines(folder / "client.jsonl.gz")
    arrived = arrivals([request["chunk_offsets_us"] for request in requests])
    epoch = pl.Series("ts", [request["start_unix_nano"] // 1000 for request in requests]).cast(pl.Datetime("us"))
    arrived = arrived.with_columns(epoch).sort("ts")
    phases = [orjson.loads(line) for line in (folder / "labels.jsonl").read_bytes().splitlines()]
    calm = [(p["start"], p["end"]) for p in phases if p["phase"] in ("baseline", "error_storm", "client_aborts")]
    found = slowed(run(arrived, window=window_of(arrived)))
    assert found, "long unique prompts make streams slower"
    for finding in found:
        assert finding.until is not None
        middle = (finding.since + (finding.until - finding.since) / 2).timestamp()
        assert not any(start + 30 <= middle < end for start, end in calm), "a phase drains for its first half minute"
