"""OTLP in files: one JSON document, a document a line (the OTel Collector's file exporter), or protobuf.

Traces and metrics are taken, also where lines of both stand in one file. Log records are counted as refused: a log
store is the place for them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import polars as pl

from collector.files.content import Content, Format
from collector.files.documents import line_of_break
from collector.files.labels import label_metrics, label_requests
from collector.files.options import ImportOptions
from collector.otlp.decode import decode_json, decode_protobuf
from collector.otlp.logs import records
from collector.otlp.metrics import MetricsDecoder
from store.batch import Batch
from store.errors import SourceError, UsageError
from store.tables import METRIC_SERIES

LOGS = "OTLP log record: traces and metrics are taken, logs are not"
"""Reason for which log records are refused."""
_LENGTH_BYTES = 4  # the file exporter writes each protobuf message after its length, big-endian
_NO_SPAN = frozenset({"invalid_trace_id", "invalid_span_id"})  # what metrics read as spans are refused for
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)  # a file has no clock that its times could run ahead of


def decode_otlp(content: Content, options: ImportOptions, source: str) -> Batch:
    """Return the spans and samples of a file as one batch; its drops count what is refused.

    Raises SourceError, naming the line, for a document that is no OTLP request, and for a file of logs alone.
    """
    protobuf = content.format is Format.OTLP_PROTOBUF
    batches = list(_protobuf(content, options) if protobuf else _json(content, options))
    drops: Counter[str] = Counter()
    for batch in batches:
        drops.update(batch.drops)
    if drops[LOGS] and not any(batch.rows for batch in batches):
        raise SourceError(
            f"{content.path}: {drops[LOGS]} OTLP log records and nothing else; infractl takes traces and metrics",
            "import the traces of the same program: what an event says of a request is on its span",
        )
    return Batch(source, _joined(batches, options.labels), dict(drops))


def _joined(batches: list[Batch], labels: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    names = dict.fromkeys(name for batch in batches for name in batch.frames)
    frames = {name: pl.concat([b.frames[name] for b in batches if name in b.frames]) for name in names}
    if METRIC_SERIES.name in frames:
        frames[METRIC_SERIES.name] = frames[METRIC_SERIES.name].unique("series_id", keep="first", maintain_order=True)
    return label_requests(frames, labels)


def _json(content: Content, options: ImportOptions) -> Iterator[Batch]:
    """Batches of the documents; the bytes go to the decoder as they are, which repairs what is no UTF-8."""
    metrics = MetricsDecoder()
    for line, body in _documents(content.body):
        try:
            yield _decode(body, options, metrics)
        except SourceError as error:
            broken = line_of_break(body.decode(errors="replace")) or 1
            raise SourceError(f"{content.path}:{line + broken - 1}: {error}", error.hint) from error


def _decode(body: bytes, options: ImportOptions, metrics: MetricsDecoder) -> Batch:
    """Decode one document by the signal it holds; one that cannot be told is the trace decoder's to refuse."""
    document = _object(body) if b'"resourceMetrics"' in body or b'"resourceLogs"' in body else {}
    if "resourceMetrics" in document:
        if options.labels:
            body = orjson.dumps(label_metrics(document, options.labels))
        pushed = metrics.decode_json(body, _LATEST)
        metrics.committed(pushed)
        return pushed.batch
    if "resourceLogs" in document:
        return Batch("otlp", {}, {LOGS: sum(1 for _ in records(document["resourceLogs"]))})
    return decode_json(body, options.content)


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _documents(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the whole file, or each line where the first one is a document by itself."""
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    try:
        orjson.loads(lines[0][1])
    except orjson.JSONDecodeError:
        yield 1, body
        return
    yield from lines


def _protobuf(content: Content, options: ImportOptions) -> Iterator[Batch]:
    metrics = MetricsDecoder()
    for number, body in enumerate(_messages(content), 1):
        try:
            batch = decode_protobuf(body, options.content)
            told = batch.rows or set(batch.drops) - _NO_SPAN or not batch.drops
            yield batch if told else _metrics(body, options, metrics) or batch
        except SourceError as error:
            raise SourceError(f"{content.path} message {number}: {error}", error.hint) from error


def _metrics(body: bytes, options: ImportOptions, metrics: MetricsDecoder) -> Batch | None:
    """Decode a message in which no span has an id; None where it holds no metrics either.

    On the wire the messages of both signals begin alike, and nothing in them says which one it is.
    """
    try:
        pushed = metrics.decode_protobuf(body, _LATEST)
    except SourceError:
        return None
    if not pushed.batch.rows:
        return None
    if options.labels:
        raise UsageError("--label does not apply to metrics in protobuf", "import them as JSON, or without --label")
    metrics.committed(pushed)
    return pushed.batch


def _messages(content: Content) -> Iterator[bytes]:
    """Yield the one message of a file, or those of the file exporter, each after its length."""
    body = content.body
    if body[:1] != b"\x00":
        yield body
        return
    at = 0
    while at < len(body):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(body[at:start], "big")
        if at > len(body):
            raise SourceError(f"{content.path}: the last message is cut short", "fetch the file again")
        yield body[start:at]
