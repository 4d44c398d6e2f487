"""Tests of importing block traces and recorded KV events: invented files, and the right answers of public ones."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from collector.files import ImportOptions, load, sniff
from collector.files.options import FileKind
from store.database import Database
from store.errors import SourceError, UsageError
from tests.collector.kv_events.engine import payload, removed, stored

MOONCAKE = {"timestamp": 1500, "input_length": 700, "output_length": 20, "hash_ids": [0, 1]}
LMCACHE = {
    "agent": "coder", "session_id": "s1", "timestamp_us": 1_760_000_000_000_000,
    "input_chars": 2100, "output_chars": 30, "prefix_hashes": [11, 2**40],
}  # fmt: skip


def lines(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"\n".join(row if isinstance(row, bytes) else orjson.dumps(row) for row in rows))
    return path


def message(number: int, body: bytes, topic: str = "kv-events") -> dict[str, Any]:
    return {"ts_ns": 1, "topic": topic, "seq": number, "payload_b64": b64encode(body).decode()}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store") as opened:
        yield opened


def rows(database: Database, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = database.sql(text).to_pylist()
    return found


def test_a_mooncake_trace_is_requests_with_blocks(tmp_path: Path, database: Database) -> None:
    path = lines(tmp_path / "trace.jsonl", MOONCAKE, {**MOONCAKE, "timestamp": 2000, "hash_ids": [0]})
    start = datetime(2026, 11, 30, 12, tzinfo=UTC)
    options = ImportOptions(labels={"service": "chat", "team": "a"}, start=start)
    imported = load(path, options)
    assert imported.kind is FileKind.MOONCAKE_TRACE
    database.append(imported.batches)
    found = rows(
        database,
        "SELECT ts, service, operation, input_tokens, output_tokens, e2e_s, attributes, b.block_hashes, b.block_size, "
        "b.unit FROM spans JOIN request_blocks b USING (trace_id, span_id, ts, service) ORDER BY ts",
    )
    assert found[0] == {
        "ts": datetime(2026, 11, 30, 12, 0, 1, 500_000), "service": "chat", "operation": "inference",
        "input_tokens": 700, "output_tokens": 20, "e2e_s": None, "attributes": '{"team":"a"}',
        "block_hashes": [0, 1], "block_size": 512, "unit": "tokens",
    }  # fmt: skip
    receipts = database.append(load(path, options).batches)
    assert receipts[0].stored == {"spans": 0, "request_blocks": 0}


def test_two_equal_requests_of_a_trace_stay_two(tmp_path: Path) -> None:
    imported = load(lines(tmp_path / "trace.jsonl", MOONCAKE, MOONCAKE), ImportOptions())
    assert imported.batches[0].frames["spans"]["span_id"].n_unique() == 2


def test_bad_lines_of_a_trace_are_refused_with_their_place(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", MOONCAKE, b"{", {**MOONCAKE, "hash_ids": None}, {**MOONCAKE, "input_length": -1})
    imported = load(path, ImportOptions())
    assert imported.batches[0].frames["spans"].height == 1
    refused = {reason: (r.count, r.first) for reason, r in imported.refused.items()}
    assert refused == {
        "no request of a Mooncake trace": (2, f"{path}:2"),
        "a number below zero": (1, f"{path}:4"),
    }
    assert imported.batches[0].drops == {"no request of a Mooncake trace": 2, "a number below zero": 1}


def test_a_trace_of_which_no_line_can_be_read_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", {**MOONCAKE, "hash_ids": "none"})
    with pytest.raises(SourceError, match="no request of a Mooncake trace"):
        load(path, ImportOptions())


@pytest.mark.parametrize(
    "row",
    [
        {"timestamp": 1, "input_length": 5, "output_length": 5},
        {**MOONCAKE, "chat_id": 5},
        {"ts": "2026-11-30T12:00:00Z", "seq": 4, "e2e_s": 2.5},
    ],
)
def test_other_requests_stay_what_they_are(tmp_path: Path, row: dict[str, Any]) -> None:
    assert sniff(lines(tmp_path / "other.jsonl", row, row)) is FileKind.REQUESTS


def test_a_list_of_requests_is_no_trace_by_lines(tmp_path: Path) -> None:
    assert sniff(lines(tmp_path / "list.json", [MOONCAKE, MOONCAKE])) is FileKind.REQUESTS


@pytest.mark.parametrize("parquet", [False, True])
def test_an_agent_trace_is_requests_of_sessions(tmp_path: Path, database: Database, parquet: bool) -> None:
    path = tmp_path / ("agents.parquet" if parquet else "agents.jsonl")
    later = {**LMCACHE, "agent": None, "timestamp_us": LMCACHE["timestamp_us"] + 5}  # type: ignore[operator]
    if parquet:
        pl.DataFrame([LMCACHE, later]).write_parquet(path)
    else:
        lines(path, LMCACHE, later)
    imported = load(path, ImportOptions())
    assert imported.kind is FileKind.LMCACHE_AGENT_TRACE
    database.append(imported.batches)
    first, second = rows(database, "SELECT * FROM request_blocks ORDER BY ts")
    assert (first["service"], first["conversation"], first["block_hashes"]) == ("coder", "s1", [11, 2**40])
    assert (first["block_size"], first["unit"]) == (1024, "characters")
    assert second["service"] == "agents"
    span = rows(database, "SELECT * FROM spans ORDER BY ts")[0]
    assert span["input_tokens"] is None
    attributes = orjson.loads(span["attributes"])
    assert attributes == {"input_chars": 2100, "output_chars": 30, "gen_ai.conversation.id": "s1"}


def test_rows_without_time_or_hashes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "agents.parquet"
    pl.DataFrame([LMCACHE, {**LMCACHE, "timestamp_us": None}, {**LMCACHE, "prefix_hashes": None}]).write_parquet(path)
    imported = load(path, ImportOptions())
    assert imported.batches[0].drops == {"no time or no prefix hashes": 2}


def test_recorded_events_are_rows(tmp_path: Path, database: Database) -> None:
    path = lines(
        tmp_path / "kv.jsonl",
        message(7, payload(100.0, stored(1, 2, tokens=8), removed(3))),
        message(8, b"\xc1"),
        b"{",
        message(9, payload(101.0, {"type": "BlockMoved"}, ["AllBlocksCleared"])),
    )
    imported = load(path, ImportOptions(labels={"service": "chat", "instance": "gpu1:8000"}))
    assert imported.kind is FileKind.KV_EVENTS
    assert {reason: (r.count, r.first) for reason, r in imported.refused.items()} == {
        "no message of KV events": (2, f"{path}:2"),
        "unknown_event": (1, f"{path}:4"),
    }
    database.append(imported.batches)
    found = rows(
        database, "SELECT sequence, position, kind, tokens, service, instance, stream FROM kv_events ORDER BY ALL"
    )
    assert [(r["sequence"], r["position"], r["kind"], r["tokens"]) for r in found] == [
        (7, 0, "stored", 8), (7, 1, "removed", None), (9, 1, "cleared", None),
    ]  # fmt: skip
    assert {(r["service"], r["instance"], r["stream"]) for r in found} == {("chat", "gpu1:8000", "kv/kv-events")}
    assert "1 messages are missing" in imported.notes[0]


def test_a_record_over_a_restart_keeps_both_runs(tmp_path: Path, database: Database) -> None:
    path = lines(tmp_path / "kv.jsonl", *(message(n, payload(t, stored(n))) for n, t in ((0, 1.0), (1, 2.0), (0, 9.0))))
    imported = load(path, ImportOptions())
    database.append(imported.batches)
    assert rows(database, "SELECT count(*) AS n FROM kv_events") == [{"n": 3}]
    assert imported.notes == ("the engine began again 1 times (sequence numbers start anew)",)


def test_a_label_that_rows_cannot_have_is_refused(tmp_path: Path) -> None:
    record = lines(tmp_path / "kv.jsonl", message(0, payload(1.0, stored(1))))
    trace = lines(tmp_path / "trace.jsonl", MOONCAKE)
    for path, label in ((record, "host"), (trace, "ttft_s")):
        with pytest.raises(UsageError, match=label):
            load(path, ImportOptions(labels={label: "x"}))


RATIO = """
    SELECT service, count(*) AS blocks, count(DISTINCT h) AS known,
        round(1 - count(DISTINCT h) / count(*), 6) AS hits
    FROM (SELECT service, unnest(block_hashes) AS h FROM request_blocks) GROUP BY service ORDER BY service
