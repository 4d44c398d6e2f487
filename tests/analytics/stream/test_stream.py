"""Jitter, stalls and time per token of streams: identities, edge cases, and the recording's phases."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.result import Result, Status
from analytics.stream import ANALYSIS, StreamParams
from analytics.stream import answer as answering
from analytics.stream.chunks import BASE, LEAST, MOST, adaptive, replay
from analytics.stream.gaps import events, streams
from store.tables import SPANS, TOKEN_ARRIVALS
from store.window import Window
from tests.analytics.frames_of import lines

START = datetime(2026, 11, 30, 12)
HOUR = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=1))
GAPS = st.lists(st.integers(1, 2_000_000), min_size=3, max_size=40)


def arrivals(offsets: Sequence[Sequence[int]], tokens: Sequence[Sequence[int] | None] | None = None) -> pl.DataFrame:
    n = len(offsets)
    return TOKEN_ARRIVALS.conform(
        pl.DataFrame(
            {
                "trace_id": [f"{i:032x}" for i in range(n)],
                "span_id": [f"{i:016x}" for i in range(n)],
                "ts": [START + timedelta(seconds=i) for i in range(n)],
                "offsets_us": [list(one) for one in offsets],
                "tokens": [None if one is None else list(one) for one in tokens or [None] * n],
            },
            schema_overrides={"offsets_us": pl.List(pl.Int64), "tokens": pl.List(pl.Int64)},
        )
    )


def one(offsets: Sequence[int], tokens: Sequence[int] | None = None) -> dict[str, Any]:
    return streams(events(arrivals([offsets], [tokens]))).row(0, named=True)


def spans(arrived: pl.DataFrame, **columns: Any) -> pl.DataFrame:
    given = {"service": ["chat"] * arrived.height} | columns
    base = arrived.select("trace_id", "span_id", "ts").with_columns(pl.Series(n, v) for n, v in given.items())
    full = SPANS.conform(base)
    return full.with_columns(pl.lit(None, pl.String).alias("aborted"), pl.lit(1.0).alias("share_read"))


def run(arrived: pl.DataFrame, requests: pl.DataFrame | None = None, window: Window = HOUR, **params: Any) -> Result:
    inputs = {
        "arrivals": arrived,
        "requests": spans(arrived) if requests is None else requests,
        "round_trips": pl.DataFrame(schema={"ts": pl.Datetime("us"), "duration_s": pl.Float64}),
    }
    return ANALYSIS.run(inputs, StreamParams(**params), window)


def after(gaps: Sequence[int], first: int = 100_000) -> list[int]:
    return [int(at) for at in np.cumsum([first, *gaps])]


def test_constant_gaps_have_no_jitter() -> None:
    found = one(after([20_000] * 9))
    assert (found["ji"], found["tiav"], found["stalls"]) == (0.0, 0.0, 0)
    assert found["half_time_skew"] == pytest.approx(4 / 9 - 0.5)


@pytest.mark.parametrize(("shape", "expected"), [(1, 1.0), (4, 0.5), (16, 0.25)])
def test_gamma_gaps_have_the_jitter_of_their_shape(shape: int, expected: float) -> None:
    gaps = np.random.default_rng(7).gamma(shape, 50_000 / shape, 20_000).astype(int) + 1
    assert one(after(list(gaps)))["ji"] == pytest.approx(expected, rel=0.03)


@given(GAPS)
@settings(deadline=None, max_examples=60)
def test_jitter_is_that_of_numpy(gaps: list[int]) -> None:
    found = one(after(gaps))
    seconds = np.array(gaps) / 1e6
    assert found["ji"] == pytest.approx(seconds.std(ddof=1) / seconds.mean(), abs=1e-12)
    assert found["tiav"] == pytest.approx(seconds.var(ddof=1), abs=1e-12)
    assert found["ji_token"] == pytest.approx(found["ji"], abs=1e-9), "one token an event: the same"


@given(GAPS, st.integers(1, 6))
@settings(deadline=None, max_examples=60)
def test_time_per_token_and_decode_share_do_not_depend_on_chunks(gaps: list[int], size: int) -> None:
    whole = after(gaps)
    single = one(whole)
    later = whole[1:]
    ends = [*range(size - 1, len(later), size)]
    ends += [len(later) - 1] if not ends or ends[-1] != len(later) - 1 else []
    counts = np.diff([-1, *ends])
    chunked = one([whole[0], *(later[i] for i in ends)], [1, *map(int, counts)])
    assert chunked["tokens"] == single["tokens"]
    assert chunked["arrival_tpot_s"] == pytest.approx(single["arrival_tpot_s"])
    assert chunked["decode_share"] == pytest.approx(single["decode_share"])
    assert single["decode_share"] == pytest.approx(1 - single["first_s"] / single["last_s"])


def case_63() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The five streams of the edge cases as arrivals and requests."""
    offsets = [
        [400_000, 500_000, 620_000, 740_000, 860_000], [300_000], [350_000, 400_000, 400_000], [],
        [200_000, 190_000, 260_000],
    ]  # fmt: skip
    arrived = arrivals(offsets, [[0, 1, 4, 4, 3], [1], [1, 1, 1], [], [1, 1, 1]])
    requests = spans(
        arrived,
        request_id=["r1", "r2", "r3", "r4", "r5"],
        finish_reason=["stop", "length", "cancelled", "content_filter", "stop"],
        output_tokens=[12, 1, 2, 0, 3],
    )
    return arrived, requests


