"""What the decoders of both protocols gather from one request."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from collector.prometheus.exposition import Series, Types
from collector.prometheus.series import EARLIEST, MOST_AHEAD
from collector.push.columns import Ints, Points
from collector.push.series import UNTYPED, PushedSeries
from collector.push.streams import Streams
from collector.remote_write.histograms import KIND, NativeHistogram, Part
from collector.remote_write.labels import RefusedError
from collector.remote_write.samples import read_samples
from collector.remote_write.symbols import SymbolNumbers

_MOST_MS = 1 << 53
_MOST_NAMES = 100_000
KINDS = ("unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset")
"""Types by their number, the same in both protocols."""


@dataclass(slots=True)
class Senders:
    """What is remembered between requests: series, native histograms, (2.0) symbols, and (1.0) types."""

    series: PushedSeries = field(default_factory=PushedSeries)
    histograms: Streams[NativeHistogram] = field(default_factory=Streams)
    symbols: SymbolNumbers = field(default_factory=SymbolNumbers)
    types: Types = field(default_factory=lambda: Types({}))
    _kinds: dict[str, str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """Return the type that metadata states for a series of that name."""
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) > _MOST_NAMES:
                self._kinds.clear()
            kind = self._kinds[name] = self.types.kind(name)
        return kind

    def learn(self, key: Hashable, series: Series, unit: str | None = None) -> int:
        """Return the slot of a new series. Raises RefusedError where there are too many."""
        if self.series.full:
            raise RefusedError("too_many_series")
        return self.series.learn(key, series, unit)

    def declare(self, types: Mapping[str, str]) -> None:
        """Take types by family, and give new ones to the series that are known already."""
        changed = {family: kind for family, kind in types.items() if self.types.declared.get(family) != kind}
        if changed and len(self.types.declared) + len(changed) <= _MOST_NAMES:
            self.types = Types({**self.types.declared, **changed})
            self._kinds.clear()
            self.series.retype(self._retyped)

    def _retyped(self, series: Series) -> str:
        """Return the type of a known series; parts that the receiver made stay what they are."""
        kind = series.kind if series.kind == KIND else self.kind(series.name)
        return series.kind if kind == UNTYPED else kind


@dataclass(slots=True)
class Collected:
    """Samples of one request as messages, parts of native histograms as numbers, and what was refused.

    `starts_ms` is since when the series of a message counts (0: not stated).
    """

    senders: Senders
    at: datetime
    slots: list[int] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    starts_ms: list[int] = field(default_factory=list)
    parts: list[tuple[int, int, float, int]] = field(default_factory=list)
    histograms: int = 0
    drops: Counter[str] = field(default_factory=Counter)

    def add(self, slot: int, messages: Sequence[bytes], start_ms: int = 0) -> None:
        """Take the Sample messages of a known series."""
        self.slots += [slot] * len(messages)
        self.messages += messages
        self.starts_ms += [start_ms] * len(messages)

    def add_histograms(self, key: Hashable, series: Series, messages: Sequence[Any], start_ms: int = 0) -> None:
        """Take the Histogram messages of a series, or count why not."""
        now_us = int(self.at.timestamp() * 1e6)
        state = self.senders.histograms.get(key, now_us, lambda: NativeHistogram(series))
        for message in messages:
            when_s = message.timestamp / 1000
            if not EARLIEST.timestamp() <= when_s <= (self.at + MOST_AHEAD).timestamp():
                self.drops["time_out_of_range"] += 1
                continue
            start = message.start_timestamp or start_ms
            try:
                self.parts += [
                    (self._slot(key, state, part), at, value, start) for part, at, value in list(state.points(message))
                ]
            except RefusedError as error:
                self.drops[error.reason] += 1
            else:
                self.histograms += 1

    def points(self) -> tuple[Points, int]:
        """Return all samples, and how many of them are float samples of the request in a time that is kept.

        Raises DecodeError.
        """
        read = read_samples(self.messages)
        low, high = EARLIEST.timestamp() * 1000, (self.at + MOST_AHEAD).timestamp() * 1000
        written = int(((read.times_ms >= low) & (read.times_ms <= high)).sum())
        slots, times_ms, values, starts_ms = zip(*self.parts, strict=True) if self.parts else ((), (), (), ())
        stated = np.where(read.starts_ms, read.starts_ms, np.array(self.starts_ms, np.int64))
        points = Points(
            np.concatenate([np.array(self.slots, np.int64), np.array(slots, np.int64)]),
            _microseconds(read.times_ms, times_ms),
            np.concatenate([read.values, np.array(values, np.float64)]),
            _microseconds(stated, starts_ms),
        )
        return points, written

    def _slot(self, key: Hashable, state: NativeHistogram, part: Part) -> int:
        named = key, part
        slot = self.senders.series.known.get(named)
        return self.senders.learn(named, state.part(part, KIND)) if slot is None else slot


def _microseconds(times_ms: Ints, more_ms: Sequence[int]) -> Ints:
    """Return times in us; one that would not fit stays out of any range."""
    all_ms: Ints = np.concatenate([times_ms, np.array(more_ms, np.int64)])
    return np.clip(all_ms, -_MOST_MS, _MOST_MS) * np.int64(1000)
