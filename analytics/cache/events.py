"""Pollution from the events of an engine: what it stored again after it had removed it, and what nobody used.

Events do not show hits. Those come from the engine's counters; without them only blocks that were stored count as
accesses. A block counts as used once another request continues it: a second block is stored behind it, or one
comes `idle` seconds after it. So redundant is an estimate: too high by prompts that end exactly with a cached
block, which show nowhere, and too low by a request that decodes a block for longer than `idle`.
"""

from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import polars as pl

Key = tuple[str, int]
"""Medium and block."""
_FLAGS = ("expired", "redundant", "pending", "moved", "present", "evicted")


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
    """State of one engine and, per block stored, what became of it."""

    idle_s: float
    media: list[str]
    present: dict[Key, _Block] = field(default_factory=dict)
    gone: set[Key] = field(default_factory=set)
    removed: dict[str, int] = field(default_factory=dict)
    age_s: list[float | None] = field(default_factory=list)
    flags: dict[str, list[bool]] = field(default_factory=lambda: {name: [] for name in _FLAGS})

    def store(self, ts_s: float, medium: str, block: int, parent: int | None) -> None:
        key = (medium, block)
        if parent is not None:
            self._use(medium, parent, block, ts_s)
        again = key in self.present
        flags = self.flags
        flags["expired"].append(key in self.gone)
        flags["redundant"].append(again)
        flags["pending"].append(not again)
        flags["present"].append(not again)
        flags["evicted"].append(False)
        flags["moved"].append(len(self.media) > 1 and self._elsewhere(medium, block))
        self.age_s.append(None)
        self.gone.discard(key)
        if not again:
            self.present[key] = _Block(len(self.age_s) - 1, ts_s, parent)

    def _elsewhere(self, medium: str, block: int) -> bool:
        return any((other, block) in self.present for other in self.media if other != medium)

    def _use(self, medium: str, parent: int, child: int, ts_s: float) -> None:
        """Note that a block is continued: by the request that stored it, or by a later one."""
        at = self.present.get((medium, parent))
        if at is None:
            return
        later = ts_s - at.ts_s > self.idle_s or (at.child is not None and at.child != child)
        at.child = child
        while later and at is not None and not at.used:
            at.used = True
            at = None if at.parent is None else self.present.get((medium, at.parent))

    def remove(self, ts_s: float, medium: str, block: int) -> None:
        found = self.present.pop((medium, block), None)
        if found is None:
            return
        self.gone.add((medium, block))
        self.removed[medium] += 1
        if not found.used:
            self.flags["redundant"][found.row] = True
        self.flags["evicted"][found.row] = True
        self._leave(found, ts_s)

    def _leave(self, found: _Block, ts_s: float) -> None:
        self.flags["pending"][found.row] = self.flags["present"][found.row] = False
        self.age_s[found.row] = ts_s - found.ts_s

    def clear(self, ts_s: float) -> None:
        """Empty the cache: blocks that a person or a restart dropped are no pollution."""
        for found in self.present.values():
            self._leave(found, ts_s)
        self.present.clear()
        self.gone.clear()

    def end(self, ts_s: float) -> None:
        """Leave only unused blocks pending; what is present has been seen to live this long."""
        for found in self.present.values():
            self.flags["pending"][found.row], self.age_s[found.row] = not found.used, ts_s - found.ts_s


def replay(rows: pl.DataFrame, idle_s: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """Follow the events of every stream; return one row per block stored, and what was removed per medium.

    A block is expired where the same engine had removed it before, redundant where it was there already or was
    removed unused. `age_s` is how long it was there: until it was removed (`evicted`), or as far as it was seen.
    """
    types: Any = {"ts": pl.Datetime("us"), "medium": pl.String, "age_s": pl.Float64} | dict.fromkeys(_FLAGS, pl.Boolean)
    parts = [pl.DataFrame(schema=types)]
    removed: dict[str, int] = {}
    for stream in rows.partition_by("stream", maintain_order=True) if rows.height else []:
        events = _ordered(stream)
        state = _follow(events, idle_s)
        stored = events.filter(pl.col("kind") == "stored", pl.col("block").is_not_null()).select("ts", "medium")
        made = {"age_s": pl.Series(state.age_s, dtype=pl.Float64)} | {
            name: pl.Series(values, dtype=pl.Boolean) for name, values in state.flags.items()
        }
        parts.append(stored.with_columns(**made).select(parts[0].columns))
        for medium, count in state.removed.items():
            removed[medium] = removed.get(medium, 0) + count
    return pl.concat(parts).sort("ts", maintain_order=True), removed


def _follow(events: pl.DataFrame, idle_s: float) -> _Replay:
    media = [str(name) for name in events["medium"].unique(maintain_order=True)]
    state = _Replay(idle_s, media, removed=dict.fromkeys(media, 0))
    seconds = (events["ts"].dt.epoch("us") / 1e6).to_list()
    columns: Any = [events[name].to_list() for name in ("kind", "block", "parent")]
    named = repeat(media[0]) if len(media) == 1 else events["medium"].to_list()
    ts_s = 0.0
    for ts_s, kind, block, parent, medium in zip(seconds, *columns, named, strict=False):
        if kind == "cleared":
            state.clear(ts_s)
        elif block is None:
            continue
        elif kind == "stored":
            state.store(ts_s, medium, block, parent)
        elif kind == "removed":
            state.remove(ts_s, medium, block)
    state.end(ts_s)
    return state


def _ordered(stream: pl.DataFrame) -> pl.DataFrame:
    """One row per block in the order in which the engine sent them, each with the block before it.

    Sequences start anew with the engine, so time comes first. Events without blocks keep one row.
    """
    block = pl.col("block_hashes")
    return (
        stream.sort("ts", "sequence", "position", maintain_order=True)
        .with_row_index("event")
        .select("event", "ts", "kind", pl.col("medium").fill_null(""), "block_hashes", "parent_block_hash")
        .explode("block_hashes")
        .with_columns((pl.col("event") == pl.col("event").shift(1)).fill_null(value=False).alias("further"))
        .select(
            "ts",
            "kind",
            "medium",
            block.alias("block"),
            pl.when("further").then(block.shift(1)).otherwise("parent_block_hash").alias("parent"),
        )
    )
