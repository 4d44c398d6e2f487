"""The wait of an SGLang request, from its stage spans."""

from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.decode import decode_protobuf
from tests.collector.otlp.builders import START_NS, make_request, make_span

FINISHED = {"module": "sglang::request", "gen_ai.latency.time_in_model_inference": 0.5}


def one(number: int, above: int, name: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    parent = above.to_bytes(8, "big") if above else b""
    return make_span(attributes, span_id=number.to_bytes(8, "big"), parent_span_id=parent, name=name, **fields)


def queues(*spans: Span) -> dict[str, float | None]:
    frame = decode_protobuf(make_request(*spans).SerializeToString()).frames["spans"]
    return dict(frame.select("name", "queue_s").iter_rows())


def test_the_wait_of_a_stage_is_the_queue_of_the_request_above_it() -> None:
    waiting = one(3, 2, "prefill_waiting", end_time_unix_nano=START_NS + 40_000_000)
    found = queues(waiting, one(2, 1, "Scheduler [TP 0]"), one(1, 9, " Req abc", FINISHED))
    assert found == {"prefill_waiting": None, "Scheduler [TP 0]": None, " Req abc": 0.04}


def test_a_stated_queue_is_kept_and_a_missing_request_or_a_circle_does_no_harm() -> None:
    waiting = one(3, 1, "prefill_waiting")
    stated = one(1, 0, "r", FINISHED | {"gen_ai.latency.time_in_queue": 0.2})
    assert queues(waiting, stated)["r"] == 0.2
    assert queues(waiting) == {"prefill_waiting": None}
    assert queues(waiting, one(1, 3, "r")) == {"prefill_waiting": None, "r": None}


def test_prefill_of_sglang_says_that_the_queue_is_in_it() -> None:
    prefill = {"gen_ai.latency.time_in_model_prefill": 0.3}
    for module, doubt in (("sglang::request", "queue_in_prefill"), ("vllm", None)):
        request = make_request(make_span(prefill | {"module": module}))
        assert decode_protobuf(request.SerializeToString()).frames["spans"]["quality"].item() == doubt
