"""Recorded messages of a KV-event stream: a JSON line each, with topic, sequence and the payload in base64."""

import binascii
import re
from base64 import b64decode

import msgspec
import polars as pl

from collector.files.blocks.mooncake import refuse
from collector.files.content import Content, Format
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal
from collector.kv_events.message import read_payload
from collector.kv_events.rows import Origin, Rows
from collector.kv_events.sequence import Cursor, Seen
from store.errors import SourceError, UsageError

_TOLD = re.compile(r'^\s*\{(?=[^\n]*"seq"\s*:\s*\d)(?=[^\n]*"payload_b64"\s*:\s*")')
_LABELS = ("service", "instance")


class _Line(msgspec.Struct):
    seq: int
    payload_b64: str
    topic: str = ""


def is_recording(content: Content) -> bool:
    """Tell whether a file is a record of messages."""
    return content.format is Format.JSON and _TOLD.match(content.head) is not None


def read_recording(
    content: Content, options: ImportOptions, refused: dict[str, Refusal]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the events of a record, and remarks on messages that are missing or where the engine began again.

    A message or event that cannot be read goes into `refused`. Raises UsageError for a label that events do not have.
    """
    for name in options.labels:
        if name not in _LABELS:
            raise UsageError(f"--label {name} is nothing that KV events have", f"labels: {', '.join(_LABELS)}")
    rows, decoder = Rows(), msgspec.json.Decoder(_Line)
    cursors: dict[tuple[str, int | None], Cursor] = {}
    restarts = 0
    for number, text in enumerate(content.text().split("\n"), 1):
        if not text.strip():
            continue
        where = f"{content.path}:{number}"
        try:
            line = decoder.decode(text)
            message = read_payload(b64decode(line.payload_b64, validate=True))
        except (msgspec.DecodeError, binascii.Error, SourceError):
            refuse(refused, "no message of KV events", where)
            continue
        key = (line.topic, message.rank)
        seen = cursors.setdefault(key, Cursor()).take(line.seq, message.ts_s, live=True)
        restarts += seen is Seen.RESTARTED
        rows.add(_origin(content.stem, key, options), line.seq, message)
        for reason, count in rows.drops.items():
            for _ in range(count):
                refuse(refused, reason, where)
        rows.drops.clear()
    return rows.frame(), _remarks(cursors, restarts)


def _origin(stem: str, key: tuple[str, int | None], options: ImportOptions) -> Origin:
    topic, rank = key
    parts = (stem, topic, f"rank{rank}" if rank else "")
    stream = "/".join(part for part in parts if part)
    return Origin(stream, options.labels.get("service"), options.labels.get("instance"))


def _remarks(cursors: dict[tuple[str, int | None], Cursor], restarts: int) -> tuple[str, ...]:
    missing = sum(cursor.missing() + cursor.lost for cursor in cursors.values())
    remarks = []
    if missing:
        remarks.append(f"{missing} messages are missing between those recorded (their sequence numbers are not there)")
    if restarts:
        remarks.append(f"the engine began again {restarts} times (sequence numbers start anew)")
    return tuple(remarks)
