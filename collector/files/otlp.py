"""OTLP in files: one JSON document, a document a line (the OTel Collector's file exporter), or protobuf."""

from collections import Counter
from collections.abc import Iterator

import orjson
import polars as pl

from collector.files.content import Content, Format
from collector.files.documents import line_of_break
from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_json, decode_protobuf
from store.batch import Batch
from store.errors import SourceError

_LENGTH_BYTES = 4  # the file exporter writes each protobuf message after its length, big-endian


def decode_otlp(content: Content, keep: ContentOptions, source: str) -> Batch:
    """Return the spans of a file as one batch; its drops count the spans refused.

    Raises SourceError, naming the line, for a document that is no OTLP trace request.
    """
    batches = list(_protobuf(content, keep) if content.format is Format.OTLP_PROTOBUF else _json(content, keep))
    frames = [batch.frames["spans"] for batch in batches if "spans" in batch.frames]
    drops: Counter[str] = Counter()
    for batch in batches:
        drops.update(batch.drops)
    return Batch(source, {"spans": pl.concat(frames)} if frames else {}, dict(drops))


def _json(content: Content, keep: ContentOptions) -> Iterator[Batch]:
    """Batches of the documents; the bytes go to the decoder as they are, which repairs what is no UTF-8."""
    for line, body in _documents(content.body):
        try:
            yield decode_json(body, keep)
        except SourceError as error:
            broken = line_of_break(body.decode(errors="replace")) or 1
            raise SourceError(f"{content.path}:{line + broken - 1}: {error}", error.hint) from error


def _documents(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the whole file, or each line where the first one is a document by itself."""
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    try:
        orjson.loads(lines[0][1])
    except orjson.JSONDecodeError:
        yield 1, body
        return
    yield from lines


def _protobuf(content: Content, keep: ContentOptions) -> Iterator[Batch]:
    for number, body in enumerate(_messages(content), 1):
        try:
            yield decode_protobuf(body, keep)
        except SourceError as error:
            raise SourceError(f"{content.path} message {number}: {error}", error.hint) from error


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
