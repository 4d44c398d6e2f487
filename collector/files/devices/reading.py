"""`Reading`: what the text of a tool says; `Event`: one thing that happened; `When`: how its times are to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from zoneinfo import ZoneInfo

from collector.prometheus.exposition import Sample
from store.errors import SourceError

Severity = Literal["info", "warning", "critical"]
UTC_ZONE = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class When:
    """How times are read: `zone` of those that name none; `at_ms` of content without one; `start_ms` of the boot."""

    zone: ZoneInfo = UTC_ZONE
    at_ms: int | None = None
    start_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, at `ts_us` microseconds since 1970 (UTC). `entity` is what it happened to."""

    ts_us: int
    kind: str
    severity: Severity
    message: str
    entity: str | None = None
    code: str | None = None
    host: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """Samples and events of a text; fields refused, by reason, as (how many, line of the first); remarks.

    `devices` holds the labels known of each GPU by its index, for parts of a session that print the index alone.
    """

    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    refused: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    devices: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, name: str, labels: Mapping[str, str], value: float, ts_ms: int | None) -> None:
        """Add a sample."""
        self.samples.append(Sample(name, labels, value, ts_ms))

    def refuse(self, reason: str, line: int, count: int = 1) -> None:
        """Count what cannot be read, with the line of the first of its kind."""
        before, first = self.refused.get(reason, (0, line))
        self.refused[reason] = (before + count, first)

    def know(self, labels: Mapping[str, str]) -> None:
        """Remember the labels of a GPU by its index."""
        if "gpu" in labels:
            self.devices.setdefault(labels["gpu"], {}).update(labels)

    def extend(self, other: "Reading") -> None:
        """Add what another part of the same file says."""
        self.samples += other.samples
        self.events += other.events
        self.notes += other.notes
        for reason, (count, line) in other.refused.items():
            self.refuse(reason, line, count)
        for index, labels in other.devices.items():
            self.devices.setdefault(index, {}).update(labels)


def broken(line: int, fact: str, hint: str) -> SourceError:
    """Return the error of a text that cannot be used; it begins with the line, the caller puts the file before it."""
    return SourceError(f"{line}: {fact}", f"{hint}; nothing was imported")