"""
"""Hit ratio of a cache that forgets nothing, as SQL over the stored table."""


def test_the_mooncake_conversations_have_their_known_hit_ratio(shared: Path, database: Database) -> None:
    database.append(load(shared / "data/mooncake_trace/conversation_trace.jsonl.gz", ImportOptions()).batches)
    assert rows(database, RATIO) == [
        {"service": "conversation_trace", "blocks": 288_500, "known": 182_790, "hits": 0.366412}
    ]
    (span,) = rows(
        database,
        "SELECT count(*) AS n, quantile_cont(input_tokens, .5) AS p50, "
        "quantile_cont(input_tokens, .99) AS p99 FROM spans",
    )
    assert (span["n"], span["p50"], round(span["p99"], 1)) == (12_031, 6909, 85400.4)
    (used,) = rows(
        database,
        "SELECT round(count(*) FILTER (n = 1) / count(*), 4) AS once FROM (SELECT h, count(*) AS n FROM "
        "(SELECT unnest(block_hashes) AS h FROM request_blocks) GROUP BY h)",
    )
    assert used["once"] == 0.7585


def test_the_agents_have_their_known_hit_ratios(shared: Path, database: Database) -> None:
    path = shared / "data/lmcache_agent_trace/requests_prefix_hashes_1024ch.parquet"
    database.append(load(path, ImportOptions()).batches)
    found = {row["service"]: (row["blocks"], round(row["hits"], 5)) for row in rows(database, RATIO)}
    assert found == {"magagent": (2789, 0.85264), "miniswe": (3499, 0.93627), "taubench": (64, 0.82812)}
    counts = rows(database, "SELECT service, count(*) AS n FROM spans GROUP BY service ORDER BY service")
    assert [row["n"] for row in counts] == [548, 252, 237]


def test_the_recorded_vllm_has_all_its_events(shared: Path, database: Database) -> None:
    imported = load(shared / "data/vllm_real/kv.jsonl.gz", ImportOptions())
    database.append(imported.batches)
    assert imported.notes == ()
    assert imported.refused == {}
    found = rows(
        database,
        "SELECT kind, count(*) AS n, sum(len(block_hashes))::INT AS blocks, sum(tokens)::INT AS tokens "
        "FROM kv_events GROUP BY kind ORDER BY kind",
    )
    assert found == [
        {"kind": "removed", "n": 8075, "blocks": 8075, "tokens": None},
        {"kind": "stored", "n": 3841, "blocks": 8087, "tokens": 8087 * 32},
    ]
    (span,) = rows(
        database, "SELECT min(sequence) AS low, max(sequence) AS high, count(DISTINCT sequence) AS n FROM kv_events"
    )
    assert span == {"low": 3885, "high": 8335, "n": 4451}
