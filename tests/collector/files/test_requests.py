"""Request logs → spans: units, outcomes, refusals, identity."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.files.content import open_content
from collector.files.decoded import Decoded
from collector.files.load import load
from collector.files.options import ImportOptions
from collector.files.requests import decode_requests
from collector.files.rows import read_rows
from collector.otlp.content import ContentOptions
from store.errors import SourceError, UsageError
from store.tables import SPANS

NOON = "2026-11-30T12:00:00Z"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "gateway.jsonl"


def decode(path: Path, rows: list[dict[str, Any]] | str, **options: Any) -> Decoded:
    path.write_text(rows if isinstance(rows, str) else "\n".join(json.dumps(row) for row in rows))
    content = open_content(path)
    return decode_requests(read_rows(content), ImportOptions(**options), content.stem)


def spans(path: Path, rows: list[dict[str, Any]] | str, **options: Any) -> list[dict[str, Any]]:
    return decode(path, rows, **options).frames["spans"].to_dicts()


def test_a_log_with_our_own_names_needs_no_mapping(log: Path) -> None:
    [span] = spans(log, [{"ts": NOON, "ttft_s": 0.5, "e2e_s": 2, "input_tokens": 7, "output_tokens": 3, "model": "m"}])
    known = {name: value for name, value in span.items() if value is not None}
    assert len(known.pop("trace_id")) == 32
    assert len(known.pop("span_id")) == 16
    assert known == {
        "ts": datetime(2026, 11, 30, 12, tzinfo=UTC).replace(tzinfo=None), "duration_s": 2.0, "name": "inference",
        "kind": "client", "status": "unset", "service": "gateway", "operation": "inference", "model": "m",
        "input_tokens": 7, "output_tokens": 3, "ttft_s": 0.5, "ttft_source": "client", "e2e_s": 2.0,
    }  # fmt: skip


def test_the_frame_conforms_to_spans(log: Path) -> None:
    assert decode(log, [{"ts": NOON}]).frames["spans"].schema == SPANS.schema()


def test_units_come_from_the_option_else_from_the_name(log: Path) -> None:
    rows = [{"ts": 1796040000, "first": 250, "total_us": 112917, "wait": 5}]
    [span] = spans(
        log, rows, mapping={"ttft_s": "first", "e2e_s": "total_us", "queue_s": "wait"}, units={"ttft_s": "ms"}
    )
    assert (span["ttft_s"], span["e2e_s"], span["queue_s"]) == (0.25, 0.112917, 5.0)


def test_an_expression_maps_arrival_from_the_end_of_a_request(log: Path) -> None:
    [span] = spans(log, [{"end": 1796040002.5, "took": 2.5}], mapping={"ts": "end-took", "e2e_s": "took"})
    assert span["ts"] == datetime(2026, 11, 30, 12, tzinfo=UTC).replace(tzinfo=None)
    assert json.loads(span["attributes"]) == {"end": 1796040002.5}


def test_the_mapping_given_wins_over_known_names_and_can_take_one_away(log: Path) -> None:
    rows = [{"ts": NOON, "latency": 1.0, "e2e": 9.0, "ttft": 0.1}]
    [span] = spans(log, rows, mapping={"e2e_s": "latency", "ttft_s": ""})
    assert (span["e2e_s"], span["ttft_s"]) == (1.0, None)
    assert json.loads(span["attributes"]) == {"e2e": 9.0, "ttft": 0.1}


def test_columns_without_a_field_stay_typed_attributes(log: Path) -> None:
    rows = [{"ts": NOON, "phase": 'a"b', "n": 2, "x": 0.5, "ok": True, "l": [1, 2], "o": [{"k": None}], "none": None}]
    [span] = spans(log, rows, labels={"team": "blue"})
    assert json.loads(span["attributes"]) == {
        "team": "blue", "phase": 'a"b', "n": 2, "x": 0.5, "ok": True, "l": [1, 2], "o": [{"k": None}],
    }  # fmt: skip


def test_a_label_that_is_a_column_sets_it(log: Path) -> None:
    [span] = spans(log, [{"ts": NOON, "service": "other"}], labels={"service": "chat", "environment": "prod"})
    assert (span["service"], span["environment"]) == ("chat", "prod")
    assert json.loads(span["attributes"]) == {"service": "other"}


@pytest.mark.parametrize(
    ("row", "error", "status"),
    [
        ({"error_code": None}, None, "ok"),
        ({"error_code": 429}, "HTTP_429", "error"),
        ({"error_code": -100}, "-100", "error"),
        ({"error_code": "TimeoutError"}, "TIMEOUT", "error"),
        ({"error_code": "requests.exceptions.ConnectionError"}, "ConnectionError", "error"),
        ({"status": 200}, None, "ok"),
        ({"status": "503"}, "HTTP_503", "error"),
        ({"status": "succeeded"}, None, "ok"),
        ({"status": "failed"}, "error", "error"),
        ({"success": True}, None, "ok"),
        ({"success": False}, "error", "error"),
        ({"status": 404, "error": "no such model"}, "HTTP_404", "error"),
        ({"status": None, "error": "ServerDisconnectedError"}, "ServerDisconnectedError", "error"),
        ({"status": None, "error": "it broke, sorry"}, "error", "error"),
        ({"status": 200, "error": ""}, None, "ok"),
        ({"status": "failed", "error_code": 500}, "HTTP_500", "error"),
        ({}, None, "unset"),
    ],
)
def test_outcomes_get_one_name(log: Path, row: dict[str, Any], error: str | None, status: str) -> None:
    [span] = spans(log, [{"ts": NOON, **row}])
    assert (span["error_code"], span["status"]) == (error, status)


def test_a_request_that_has_not_ended_is_neither_fine_nor_failed_and_has_no_latency(log: Path) -> None:
    rows = [{"ts": NOON, "latency_s": n, "status": word} for n, word in ((3, "SUCCEED"), (0, "PENDING"), (4, "FAILED"))]
    found = [(span["status"], span["error_code"], span["e2e_s"]) for span in spans(log, rows)]
    assert found == [("ok", None, 3.0), ("unset", None, None), ("error", "error", 4.0)]


def test_a_latency_of_zero_stays_in_a_log_that_states_no_outcomes(log: Path) -> None:
    assert [span["e2e_s"] for span in spans(log, [{"ts": NOON, "latency_s": 0}])] == [0.0]


def test_the_zero_ttft_of_a_failed_request_is_no_latency(log: Path) -> None:
    rows = [
        {"ts": NOON, "ttft_s": 0.0, "latency_s": 0, "error_code": 429},
        {"ts": NOON, "ttft_s": 0.6, "latency_s": 5.0, "error_code": -100},
    ]
    failed, late = spans(log, rows)
    assert (failed["ttft_s"], failed["ttft_source"], failed["e2e_s"], failed["duration_s"]) == (None, None, None, None)
    assert (late["ttft_s"], late["e2e_s"]) == (0.6, 5.0)


def test_rows_that_cannot_be_used_are_counted_by_reason_with_the_first_line(log: Path) -> None:
    body = (
        "ts,ttft_ms,latency_ms,output_tokens\n"
        "2026-11-30 12:00:00,1,2,3\n,1,2,3\nyesterday,1,2,3\n2026-11-30 12:00:01,x,2,3\n"
        "2026-11-30 12:00:02,1,-5,3\n2026-11-30 12:00:03,1,-6,3\n2026-11-30 12:00:04,,,\n"
    )
    decoded = decode(log, body)
    assert {reason: (r.count, r.first) for reason, r in decoded.refused.items()} == {
        "no time": (1, f"{log}:3"),
        "unreadable time": (1, f"{log}:4"),
        "ttft_s is not a number": (1, f"{log}:5"),
        "e2e_s is negative": (2, f"{log}:6"),
    }
    assert decoded.frames["spans"].height == 2


def test_ids_of_the_log_are_kept_and_others_hashed_equally(log: Path) -> None:
    rows = [
        {"ts": NOON, "trace_id": "679A44DD-23C4-9CAE-A2CF-62BABA958810", "span_id": "58f92deafd4bd030"},
        {"ts": NOON, "trace_id": "order-17", "span_id": None},
        {"ts": NOON, "trace_id": "order-17", "span_id": None},
    ]
    first, second, third = spans(log, rows)
    assert (first["trace_id"], first["span_id"]) == ("679a44dd23c49caea2cf62baba958810", "58f92deafd4bd030")
    assert second["trace_id"] == third["trace_id"]
    assert second["span_id"] != third["span_id"]
    assert json.loads(second["attributes"])["trace_id"] == "order-17"


def test_derived_ids_depend_on_content_and_row_not_on_the_file_name(log: Path, tmp_path: Path) -> None:
    rows = [{"ts": NOON, "ttft_s": 0.1}] * 2
    keys = [(s["trace_id"], s["span_id"]) for s in spans(log, rows)]
    assert len(set(keys)) == 2
    assert keys == [(s["trace_id"], s["span_id"]) for s in spans(tmp_path / "copy.jsonl", rows)]
    assert not set(keys) & {(s["trace_id"], s["span_id"]) for s in spans(log, rows, labels={"service": "b"})}


def test_a_log_that_grew_keeps_the_ids_of_its_first_rows(log: Path) -> None:
    rows = [{"ts": NOON, "ttft_s": 0.1}, {"ts": NOON, "ttft_s": 0.2}]
    before = [s["span_id"] for s in spans(log, rows[:1])]
    assert [s["span_id"] for s in spans(log, rows)][:1] == before


def test_without_a_time_column_the_time_must_be_given_and_is_marked(log: Path, tmp_path: Path) -> None:
    rows = [{"ttft_s": 0.1}, {"ttft_s": 0.2}]
    with pytest.raises(UsageError, match="no column is known as the time") as caught:
        decode(log, rows)
    assert "--map ts=COLUMN" in caught.value.hint
    at = datetime(2023, 12, 1, tzinfo=UTC)
    here, there = spans(log, rows, at=at), spans(tmp_path / "other.jsonl", rows, at=at)
    assert [s["quality"] for s in here] == ["no_time", "no_time"]
    assert [s["ts"].microsecond for s in here] == [0, 1]
    assert here[0]["span_id"] != there[0]["span_id"]  # equal rows of two services at one stated time


def test_conversation_text_stays_in_the_file_unless_asked_for(log: Path) -> None:
    rows = [{"ts": NOON, "prompt": "my secret", "messages": [{"role": "user"}], "GEN_TEXT": "x", "prompt_tokens": 2}]
    decoded = decode(log, rows)
    span = decoded.frames["spans"].to_dicts()[0]
    assert (span["attributes"], span["input_tokens"]) == (None, 2)
    assert sum("conversation text" in note for note in decoded.notes) == 3
    [kept] = spans(log, rows, content=ContentOptions(store_content=True))
    assert json.loads(kept["attributes"])["prompt"] == "my secret"


def test_a_long_text_is_cut_and_the_row_marked(log: Path) -> None:
    rows = [{"ts": NOON, "note": "é" * 9000}, {"ts": NOON, "note": "short"}]
    long, short = spans(log, rows)
    assert len(json.loads(long["attributes"])["note"].encode()) <= 8192
    assert (long["quality"], short["quality"]) == ("truncated", None)


@pytest.mark.parametrize(
    ("options", "fact", "hint"),
    [
        ({"mapping": {"ttft": "a"}}, "no field of a request is called 'ttft'", "did you mean ttft_s?"),
        (
            {"mapping": {"attributes": "a"}},
            "no field of a request is called 'attributes'",
            "fields of requests: trace_id",
        ),
        ({"mapping": {"ttft_s": "frist"}}, "no column 'frist'", "did you mean first?"),
        ({"units": {"ttft_s": "ms"}}, "--unit names ttft_s, which no column is mapped to", "fields with a column: ts"),
        (
            {"mapping": {"ttft_s": "first"}, "units": {"ttft_s": "MiB"}},
            "ttft_s is measured in s",
            "units that do: s, ms",
        ),
        ({"labels": {"ttft_s": "1"}}, "--label ttft_s", "use --map"),
        ({"mapping": {"service": "first"}, "labels": {"service": "a"}}, "both set service", "leave one"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_the_next_step(
    log: Path, options: dict[str, Any], fact: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        decode(log, [{"ts": NOON, "first": 1}], **options)
    assert fact in str(caught.value)
    assert hint in caught.value.hint


def test_a_column_of_lists_is_no_field(log: Path) -> None:
    with pytest.raises(UsageError, match="holds List"):
        decode(log, [{"ts": NOON, "chunks": [1, 2]}], mapping={"ttft_s": "chunks"})


def test_whole_columns_may_be_empty(log: Path) -> None:
    rows = [{"ts": NOON, "ttft_s": None, "model": None, "stream": None, "error_code": None}]
    [span] = spans(log, rows)
    assert (span["ttft_s"], span["model"], span["stream"], span["status"]) == (None, None, None, "ok")
    assert pl.DataFrame([span]).height == 1


def test_a_file_without_a_usable_row_is_an_error_that_says_why(log: Path) -> None:
    log.write_text('{"ts": "now", "ttft_s": 1}\n{"ts": null, "ttft_s": 1}\n')
    with pytest.raises(SourceError) as caught:
        load(log, ImportOptions())
    assert str(caught.value) == (
        f"{log}: no row can be used: 1 no time (first: {log}:2); 1 unreadable time (first: {log}:1)"
    )
