"""The series that senders push: each learnt once, described to the store once, forgotten when it falls silent.

A request holds a part of a target's series, so the meaning of names (which of two tiers counts, which alias is newer)
is decided over all that a target (labels job and instance) pushed lately.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from collector.prometheus.beside import Target, target_of
from collector.prometheus.exposition import Series
from collector.prometheus.series import Resolved, Resolver
from collector.push.columns import Ints, SeriesColumns

IDLE = timedelta(minutes=10)
"""A series silent for so long is forgotten: twice what Prometheus looks back, longer than any usual interval."""
MOST_SERIES = 1_000_000
"""Series known at once; one more is refused. A million take about 3 GB, and are a sender gone wrong."""
UNTYPED = "unknown"
"""Type of a series until its sender says one."""
_SWEEP = timedelta(minutes=1)
_US = timedelta(microseconds=1)

Row = Mapping[str, Any]


@dataclass(slots=True)
class Known:
    """A series in its slot: the keys it is found by, and its row of `metric_series`."""

    series: Series
    unit: str | None
    keys: list[Hashable]
    row: Row = field(default_factory=dict)


class PushedSeries:
    """Knows the series of all senders of one kind. Hold `lock` from looking keys up until their batch is made.

    `known` finds the slot of a series by any key that identifies it to its decoder; `untyped` are slots of series of
    unknown type. `ends` are series whose canonical place another one took, with the time (us) of the end mark that the
    store is still to get.
    """

    def __init__(self) -> None:
        """Start without any."""
        self.lock = threading.Lock()
        self.known: dict[Hashable, int] = {}
        self.columns = SeriesColumns()
        self.untyped: set[int] = set()
        self.ends: dict[int, int] = {}
        self._slots: list[Known | None] = []
        self._free: list[int] = []
        self._resolver = Resolver(keep=True)
        self._targets: dict[Target, set[int]] = {}
        self._new: set[int] = set()
        self._swept_us = 0

    def __len__(self) -> int:
        return len(self._slots) - len(self._free)

    @property
    def full(self) -> bool:
        """Whether there are as many series as are kept."""
        return len(self) >= MOST_SERIES

    def learn(self, key: Hashable, series: Series, unit: str | None = None) -> int:
        """Return the slot of a new series. `unit` is used where no preset knows the name."""
        slot = self._free.pop() if self._free else len(self._slots)
        if slot == len(self._slots):
            self._slots.append(None)
        self.columns.reset(slot)
        self._slots[slot] = Known(series, unit, [key])
        if series.kind == UNTYPED:
            self.untyped.add(slot)
        self.known[key] = slot
        self._targets.setdefault(target_of(series), set()).add(slot)
        self._new.add(slot)
        return slot

    def at(self, slot: int) -> Known:
        """Return what is known of the series in a slot."""
        known = self._slots[slot]
        assert known is not None, "a slot is free only while no key leads to it"
        return known

    def row_is(self, slot: int, row: Row) -> bool:
        """Whether a slot still holds the series that had this row."""
        known = self._slots[slot]
        return known is not None and known.row is row

    def retype(self, kind_of: Callable[[Series], str]) -> None:
        """Give every series the type that `kind_of` says."""
        kinds = {slot: kind_of(known.series) for slot, known in enumerate(self._slots) if known is not None}
        self.set_kinds({slot: kind for slot, kind in kinds.items() if kind != self.at(slot).series.kind})

    def set_kinds(self, kinds: Mapping[int, str]) -> None:
        """Give the series in some slots a type."""
        replaced = []
        for slot, kind in kinds.items():
            known = self.at(slot)
            replaced.append(known.series)
            known.series = Series(known.series.name, known.series.labels, kind)
            self.untyped.discard(slot)
            self._new.add(slot)
        if replaced:
            self._resolver.forget(replaced)

    def settle(self) -> None:
        """Decide what new series mean, and those of the same target that a new one may take the place of."""
        if self._new:
            self._decide(self._new)
            self._decide(self._unsettled() - self._new)
            self._new.clear()

    def sweep(self, now_us: int) -> None:
        """Forget series that fell silent, at most once a minute."""
        if now_us - self._swept_us < _SWEEP // _US:
            return
        self._swept_us = now_us
        idle = self.columns.seen_us[: len(self._slots)] < now_us - IDLE // _US
        self._forget(slot for slot in np.flatnonzero(idle).tolist() if self._slots[slot] is not None)

    def _decide(self, chosen: set[int]) -> None:
        if chosen:
            slots = np.array(sorted(chosen), np.int64)
            self._take(slots, self._resolver.resolve([self.at(slot).series for slot in slots.tolist()]))

    def _unsettled(self) -> set[int]:
        return {slot for target in self._resolver.unsettled() for slot in self._targets[target]}

    def _take(self, slots: Ints, found: Resolved) -> None:
        """Store the meaning of some series; one whose id changes ends just after its last sample."""
        before = self.columns.ids[slots]
        for i in np.flatnonzero((before != 0) & (before != found.ids)).tolist():
            self.ends[int(before[i])] = int(self.columns.last_us[slots[i]]) + 1
        self.columns.set_meaning(slots, found)
        for slot, series_id in zip(slots.tolist(), found.ids.tolist(), strict=True):
            self._describe(slot, found.rows[series_id])

    def _describe(self, slot: int, row: dict[str, Any]) -> None:
        known = self.at(slot)
        if known.unit and row["canonical"] is None:
            row["unit"] = known.unit
        if known.series.kind == UNTYPED:
            row["kind"] = None  # a type may follow, or be stored from before: an unknown one must not replace it
        if known.row is not row:
            known.row = row
            self.columns.described[slot] = False

    def _forget(self, slots: Iterable[int]) -> None:
        gone = []
        for slot in slots:
            known = self.at(slot)
            gone.append(known.series)
            for key in known.keys:
                del self.known[key]
            self._drop(target_of(known.series), slot)
            self._new.discard(slot)
            self.untyped.discard(slot)
            self._slots[slot] = None
            self._free.append(slot)
        if gone:
            self._resolver.forget(gone)
            self._new |= self._unsettled()  # what is gone no longer takes another one's place

    def _drop(self, target: Target, slot: int) -> None:
        slots = self._targets[target]
        slots.discard(slot)
        if not slots:
            del self._targets[target]
