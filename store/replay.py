"""Appends journal entries again: what is stored already is left as it is, what cannot be stored is named."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from store.appending import JOURNAL_MARK, Prepared, conformed, insert, mark, record
from store.batch import Batch, Receipt
from store.errors import BusyError, StoreError
from store.tables import BY_NAME

if TYPE_CHECKING:
    import duckdb
    import polars as pl

GROUP_ROWS = 100_000
Transaction = Callable[[], "AbstractContextManager[duckdb.DuckDBPyConnection]"]


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that cannot be stored, and why."""

    sequence: int
    batch: Batch
    why: str


@dataclass(slots=True)
class Replayed:
    """Entries and rows that were read, rows that were not stored before, and the entries that were refused."""

    entries: int = 0
    rows: int = 0
    stored: int = 0
    first_ts: datetime | None = None
    last_ts: datetime | None = None
    refused: list[Refused] = field(default_factory=list)

    def take(self, item: Prepared) -> None:
        """Count an entry."""
        self.entries += 1
        for name, frame in item.batch.frames.items():
            self.rows += frame.height
            time = BY_NAME[name].time
            if time is not None and frame.height:
                low, high = frame[time].min(), frame[time].max()
                if isinstance(low, datetime) and isinstance(high, datetime):
                    self.first_ts = min(low, self.first_ts or low)
                    self.last_ts = max(high, self.last_ts or high)


@dataclass(frozen=True, slots=True)
class _Entry:
    sequence: int
    item: Prepared


def replay(transaction: Transaction, lake: str, entries: Iterable[tuple[int, Batch]]) -> Replayed:
    """Append entries in groups, each in a transaction with its mark.

    A batch that the ledger knows is not entered there again; of others it gets all rows as stored. Raises StoreError
    where the disk does not take a group; groups before it are stored.
    """
    done = Replayed()
    for group in _groups(entries, done):
        done.stored += _apply_each(transaction, lake, group, done)
    return done


def _groups(entries: Iterable[tuple[int, Batch]], done: Replayed) -> Iterator[list[_Entry]]:
    group: list[_Entry] = []
    rows = 0
    for sequence, batch in entries:
        try:
            item = conformed(batch)
        except (StoreError, KeyError) as error:
            done.refused.append(Refused(sequence, batch, str(error)))
            continue
        done.take(item)
        group.append(_Entry(sequence, item))
        rows += item.batch.rows
        if rows >= GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _apply_each(transaction: Transaction, lake: str, group: list[_Entry], done: Replayed) -> int:
    """Append a group; where that fails, its halves, so that one bad entry is left out alone."""
    try:
        with transaction() as cursor:
            return _apply(cursor, lake, group)
    except BusyError:
        raise
    except StoreError as error:
        if _is_disk(error):
            raise
        if len(group) == 1:
            done.refused.append(Refused(group[0].sequence, group[0].item.batch, str(error)))
            return 0
        middle = len(group) // 2
        return sum(_apply_each(transaction, lake, half, done) for half in (group[:middle], group[middle:]))


def _apply(cursor: "duckdb.DuckDBPyConnection", lake: str, group: list[_Entry]) -> int:
    known = _known(cursor, [entry.item.batch.batch_id for entry in group])
    stored = sum(
        insert(cursor, BY_NAME[name], rows, lake)
        for name in dict.fromkeys(name for entry in group for name in entry.item.batch.frames)
        for rows in _merged(name, group)
    )
    for entry in group:
        batch = entry.item.batch
        if batch.batch_id not in known:
            heights = {name: frame.height for name, frame in batch.frames.items()}
            record(cursor, batch, Receipt(batch.batch_id, heights, dict.fromkeys(heights, 0)), entry.sequence)
    mark(cursor, JOURNAL_MARK, group[-1].sequence)
    return stored


def _merged(name: str, group: list[_Entry]) -> "list[pl.DataFrame]":
    """Frames of a table in the group, as one unless their order matters."""
    import polars as pl

    table = BY_NAME[name]
    frames = [e.item.batch.frames[name] for e in group if name in e.item.batch.frames]
    if table.refreshed:
        return frames
    return [pl.concat(frames).unique(list(table.key), keep="first", maintain_order=True)]


def _known(cursor: "duckdb.DuckDBPyConnection", batch_ids: list[str]) -> set[str]:
    """Return which of the batches the ledger has."""
    text = " UNION ".join(
        f"SELECT batch_id FROM {table} WHERE batch_id IN (SELECT unnest($1))"
        for table in ("ingest_batch", "ingest_drops")
    )
    return {row[0] for row in cursor.execute(text, [batch_ids]).fetchall()}


def _is_disk(error: StoreError) -> bool:
    """Whether the fault is the disk's, or the memory's, and not the batch's."""
    import duckdb

    return isinstance(error.__cause__, duckdb.FatalException | duckdb.IOException | duckdb.OutOfMemoryException)