def test_the_edge_cases_of_token_streams() -> None:
    arrived, requests = case_63()
    result = run(arrived, requests)
    found = {row["request_id"]: row for row in result.frames["requests"].to_dicts()}
    assert (found["r1"]["ttft_s"], found["r1"]["tokens"]) == (0.5, 12)
    assert found["r1"]["tpot_s"] == pytest.approx(0.36 / 11)
    gaps = streams(events(arrived)).filter(pl.col("stream") == 0)
    assert gaps["itl_max_s"][0] == pytest.approx(0.12)
    rows = events(arrived).filter(pl.col("stream") == 0)
    assert (rows["gap_us"] / rows["tokens"]).drop_nulls().to_list() == [30_000, 30_000, 40_000]
    assert (found["r2"]["ttft_s"], found["r2"]["tpot_s"], found["r2"]["ji"]) == (0.3, None, None)
    assert (found["r3"]["cancelled"], found["r3"]["tokens"]) == (True, 2)
    assert "r4" not in found, "no token, no stream, no TTFT"
    assert found["r5"]["itl_max_s"] >= 0
    assert events(arrived)["gap_us"].drop_nulls().min() >= 0  # type: ignore[operator]
    group = result.frames["groups"].row(0, named=True)
    assert (group["n"], group["cancelled"], group["jittered"]) == (4, 1, 1)
    assert any("1 repeated" in note for note in result.notes)
    assert any("1 streams given up" in note for note in result.notes)


def test_goodput_counts_what_failed_and_what_was_given_up_as_outside() -> None:
    arrived = arrivals([after([20_000] * 5)] * 4 + [after([200_000] * 5)])
    requests = spans(
        arrived, status=["ok", "error", "ok", "ok", "ok"], finish_reason=["stop", None, "abort", "stop", "stop"]
    )
    group = run(arrived, requests, tpot_limit=0.1).frames["groups"].row(0, named=True)
    assert group["goodput_ratio"] == pytest.approx(2 / 5)
    assert group["goodput_low"] < 0.4 < group["goodput_high"]


def test_groups_with_other_chunks_are_not_compared() -> None:
    arrived = arrivals([after([20_000] * 8)] * 6, [[1] * 9] * 3 + [[4] * 9] * 3)
    requests = spans(arrived, service=["a"] * 3 + ["b"] * 3)
    said = dict(run(arrived, requests).frames["groups"].select("service", "comparable").rows())
    assert said["a"] == "yes"
    assert said["b"].startswith("no: 4.00 tokens per event, 1.00 elsewhere")


