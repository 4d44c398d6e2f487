"""What of a round is stored: spans with their phases, arrivals, and nothing that was said."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from collector.probe.config import ProbeConfig, compile_probe
from collector.probe.rounds import probe_round
from collector.probe.rows import batch_of
from store.batch import Batch
from store.database import Database
from tests.collector.probe.server import FIRST_S, Engine, Script
from tests.rules.servers import free_port


def batch(url: str, **config: Any) -> Batch:
    probe = compile_probe(ProbeConfig(url=url, **config))
    return batch_of(probe, asyncio.run(probe_round(probe)))


def test_a_model_request_is_a_client_span_with_its_phases_below(served: Engine) -> None:
    port = served.address.rpartition(":")[2]
    made = batch(f"http://localhost:{port}/v1", service="chat", environment="prod", prompt="say it")
    root, *phases = made.frames["spans"].to_dicts()
    expected = {
        "name": "chat tiny", "kind": "client", "status": "unset", "operation": "chat", "service": "chat",
        "environment": "prod", "server_address": f"localhost:{port}", "request_model": "tiny", "model": "tiny-2",
        "response_model": "tiny-2", "input_tokens": 7, "output_tokens": 3, "ttft_source": "client", "stream": True,
        "finish_reason": "length", "max_tokens": 32, "request_id": "r-1", "error_code": None, "resend_count": 0,
        "parent_span_id": None,
    }  # fmt: skip
    assert {name: root[name] for name in expected} == expected
    assert root["ttft_s"] >= FIRST_S
    assert root["e2e_s"] == root["duration_s"] >= root["ttft_s"]
    good = [phase for phase in phases if phase["status"] == "unset"]
    assert [phase["name"] for phase in good] == ["dns.lookup", "connect"]
    for phase in phases:
        assert (phase["trace_id"], phase["parent_span_id"]) == (root["trace_id"], root["span_id"])
        assert phase["operation"] is None
        assert root["ts"] <= phase["ts"]
    assert served.requests[0].headers["traceparent"].split("-")[1:3] == [root["trace_id"], root["span_id"]]


def test_arrivals_are_those_of_the_span_in_order(served: Engine) -> None:
    served.script = Script(pieces=("a b ", "c d ", "e "), usages=(2, 4, 5), total=5, owner="vllm")
    made = batch(f"http://{served.address}/v1")
    [row] = made.frames["token_arrivals"].to_dicts()
    span = made.frames["spans"].row(0, named=True)
    assert [row[key] for key in ("trace_id", "span_id", "ts")] == [span[key] for key in ("trace_id", "span_id", "ts")]
    assert row["measured_by"] == "client"
    assert row["tokens"] == [2, 2, 1]
    assert row["offsets_us"] == sorted(row["offsets_us"])
    assert row["offsets_us"][0] == int(span["ttft_s"] * 1e6)


def test_nothing_that_was_said_is_stored(served: Engine) -> None:
    made = batch(f"http://me:pass@{served.address}/v1?api_key=k3y", prompt="private question", headers={"x-key": "k4y"})
    text = "".join(frame.write_json() for frame in made.frames.values())
    for said in ("private", "question", "three", "pass", "k3y", "k4y"):
        assert said not in text
    assert "<secret>" in text


def test_a_failed_attempt_is_an_error_span_without_what_was_not_measured(served: Engine) -> None:
    served.script.status = 429
    made = batch(f"http://{served.address}/v1")
    row = made.frames["spans"].row(0, named=True)
    assert (row["status"], row["error_code"], row["operation"]) == ("error", "HTTP_429", "chat")
    assert row["ttft_s"] is None
    assert row["ttft_source"] is None
    assert row["output_tokens"] is None
    assert "token_arrivals" not in made.frames
    refused = batch(f"http://127.0.0.1:{free_port()}/v1", model="m").frames["spans"].to_dicts()
    assert [(one["name"], one["error_code"]) for one in refused] == [
        ("chat m", "CONNECTION_REFUSED"),
        ("connect", "CONNECTION_REFUSED"),
    ]


def test_pages_and_ports_are_no_model_requests(served: Engine) -> None:
    for url, name in ((f"http://{served.address}/x", "GET"), (f"tcp://{served.address}", "tcp")):
        row = batch(url).frames["spans"].row(0, named=True)
        assert (row["name"], row["operation"], row["kind"], row["e2e_s"]) == (name, None, "client", None)


def test_a_round_is_stored_whole_and_once(served: Engine, tmp_path: Path) -> None:
    made = batch(f"http://{served.address}/v1", count=3)
    with Database(tmp_path / "data") as database:
        database.append([made])
        database.append([made])
        counts = database.counts()
    assert (counts["spans"], counts["token_arrivals"]) == (6, 3)  # each attempt and its connect


@pytest.mark.parametrize("keep", [True, False])
def test_new_and_kept_connections_are_told_apart(served: Engine, keep: bool) -> None:
    made = batch(f"http://{served.address}/v1", count=2, keep_alive=keep, model="m")
    found = [text for text in made.frames["spans"]["attributes"] if "infractl.probe.connection" in text]
    assert ["reused" in text for text in found] == [False, keep]
