"""Public captures and cases, and a recorded vLLM, through the receivers into a store."""

import base64
import csv
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_json, decode_protobuf
from collector.otlp.http import JSON, create_app
from collector.otlp.receiver import Submit
from store.database import Database
from store.errors import SourceError
from tests.collector.otlp.builders import make_request, make_span, row_of
from tests.collector.otlp.test_http import never, post

MIB = 1 << 20


@pytest.fixture(scope="module")
def cases(shared: Path) -> Path:
    return shared / "cases"


def expected(case: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((case / "expected.json").read_bytes())
    return loaded


def test_case_31_doubtful_ends_neither_lose_spans_nor_poison_durations(cases: Path) -> None:
    case = cases / "31-span-end-before-start"
    rows = decode_json((case / "traces.json").read_bytes()).frames["spans"]
    right = expected(case)
    assert rows.height == right["stored"]
    quality = dict(rows.select("name", "quality").iter_rows())
    assert [name for name, doubt in quality.items() if doubt and doubt != "long"] == right["flagged"]
    durations = dict(rows.drop_nulls("duration_s").select("name", pl.col("duration_s") * 1000).iter_rows())
    assert durations == right["duration_ms"]


@pytest.mark.parametrize("name", ["ok-hex-string-ints", "ok-uppercase", "ok-number-ints", "ok-unknown-field"])
def test_case_32_every_good_json_spelling_is_the_same_exact_span(cases: Path, name: str) -> None:
    (row,) = (
        decode_json((cases / "32-otlp-json-encoding" / f"{name}.json").read_bytes())
        .frames["spans"]
        .iter_rows(named=True)
    )
    assert row["trace_id"] == "00000000000000000000000000abc007"
    assert (row["input_tokens"], row["duration_s"]) == (9007199254740993, 0.01)


def test_case_32_base64_ids_and_snake_case_are_refused_aloud(cases: Path) -> None:
    folder = cases / "32-otlp-json-encoding"
    assert decode_json((folder / "base64-ids.json").read_bytes()).drops == {"invalid_trace_id": 1}
    with pytest.raises(SourceError, match="snake_case"):
        decode_json((folder / "snake_case.json").read_bytes())


def test_case_34_retries_even_over_a_restart_store_each_span_once(cases: Path, tmp_path: Path) -> None:
    case = cases / "34-duplicate-spans-on-retry"
    body, right = (case / "traces.json").read_bytes(), expected(case)
    for times in (2, 1):
        with Database(tmp_path) as database, ThreadPoolExecutor(1) as writer:
            app = create_app(lambda b, db=database, w=writer: w.submit(lambda: db.append([b])[0]))
            assert [post(app, body, JSON).status_code for _ in range(times)] == [200] * times
            rows = database.table("spans")
    assert (rows.height, rows["output_tokens"].sum()) == (right["spans"], right["output_tokens"])


def test_case_35_senders_get_the_status_they_can_act_on(cases: Path, submit: Submit) -> None:
    folder = cases / "35-retryable-status-codes"
    sent = {
        "malformed": lambda: post(create_app(never), (folder / "malformed.json").read_bytes(), JSON),
        "wrong-type": lambda: post(create_app(never), (folder / "traces.json").read_bytes(), "text/plain"),
        "unknown-encoding": lambda: post(
            create_app(never), (folder / "traces.json").read_bytes(), JSON, content_encoding="br"
        ),
        "empty export request": lambda: post(create_app(submit), b"{}", JSON),
    }
    right = {row["case"]: row["expect"] for row in csv.DictReader((folder / "cases.csv").open())}
    assert {name: str(send().status_code) in right[name] for name, send in sent.items()} == dict.fromkeys(sent, True)


def test_case_36_bombs_are_refused_together_and_a_good_body_still_gets_in(
    cases: Path, database: Database, submit: Submit
) -> None:
    folder = cases / "36-gzip-bomb"
    bomb, good = (folder / "bomb.json.gz").read_bytes(), (folder / "ok.json.gz").read_bytes()
    app = create_app(submit)
    for _ in range(5):
        assert post(app, bomb, JSON, content_encoding="gzip").status_code == 413
    assert post(app, gzip.compress(bomb), JSON, content_encoding="gzip").status_code == 400
    assert post(app, good, JSON, content_encoding="gzip").status_code == 200
    assert database.counts()["spans"] == 3


@pytest.mark.parametrize("store_content", [True, False])
def test_case_37_bad_bytes_cost_one_flag_and_no_span(cases: Path, store_content: bool) -> None:
    body = (cases / "37-invalid-utf8-attribute" / "traces.pb").read_bytes()
    rows = decode_protobuf(body, ContentOptions(store_content=store_content)).frames["spans"]
    assert rows["name"].to_list() == ["s1", "s2", "s3"]
    assert rows["quality"].to_list() == [None, "invalid_utf8", None]
    assert ("\ufffd" in (rows["attributes"][1] or "")) is store_content


@pytest.mark.parametrize("store_content", [True, False])
def test_case_38_huge_prompts_lose_no_span_and_fill_no_disk(cases: Path, tmp_path: Path, store_content: bool) -> None:
    case = cases / "38-huge-prompt-attributes"
    options, right = ContentOptions(store_content=store_content), expected(case)
    with Database(tmp_path) as database:
        empty_bytes = _closed_size(database)
    with Database(tmp_path) as database, ThreadPoolExecutor(1) as writer:
        app = create_app(lambda b: writer.submit(lambda: database.append([b])[0]), options)
        body = (case / "traces.json.gz").read_bytes()
        assert post(app, body, JSON, content_encoding="gzip").status_code == 200
        rows = database.table("spans")
    assert rows.height == right["spans"]
    assert rows["input_tokens"].sum() == right["input_tokens"]
    assert rows["output_tokens"].sum() == right["output_tokens"]
    assert set(rows["quality"]) == {"truncated" if store_content else None}
    assert _closed_size(database) - empty_bytes < MIB


def _closed_size(database: Database) -> int:
    """Bytes of the file after a checkpoint."""
    database.close()
    return database.path.stat().st_size


def test_case_39_both_dialects_fill_the_same_columns(cases: Path) -> None:
    rows = decode_json((cases / "39-vllm-vs-genai-attributes" / "traces.json").read_bytes()).frames["spans"]
    engine, client, old = rows.iter_rows(named=True)
    for row in (engine, client, old):
        assert (row["input_tokens"], row["output_tokens"]) == (1200, 80)
    assert (engine["ttft_s"], client["ttft_s"]) == (0.35, 0.35)
    assert (engine["ttft_source"], client["ttft_source"]) == ("server", "client")
    assert (engine["queue_s"], engine["prefill_s"], engine["decode_s"]) == (0.05, 0.3, 1.65)
    assert (client["queue_s"], client["model"], old["provider"]) == (None, "llama-70b", "openai")
    assert engine["parent_span_id"] == client["span_id"], "by which an analysis counts them as one request"


def test_the_examples_of_the_protocol_and_of_jaeger_are_read(shared: Path) -> None:
    folder = shared / "data" / "otlp_json"
    (row,) = decode_json((folder / "opentelemetry-proto_trace.json").read_bytes()).frames["spans"].iter_rows(named=True)
    assert (row["trace_id"], row["span_id"]) == ("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174")
    assert (row["name"], row["service"], row["duration_s"]) == ("I'm a server span", "my.service", 1.0)
    jaeger = json.loads((folder / "jaeger-ui_otlp2jaeger-out.json").read_bytes())["data"][0]["spans"][0]
    row = decode_json((folder / "jaeger-ui_otlp2jaeger-in.json").read_bytes()).frames["spans"].row(0, named=True)
    assert (row["trace_id"], row["span_id"], row["name"]) == (
        jaeger["traceID"],
        jaeger["spanID"],
        jaeger["operationName"],
    )
    assert row["duration_s"] == pytest.approx(jaeger["duration"] / 1e6)
    for lines in (folder / "jaeger-ui_otlp2jaeger-multi-in.json.txt").read_bytes().splitlines():
        assert decode_json(lines).rows == 1
    for other in ("metrics", "logs", "events"):
        with pytest.raises(SourceError):
            decode_json((folder / f"opentelemetry-proto_{other}.json").read_bytes())


@pytest.fixture(scope="module")
def bodies(shared: Path) -> list[bytes]:
    with gzip.open(shared / "data" / "vllm_real" / "otlp_traces.jsonl.gz") as lines:
        return [base64.b64decode(json.loads(line)["body_b64"]) for line in lines]


def test_a_recorded_vllm_gives_1458_requests_with_all_their_latencies(bodies: list[bytes], database: Database) -> None:
    for receipt in database.append([decode_protobuf(body) for body in bodies]):
        assert receipt.duplicates == {"spans": 0}
    rows = database.table("spans")
    assert rows.height == 1458
    assert set(rows["operation"]) == {"inference"}
    assert set(rows["provider"]) == {"vllm"}
    assert (rows["input_tokens"].sum(), rows["output_tokens"].sum()) == (417_761, 80_631)
    measured = ["ttft_s", "queue_s", "prefill_s", "decode_s", "inference_s", "e2e_s", "tpot_s", "request_id"]
    assert rows.select(measured).null_count().sum_horizontal().item() == 0
    assert set(rows["attributes"]) == {None}, "every attribute that vLLM sets is a column"
    assert (rows["quality"].null_count(), rows["error_code"].null_count()) == (1458, 1458)
    gap_s = (rows["ttft_s"] - rows["queue_s"] - rows["prefill_s"]).to_numpy()
    assert (gap_s >= 0).all()
    assert gap_s.max() < 1.5, "what is left of ttft_s is the API server's share"


def test_a_recorded_vllm_is_read_alike_from_one_body_and_from_many(bodies: list[bytes]) -> None:
    many = pl.concat([decode_protobuf(body).frames["spans"] for body in bodies])
    assert decode_protobuf(b"".join(bodies)).frames["spans"].equals(many)


def client_spans(shared: Path) -> tuple[list[dict[str, Any]], bytes]:
    """What the recorded client saw, and the same as an instrumented client would have sent it."""
    with gzip.open(shared / "data" / "vllm_real" / "client.jsonl.gz") as lines:
        seen = [json.loads(line) for line in lines]
    made = [
        make_span(
            {"gen_ai.operation.name": "chat", "infractl.token.offsets_us": one["chunk_offsets_us"]},
            trace_id=bytes.fromhex(one["trace_id"]),
            span_id=bytes.fromhex(one["span_id"]),
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=one["start_unix_nano"],
            end_time_unix_nano=one["start_unix_nano"] + one["duration_us"] * 1000,
        )
        for one in seen
    ]
    return seen, make_request(*made, resource={"service.name": "client"}).SerializeToString()


PAIRS = """
SELECT c.span_id AS client, e.span_id AS engine, c.ttft_s - e.ttft_s AS way_s
FROM spans c JOIN spans e ON e.trace_id = c.trace_id AND e.parent_span_id = c.span_id
WHERE c.kind = 'client' AND e.kind = 'server' AND e.operation IS NOT NULL
"""


def test_client_and_engine_of_a_recorded_vllm_pair_by_trace_and_parent(
    shared: Path, bodies: list[bytes], database: Database
) -> None:
    seen, client = client_spans(shared)
    database.append([decode_protobuf(client), *(decode_protobuf(body) for body in bodies)])
    found = pl.DataFrame(database.sql(PAIRS))
    answered = {one["span_id"] for one in seen if one["status"] == 200 and not one["aborted"] and not one["error"]}
    assert set(found["client"]) == answered
    assert found.height == found["engine"].n_unique() == 1458
    way_s = found["way_s"].to_numpy() * 1000
    assert way_s.min() > 0, "the engine sees a request after its client sent it, and the token before"
    assert np.quantile(way_s, [0.5, 0.99]) == pytest.approx([8.3, 39.3], abs=0.5)


def test_the_arrivals_of_a_recorded_client_are_stored_to_the_microsecond(shared: Path, database: Database) -> None:
    seen, client = client_spans(shared)
    database.append([decode_protobuf(client)])
    stored = dict(database.table("token_arrivals").select("span_id", "offsets_us").iter_rows())
    assert stored == {one["span_id"]: one["chunk_offsets_us"] for one in seen if one["chunk_offsets_us"]}


def test_spans_of_agent_frameworks_keep_their_text_to_themselves(shared: Path) -> None:
    for path in sorted((shared / "data" / "genai_spans").glob("openinference-genai__o*_client_span_*.json")):
        attributes = json.loads(path.read_bytes())
        row = row_of(attributes)
        assert (row["operation"] is not None, row["input_tokens"], row["output_tokens"]) == (True, 97, 52), path.name
        assert (row["model"], row["provider"]) == ("gpt-4-0613", "openai"), path.name
        assert "rainy" not in str(row), path.name
