"""The signals of OTLP as what a receiver does with a body: decode it, take note of the commit, answer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from collector.otlp.answers import export_response, logs_response, metrics_response
from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_json, decode_protobuf
from collector.otlp.logs import count_json, count_protobuf
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import LOGS, METRICS, TRACES
from collector.push.batch import Pushed

PROTOBUF, JSON = "application/x-protobuf", "application/json"
Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal by its name in counts; `decoders` by content type, `respond` gives the message of an answer."""

    name: str
    decoders: dict[str, Callable[[bytes], Pushed]]
    committed: Callable[[Pushed], None]
    respond: Callable[[Pushed], Any]


def traces(options: ContentOptions) -> Signal:
    """Return what is done with spans: nothing is remembered between bodies."""
    decoders = {
        PROTOBUF: lambda body: Pushed(decode_protobuf(body, options)),
        JSON: lambda body: Pushed(decode_json(body, options)),
    }
    return Signal(TRACES, decoders, lambda _: None, lambda pushed: export_response(pushed.batch))


def metrics(decoder: MetricsDecoder, clock: Clock = lambda: datetime.now(UTC)) -> Signal:
    """Return what is done with metrics; `clock` (aware) is what times are held against."""
    decoders = {
        PROTOBUF: lambda body: decoder.decode_protobuf(body, clock()),
        JSON: lambda body: decoder.decode_json(body, clock()),
    }
    return Signal(METRICS, decoders, decoder.committed, metrics_response)


def logs() -> Signal:
    """Return what is done with log records: they are counted as refused."""
    decoders = {PROTOBUF: lambda body: Pushed(count_protobuf(body)), JSON: lambda body: Pushed(count_json(body))}
    return Signal(LOGS, decoders, lambda _: None, lambda pushed: logs_response(pushed.batch))
