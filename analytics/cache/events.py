"""Pollution from the events of an engine: what it stored again after it had removed it, and what nobody used.

Events do not show hits. Those come from the engine's counters; without them only blocks that were stored count as
accesses. A block counts as used once another request continues it: a second block is stored behind it, or one
comes `idle` seconds after it. So redundant is an estimate: too high by prompts that end exactly with a cached
block, which show nowhere, and too low by a request that decodes a block for longer than `idle`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

COLUMNS = ("ts", "expired", "redundant", "pending", "medium", "life_s", "moved", "present")


@dataclass(slots=True)
class _Block:
    """A block that is present: the row of its store, and whether anything used it."""

    row: int
    ts_s: float
    parent: int | None
    used: bool = False
    child: int | None = None


@dataclass(slots=True)
class _Replay:
    """State of one engine and its rows, one per block stored."""

    idle_s: float
    rows: list[list[Any]] = field(default_factory=list)
    present: dict[tuple[str, int], _Block] = field(default_factory=dict)
    gone: set[tuple[str, int]] = field(default_factory=set)
    removed: dict[str, int] = field(default_factory=dict)

    def store(self, ts: Any, ts_s: float, medium: str, blocks: list[int], parent: int | None) -> None:
        for block in blocks:
            key = (medium, block)
            self._use(medium, parent, block, ts_s)
            moved = any((other, block) in self.present for other in self.removed if other != medium)
            again = key in self.present
            self.rows.append([ts, key in self.gone, again, not again, medium, None, moved, not again])
            self.gone.discard(key)
            if not again:
                self.present[key] = _Block(len(self.rows) - 1, ts_s, parent)
            parent = block

    def _use(self, medium: str, parent: int | None, child: int, ts_s: float) -> None:
        """Note that a block is continued: by the request that stored it, or by a later one."""
        at = None if parent is None else self.present.get((medium, parent))
        if at is None:
            return
        later = ts_s - at.ts_s > self.idle_s or (at.child is not None and at.child != child)
        at.child = child
        while later and at is not None and not at.used:
            at.used = True
            at = None if at.parent is None else self.present.get((medium, at.parent))

    def remove(self, ts_s: float, medium: str, blocks: list[int]) -> None:
        for block in blocks:
            found = self.present.pop((medium, block), None)
            if found is None:
                continue
            self.gone.add((medium, block))
            self.removed[medium] = self.removed.get(medium, 0) + 1
            row = self.rows[found.row]
            row[2], row[5] = row[2] or not found.used, ts_s - found.ts_s
            row[3] = row[7] = False

    def clear(self, ts_s: float) -> None:
        """Empty the cache: blocks that a person or a restart dropped are no pollution."""
        for found in self.present.values():
            row = self.rows[found.row]
            row[3] = row[7] = False
            row[5] = ts_s - found.ts_s
        self.present.clear()
        self.gone.clear()

    def end(self) -> None:
        """Leave only unused blocks pending."""
        for found in self.present.values():
            self.rows[found.row][3] = not found.used


def replay(rows: pl.DataFrame, idle_s: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """Follow the events of every stream; return one row per block stored, and what was removed per medium.

    A block is expired where the same engine had removed it before, redundant where it was there already or was
    removed unused.
    """
    parts: list[list[Any]] = []
    removed: dict[str, int] = {}
    for stream in rows.partition_by("stream", maintain_order=True) if rows.height else []:
        state = _Replay(idle_s, removed=dict.fromkeys(_media(stream), 0))
        for ts, ts_s, kind, blocks, parent, medium in _ordered(stream):
            if kind == "stored":
                state.store(ts, ts_s, medium, blocks, parent)
            elif kind == "removed":
                state.remove(ts_s, medium, blocks)
            elif kind == "cleared":
                state.clear(ts_s)
        state.end()
        parts += state.rows
        for medium, count in state.removed.items():
            removed[medium] = removed.get(medium, 0) + count
    types: Any = dict(
        zip(COLUMNS, (pl.Datetime("us"), *[pl.Boolean] * 3, pl.String, pl.Float64, *[pl.Boolean] * 2), strict=True)
    )
    return pl.DataFrame(parts, schema=types, orient="row").sort("ts", maintain_order=True), removed


def _media(stream: pl.DataFrame) -> list[str]:
    return [str(name) for name in stream["medium"].fill_null("").unique(maintain_order=True)]


def _ordered(stream: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Events in the order in which the engine sent them: sequences start anew with it, so time comes first."""
    return iter(
        stream.sort("ts", "sequence", "position", maintain_order=True)
        .select(
            "ts",
            (pl.col("ts").dt.epoch("us") / 1e6).alias("ts_s"),
            "kind",
            pl.col("block_hashes").fill_null(pl.lit([], dtype=pl.List(pl.UInt64))),
            "parent_block_hash",
            pl.col("medium").fill_null(""),
        )
        .rows()
    )
