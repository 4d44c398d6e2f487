"""Batches and receipts between a command and a server: msgpack around Arrow streams."""

import io
from collections.abc import Sequence
from typing import Any

import msgspec

from store.batch import Batch, Receipt
from store.errors import UsageError
from store.tables import BY_NAME

MEDIA_TYPE = "application/vnd.msgpack"


def pack(batches: Sequence[Batch]) -> bytes:
    """Encode batches; `unpack` gives equal ones."""
    return msgspec.msgpack.encode(
        [
            {
                "batch_id": batch.batch_id,
                "source": batch.source,
                "drops": dict(batch.drops),
                "frames": {name: _stream(frame) for name, frame in batch.frames.items()},
            }
            for batch in batches
        ]
    )


def unpack(body: bytes) -> list[Batch]:
    """Decode what `pack` made. Raises UsageError when it is something else."""
    import polars as pl

    try:
        return [
            Batch(
                item["source"],
                {_table(name): pl.read_ipc_stream(data) for name, data in item["frames"].items()},
                item["drops"],
                item["batch_id"],
            )
            for item in msgspec.msgpack.decode(body)
        ]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"the body is no list of batches: {error}", "send what infractl import sends") from error


def pack_receipts(items: Sequence[Receipt]) -> bytes:
    """Encode receipts as JSON."""
    return msgspec.json.encode([msgspec.to_builtins(item) for item in items])


def receipts(body: bytes) -> list[Receipt]:
    """Decode receipts."""
    return [Receipt(**item) for item in msgspec.json.decode(body)]


def _table(name: str) -> str:
    if name not in BY_NAME:
        raise UsageError(f"there is no table {name!r}", "tables: " + ", ".join(BY_NAME))
    return name


def _stream(frame: Any) -> bytes:
    out = io.BytesIO()
    frame.write_ipc_stream(out)
    return out.getvalue()
