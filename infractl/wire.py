"""Batches and receipts between a command and a server: msgpack around Arrow streams."""

from collections.abc import Sequence

import msgspec

from store import packing
from store.batch import Batch, Receipt
from store.errors import StoreError, UsageError
from store.manifest import MANIFEST
from store.rollups.tables import ROLLUPS
from store.tables import BY_NAME, INGEST_BATCH, INGEST_DROPS, STORE_STATE, TABLES

TAKEN = tuple(
    table.name
    for table in TABLES
    if table not in ROLLUPS and table not in (MANIFEST, STORE_STATE, INGEST_BATCH, INGEST_DROPS)
)
"""Tables that a sender may write to; the store writes the others itself."""
MEDIA_TYPE = "application/vnd.msgpack"


def pack(batches: Sequence[Batch]) -> bytes:
    """Encode batches; `unpack` gives equal ones."""
    return packing.pack_all(batches)


def unpack(body: bytes) -> list[Batch]:
    """Decode what `pack` made. Raises UsageError when it is something else or names an unknown table."""
    try:
        batches = packing.unpack_all(body)
    except ValueError as error:
        raise UsageError(f"the body is no list of batches: {error}", "send what infractl import sends") from error
    unknown = [name for batch in batches for name in batch.frames if name not in TAKEN]
    if unknown:
        raise UsageError(f"no rows can be sent to a table {unknown[0]!r}", "tables: " + ", ".join(TAKEN))
    for batch in batches:
        for name, frame in batch.frames.items():
            try:
                BY_NAME[name].conform(frame)
            except StoreError as error:
                raise UsageError(str(error), error.hint) from error
    return batches


def pack_receipts(items: Sequence[Receipt]) -> bytes:
    """Encode receipts as JSON."""
    return msgspec.json.encode([msgspec.to_builtins(item) for item in items])


def receipts(body: bytes) -> list[Receipt]:
    """Decode receipts."""
    return [Receipt(**item) for item in msgspec.json.decode(body)]
