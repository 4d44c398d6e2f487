"""Events of a message → rows of `kv_events`. Token ids are prompt content: they are counted and let go."""

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec
import orjson
import polars as pl

from collector.kv_events.message import Event, Message
from store.tables import KV_EVENTS

UNKNOWN, UNREADABLE = "unknown_event", "unreadable_event"
_KINDS = {"BlockStored": "stored", "BlockRemoved": "removed", "AllBlocksCleared": "cleared"}
_COLUMNS = frozenset({"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "medium", "extra_keys"})
_MASK = 2**64 - 1
_INT64 = 2**63

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a stream comes from: its name, and the service and address of its engine where they are known."""

    stream: str
    service: str | None = None
    instance: str | None = None


@dataclass(slots=True)
class Rows:
    """Rows that wait to become a frame, and what was refused, by reason."""

    rows: list[Row] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)

    def add(self, origin: Origin, sequence: int, message: Message) -> int:
        """Take the events of a message over; one that cannot be read leaves the others. Return how many were taken."""
        before = len(self.rows)
        ts_us = round(message.ts_s * 1_000_000)
        head = (origin.stream, sequence)
        for position, event in enumerate(message.events):
            kind = _KINDS.get(event["type"]) if event else None
            if event is None or kind is None:
                self.drops[UNKNOWN] += 1
                continue
            try:
                self.rows.append((*head, position, ts_us, origin.service, origin.instance, kind, *_values(event)))
            except (TypeError, ValueError):
                self.drops[UNREADABLE] += 1
        return len(self.rows) - before

    def clear(self) -> None:
        """Forget what was taken over."""
        self.rows.clear()
        self.drops.clear()

    def frame(self) -> pl.DataFrame:
        """Return the rows as a frame of `kv_events`."""
        schema = {**KV_EVENTS.schema(), "ts": pl.Int64()}
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(schema)
        values = {
            name: pl.Series(name, column, kind) for (name, kind), column in zip(schema.items(), columns, strict=True)
        }
        return KV_EVENTS.conform(pl.DataFrame(values).with_columns(pl.col("ts").cast(pl.Datetime("us"))))


def fold(value: object) -> int:
    """Return a block hash as 64 bits: an integer as it is (a negative one as its two's complement), bytes hashed.

    Raises TypeError for what is no hash.
    """
    if type(value) is int:
        return value & _MASK
    if isinstance(value, str):
        value = value.encode(errors="surrogatepass")
    if isinstance(value, bytes):
        return int.from_bytes(blake2b(value, digest_size=8).digest(), "big")
    raise TypeError(f"no block hash: {value!r}")


def _values(event: Event) -> Row:
    """Columns from block_hashes on. Raises TypeError or ValueError where one is not of its kind."""
    hashes = event.get("block_hashes")
    if event["type"] != "AllBlocksCleared" and not isinstance(hashes, list):
        raise TypeError("no list of block hashes")
    parent, tokens = event.get("parent_block_hash"), event.get("token_ids")
    return (
        None if hashes is None else [fold(value) for value in hashes],
        None if parent is None else fold(parent),
        None if tokens is None else len(tokens),
        _number(event.get("block_size")),
        _text(event.get("medium")),
        _attributes(event),
    )


def _number(value: object) -> int | None:
    if value is None or (type(value) is int and 0 <= value < _INT64):
        return value
    raise TypeError(f"no number of tokens: {value!r}")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _attributes(event: Event) -> str | None:
    """Return the rest of an event as JSON; the keys beside its tokens (image, salt of a tenant) only as hashes."""
    rest = {name: value for name, value in event.items() if name not in _COLUMNS and value is not None}
    if any(keys := event.get("extra_keys") or ()):
        rest["extra_keys"] = [_digest(key) for key in keys]
    return orjson.dumps(rest, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode() if rest else None


def _digest(key: object) -> str | None:
    return None if key is None else blake2b(msgspec.msgpack.encode(key), digest_size=8).hexdigest()


def _plain(value: object) -> str:
    """Return what JSON cannot say as text."""
    return value.hex() if isinstance(value, bytes) else repr(value)
