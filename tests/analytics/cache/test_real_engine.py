"""The recorded vLLM: its events, counters, histograms and spans say the same of its cache."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.result import Result
from infractl.priced import PricedReader
from infractl.runner import run_named
from sample_data.load import real
from store.database import Database

BLOCK, REQUESTS = 32, 1_505
"""Tokens in a block; requests that the engine began."""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    with Database(tmp_path_factory.mktemp("real")) as database:
        database.append(list(real()))
        yield run_named(PricedReader(database), "cache", {"bucket": "20"}, None)


def rows(result: Result, frame: str, **where: Any) -> list[dict[str, Any]]:
    found = result.frames[frame].filter(pl.col("service") == "vllm-tiny")
    return found.filter(*(pl.col(name) == value for name, value in where.items())).to_dicts()


def phase(name: str) -> dict[str, Any]:
    text = files("sample_data").joinpath("real", "labels.jsonl").read_text()
    return next(row for row in map(json.loads, text.splitlines()) if row["phase"] == name)


def test_hits_and_stored_blocks_are_those_of_the_recording(result: Result) -> None:
    windows = result.frames["windows"]
    assert windows["basis"].unique().to_list() == ["exact"]
    # hits of the counters are whole blocks of 32 tokens; rounding by window loses none
    assert windows["hits"].sum() == 226_240 / BLOCK
    assert windows["accesses"].sum() == 226_240 / BLOCK + 8_087
    assert windows["cpi"].is_between(0, 1).all()


def test_counters_of_hits_and_of_cached_tokens_are_equal_and_events_agree_within_half_a_block_a_request(
    result: Result,
) -> None:
    by = {row["source"]: row for row in rows(result, "sources")}
    hits, cached, events = by["prefix-cache counters"], by["cached-token counters"], by["KV events"]
    assert (hits["looked_up"], hits["found"]) == (cached["looked_up"], cached["found"]) == (428_705, 226_240)
    # what was computed fills the blocks stored; each request leaves one block unfilled, of half a block in the mean
    unfilled = hits["computed"] - events["computed"]
    assert 0 <= unfilled <= REQUESTS * BLOCK
    assert unfilled == pytest.approx(REQUESTS * BLOCK / 2, rel=0.03)


def test_the_long_prompts_that_nobody_repeats_stand_out(result: Result) -> None:
    windows, planned = result.frames["windows"], phase("unique_long_prompts")
    seconds = pl.col("bucket").dt.epoch("s")
    inside = (seconds >= planned["start"]) & (seconds + 20 <= planned["end"])
    assert windows.filter(inside)["cpi"].gt(0.9).all()
    assert windows.filter(seconds + 20 < planned["start"])["cpi"].lt(0.6).all()
    (note,) = [note for note in result.notes if "nobody uses" in note]
    assert "the longest run from 2026-11-30T16:22:00Z: 6 windows, index up to 1.00, hit ratio 0.02" in note


def test_hits_were_lost_to_evictions_in_the_burst_and_that_is_over(result: Result) -> None:
    (finding,) = result.findings
    burst = phase("burst")
    assert burst["start"] <= finding.since.timestamp() <= burst["end"]
    assert finding.until is not None  # hardly a hit was lost to the long prompts: advice, no alert
    assert finding.evidence["windows"][-1]["expired"] > 100


def test_ages_of_events_are_those_of_the_engines_own_sample(result: Result) -> None:
    by = {(row["what"], row["source"]): row for row in rows(result, "reuse")}
    ours, its = by["lifetime", "KV events"], by["lifetime", "counters"]
    assert its["n"] == 102  # one block in a hundred
    for q in ("p50", "p90"):
        assert ours[q] == pytest.approx(its[q], rel=0.1)
    assert by["idle_before_evict", "counters"]["p50"] <= its["p50"]
    assert by["reuse_gap", "counters"]["n"] == 13


def test_the_tier_of_events_and_of_counters_are_side_by_side(result: Result) -> None:
    events, counted = rows(result, "tiers")
    assert (events["medium"], events["stored"], events["removed"], events["present"]) == ("GPU", 8_087, 7_792, 295)
    assert (counted["medium"], counted["source"], counted["hits"]) == ("device", "counters", 226_240)
    assert counted["hits_low"] is None  # tokens come in blocks and prompts: no binomial interval


def test_blocks_that_leave_all_at_once_are_no_exponential_decay(result: Result) -> None:
    (decay,) = rows(result, "decay")
    assert decay["tau"] is None
    assert "does not describe" in decay["verdict"]
    retention = result.frames["retention"]["retention"]
    assert retention.is_sorted(descending=True)
    assert retention.is_between(0, 1).all()


def test_the_shipped_events_are_those_of_the_recording(shared: Path, result: Result) -> None:
    from tests.analytics.cache.given import imported

    whole = imported(shared / "data/vllm_real/kv.jsonl.gz", "kv_events")
    stored = whole.filter(pl.col("kind") == "stored")["block_hashes"].list.len().sum()
    assert rows(result, "tiers", source="KV events")[0]["stored"] == stored