def test_streams_that_begin_to_stall_are_a_finding_and_a_calm_hour_is_none() -> None:
    calm, stalled = after([20_000] * 20), after([20_000] * 10 + [900_000] + [20_000] * 9)
    n = 600
    times = [START + timedelta(seconds=6 * i) for i in range(n)]

    def hour(bad: int) -> Result:
        arrived = arrivals([calm] * (n - bad) + [stalled] * bad).with_columns(
            pl.Series("ts", times).cast(pl.Datetime("us"))
        )
        return run(arrived)

    (finding,) = (f for f in hour(30).findings if f.trigger == "StreamsStall")
    assert finding.until is None
    assert "the longest for 0.9 s" in finding.summary
    assert hour(0).findings == ()
    assert hour(1).findings == ()


def test_requests_without_arrivals_are_refused_in_words() -> None:
    result = run(arrivals([]), spans(arrivals([[1]])))
    assert result.status is Status.REFUSED
    assert "times when tokens came" in result.notes[0]


def test_the_adaptive_chunk_follows_round_trips_within_its_bounds() -> None:
    assert adaptive(()) == BASE
    assert adaptive([0.1] * 8) == pytest.approx(BASE)
    assert adaptive([0.2, 0.05]) == pytest.approx(32 * 1024 * 0.1 / (0.7 * 0.05 + 0.3 * 0.125))
    assert (adaptive([1e-4]), adaptive([10.0])) == (MOST, LEAST)
    fixed, moving = replay([0.012] * 50)
    assert moving["throughput_use"] > fixed["throughput_use"]
    fixed, moving = replay([0.4] * 50)
    assert moving["first_packet_s"] < fixed["first_packet_s"]
    assert replay([0.1]) == []


def test_the_recording_has_the_gaps_that_its_readme_states(shared: Path) -> None:
    folder = shared / "data" / "vllm_real"
    requests = lines(folder / "client.jsonl.gz")
    phases = [orjson.loads(line) for line in (folder / "labels.jsonl").read_bytes().splitlines()]
    stated = {1: (27.8, 45.2), 2: (57.0, 68.5), 6: (146.1, 196.8), 10: (30.3, 38.1)}
    arrived = arrivals([request["chunk_offsets_us"] for request in requests])
    found = streams(events(arrived)).with_columns(
        mean_itl_ms=pl.when(pl.col("gaps") > 0).then(pl.col("gap_sum") / pl.col("gaps") * 1e3)
    )
    starts = pl.DataFrame(
        {"stream": range(len(requests)), "at": [r["start_unix_nano"] / 1e9 for r in requests]},
        schema_overrides={"stream": pl.UInt32},
    )
    joined = found.join(starts, on="stream")
    for number, (p50, p99) in stated.items():
        phase = phases[number]
        inside = joined.filter(pl.col("at") >= phase["start"], pl.col("at") < phase["end"])["mean_itl_ms"]
        assert inside.quantile(0.5, "linear") == pytest.approx(p50, abs=0.5)
        assert inside.quantile(0.99, "linear") == pytest.approx(p99, abs=0.5), (
            "a request at a border of phases may count elsewhere"
        )


def test_null_jitter_is_never_zero() -> None:
    assert one(after([20_000, 30_000]))["ji"] is None
    assert math.isfinite(one(after([20_000, 30_000, 10_000]))["ji"])


def test_of_very_many_streams_those_of_a_share_of_the_traces_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "MEASURED", 300)
    arrived = arrivals([after([20_000] * 5)] * 1000)
    result = run(arrived)
    (n,) = result.frames["groups"]["n"]
    assert 220 < n < 380
    assert result.notes[0] == f"measured {n} of 1000 streams, those of a random share of the traces"
    assert run(arrived).frames["groups"].equals(result.frames["groups"]), "the same ones again"
