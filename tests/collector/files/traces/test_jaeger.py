"""Jaeger's JSON: the same spans as OTLP, and what only Jaeger has."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.files import FileKind, ImportOptions, load, sniff
from store.database import Database
from store.errors import SourceError
from tests.collector.files.traces.taking import attributes, take

TRACE, SPAN, PARENT, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "00f067aa0ba902b6", "a" * 16


def span(**fields: Any) -> dict[str, Any]:
    return {
        "traceID": TRACE,
        "spanID": SPAN,
        "operationName": "chat",
        "startTime": 1_796_040_000_000_001,
        "duration": 1_500_000,
        "processID": "p1",
        **fields,
    }


def answer(*spans: dict[str, Any], **fields: Any) -> dict[str, Any]:
    process = {"serviceName": "gateway", "tags": [{"key": "hostname", "type": "string", "value": "h1"}]}
    return {"data": [{"traceID": TRACE, "spans": list(spans), "processes": {"p1": process}, **fields}]}


def tag(key: str, value: object, kind: str = "string") -> dict[str, object]:
    return {"key": key, "type": kind, "value": value}


def reference(kind: str, span_id: str, trace: str = TRACE) -> dict[str, str]:
    return {"refType": kind, "traceID": trace, "spanID": span_id}


def test_one_trace_in_both_forms_loads_to_equal_spans_and_is_stored_once(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "otlp_json"
    otlp, jaeger = (load(folder / f"jaeger-ui_otlp2jaeger-{form}.json", ImportOptions()) for form in ("in", "out"))
    assert (otlp.kind, jaeger.kind) == (FileKind.OTLP, FileKind.JAEGER)
    frames = [imported.batches[0].frames["spans"] for imported in (otlp, jaeger)]
    assert frames[0].height == 2
    assert frames[0].equals(frames[1])
    with Database(tmp_path / "store") as store:
        stored = [store.append(imported.batches)[0].stored.get("spans", 0) for imported in (otlp, jaeger)]
    assert stored == [1, 0]


def test_the_example_that_names_no_service_is_reported(shared: Path) -> None:
    path = shared / "data" / "otlp_json" / "jaeger-ui_otlp2jaeger-in-error.json"
    assert load(path, ImportOptions()).notes == ("1 spans name no service (resource service.name)",)


def rich() -> tuple[dict[str, Any], dict[str, Any]]:
    """One span with all that Jaeger keeps, as OTLP and as Jaeger writes it."""
    text = {"stringValue": "x"}
    otlp = {
        "traceId": TRACE,
        "spanId": SPAN,
        "parentSpanId": PARENT,
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": "1796040000000001000",
        "endTimeUnixNano": "1796040001500001000",
        "status": {"code": 2, "message": "boom"},
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
            {"key": "gen_ai.response.time_to_first_chunk", "value": {"doubleValue": 0.25}},
            {"key": "cached", "value": {"boolValue": True}},
        ],
        "events": [
            {"name": "exception", "timeUnixNano": "1796040001000000000", "attributes": [
                {"key": "exception.type", "value": {"stringValue": "TimeoutError"}}]},
        ],
        "links": [{"traceId": "b" * 32, "spanId": OTHER}],
    }  # fmt: skip
    resource = {
        "attributes": [{"key": "service.name", "value": {"stringValue": "gateway"}}, {"key": "zone", "value": text}]
    }
    request = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "lib"}, "spans": [otlp]}]}]}
    jaeger = span(
        references=[reference("CHILD_OF", PARENT), reference("FOLLOWS_FROM", OTHER, "b" * 32)],
        tags=[
            tag("otel.scope.name", "lib"), tag("otel.scope.version", "1"), tag("span.kind", "client"),
            tag("otel.status_code", "ERROR"), tag("otel.status_description", "boom"), tag("error", True, "bool"),
            tag("gen_ai.operation.name", "chat"), tag("gen_ai.usage.input_tokens", 12, "int64"),
            tag("gen_ai.response.time_to_first_chunk", 0.25, "float64"), tag("cached", True, "bool"),
        ],
        logs=[{"timestamp": 1_796_040_001_000_000, "fields": [
            tag("event", "exception"), tag("exception.type", "TimeoutError")]}],
        process={"serviceName": "gateway", "tags": [tag("zone", "x")]},
    )  # fmt: skip
    return request, answer(jaeger)


def test_kind_status_events_links_scope_and_resource_come_back_as_opentelemetry_had_them(tmp_path: Path) -> None:
    (_, [otlp]), (_, [jaeger]) = (take(tmp_path, document) for document in rich())
    assert (otlp["kind"], otlp["status"], otlp["error_code"]) == ("client", "error", "TIMEOUT")
    assert jaeger == otlp


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("bool", "true", True), ("bool", False, False), ("int64", "12", 12), ("int64", 12, 12),
        ("float64", "0.5", 0.5), ("string", "7", "7"), ("binary", "AAE=", "AAE="), ("int64", "many", "many"),
    ],
)  # fmt: skip
def test_a_tag_is_of_its_stated_type_also_where_it_is_written_as_text(
    tmp_path: Path, kind: str, value: object, expected: object
) -> None:
    _, [row] = take(tmp_path, answer(span(tags=[tag("t", value, kind)])))
    assert attributes(row)["t"] == expected
    assert type(attributes(row)["t"]) is type(expected)


def test_the_first_child_of_is_the_parent_and_other_references_are_links(tmp_path: Path) -> None:
    references = [reference("FOLLOWS_FROM", OTHER), reference("CHILD_OF", PARENT), reference("CHILD_OF", "c" * 16)]
    _, [row] = take(tmp_path, answer(span(references=references)))
    assert row["parent_span_id"] == PARENT
    assert [(link["span_id"], link["attributes"]) for link in json.loads(row["links"])] == [
        (OTHER, {}), ("c" * 16, {"opentracing.ref_type": "child_of"}),
    ]  # fmt: skip


def test_a_parent_in_another_trace_is_a_link(tmp_path: Path) -> None:
    _, [row] = take(tmp_path, answer(span(references=[reference("CHILD_OF", PARENT, "b" * 32)])))
    assert row["parent_span_id"] is None
    assert [link["trace_id"] for link in json.loads(row["links"])] == ["b" * 32]


def test_short_ids_of_old_clients_get_their_zeros_back(tmp_path: Path) -> None:
    _, [row] = take(tmp_path, answer(span(traceID="f00d", spanID="7", parentSpanID="6")))
    assert (row["trace_id"], row["span_id"], row["parent_span_id"]) == ("f00d".zfill(32), "7".zfill(16), "6".zfill(16))


@pytest.mark.parametrize(("value", "status"), [(True, "error"), ("true", "error"), (False, "unset")])
def test_the_error_tag_of_opentracing_says_that_a_span_failed(tmp_path: Path, value: object, status: str) -> None:
    _, [row] = take(tmp_path, answer(span(tags=[tag("error", value, "bool")])))
    assert row["status"] == status


def test_process_tags_are_the_resource_and_a_service_without_a_name_stays_without(tmp_path: Path) -> None:
    _, [row] = take(tmp_path, answer(span()))
    assert (row["service"], row["host"]) == ("gateway", "h1")
    nameless = span(process={"serviceName": "OTLPResourceNoServiceName"})
    imported, [row] = take(tmp_path, answer(nameless))
    assert row["service"] is None
    assert imported.notes == ("1 spans name no service (--label service=NAME)",)


def test_warnings_and_errors_of_jaeger_are_passed_on(tmp_path: Path) -> None:
    skew = "clock skew adjustment disabled; not applying calculated delta of 5ms"
    document = answer(span(warnings=[skew]), warnings=["trace too big"]) | {"errors": [{"code": 404, "msg": "gone"}]}
    imported, [row] = take(tmp_path, document)
    assert attributes(row)["jaeger.warnings"] == [skew]
    assert imported.notes == (
        "Jaeger reports an error: gone", "Jaeger warns: trace too big", f"Jaeger warns: {skew}",
    )  # fmt: skip


def test_one_bad_span_loses_no_other_and_is_named(tmp_path: Path) -> None:
    spans = [span(), span(spanID=""), span(spanID="2", startTime="soon"), "no span", span(spanID="3", duration=None)]
    imported, rows = take(tmp_path, answer(*spans))  # type: ignore[arg-type]
    assert [row["quality"] for row in rows] == [None, "open_end"]
    assert {why: (r.count, r.first.rpartition(" trace ")[2]) for why, r in imported.refused.items()} == {
        "invalid_span_id": (1, "1 span 2"), "invalid_time": (1, "1 span 3"), "no JSON object": (1, "1 span 4"),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["answer", "list", "trace", "lines"])
def test_every_form_of_a_trace_is_told_and_read(tmp_path: Path, form: str) -> None:
    [trace] = answer(span())["data"]
    documents = {"answer": {"data": [trace]}, "list": [trace], "trace": trace, "lines": f"{json.dumps(trace)}\n" * 2}
    imported, rows = take(tmp_path, documents[form])
    assert imported.kind is FileKind.JAEGER
    assert {row["span_id"] for row in rows} == {SPAN}


def test_a_trace_of_hours_keeps_whole_microseconds(tmp_path: Path) -> None:
    _, [row] = take(tmp_path, answer(span(duration=7_200_000_001)))
    assert row["duration_s"] == 7200.000001
    assert row["ts"].microsecond == 1


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    text = json.dumps(answer(span()), indent=1).replace('"duration"', "duration")
    line = next(number for number, text_line in enumerate(text.split("\n"), 1) if "duration" in text_line)
    with pytest.raises(SourceError, match=f":{line}: broken JSON"):
        take(tmp_path, text)


def test_json_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no trace of Jaeger"):
        take(tmp_path, {"data": []}, kind=FileKind.JAEGER)


def test_the_same_file_twice_stores_nothing_twice(tmp_path: Path) -> None:
    with Database(tmp_path / "store") as store:
        receipts = [store.append(take(tmp_path, answer(span()))[0].batches)[0] for _ in range(2)]
    assert [(r.stored.get("spans", 0), r.duplicates.get("spans", 0)) for r in receipts] == [(1, 0), (0, 1)]


def test_a_table_of_requests_with_a_trace_id_is_no_export(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"traceID": "ab", "timestamp": 1796040000, "ttft": 0.5}\n')
    assert sniff(path) is FileKind.REQUESTS
