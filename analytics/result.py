"""What an analysis says: signals, triggers, findings and the Result that carries them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from store.columns import Column
from store.window import Window

if TYPE_CHECKING:
    import polars as pl


class Severity(StrEnum):
    """How bad a finding is, mildest first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, rising."""
        return list(Severity).index(self)


class Status(StrEnum):
    """ok: there is an answer; empty: no input rows; refused: the rows cannot carry an answer (see notes)."""

    OK = "ok"
    EMPTY = "empty"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Signal:
    """A number an analysis publishes per label set: gauge `infractl_<name>[_<unit>]`, CLI column, tile.

    `labels` are the label names of its samples; a sample frame has these columns (text) and `value` (float).
    """

    name: str
    unit: str
    doc: str
    labels: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """Prometheus name of the gauge."""
        return f"infractl_{self.name}_{self.unit}" if self.unit else f"infractl_{self.name}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The one threshold, for Finding and Prometheus rule alike: it holds while signal > bound (or < bound).

    `name` is the alert name (CamelCase). `summary` is a template over {labels…} and {value}.
    """

    name: str
    signal: Signal
    bound: float
    severity: Severity
    summary: str
    runbook: str
    above: bool = True
    hold: timedelta = timedelta(minutes=2)
    keep_firing: timedelta = timedelta(minutes=5)

    def holds(self, value: float | None) -> bool:
        """Whether the condition holds for a sample; a missing value never does."""
        return value is not None and (value > self.bound if self.above else value < self.bound)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a person should know. `until` is None while it lasts at the window's end.

    `expected` is the band (low, high) in the unit of value; `evidence` holds what to look at next: trace ids of
    examples, drivers, the query.
    """

    trigger: str
    severity: Severity
    labels: Mapping[str, str]
    value: float | None
    expected: tuple[float | None, float | None]
    since: datetime
    summary: str
    until: datetime | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Order findings: those that last first, then the worst, then the newest."""
    return sorted(findings, key=lambda f: (f.until is None, f.severity.rank, f.since), reverse=True)


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Rank findings of one analysis and keep, of those that last for the same labels since the same time, the worst.

    A signal beyond its second bound is beyond its first too; a person wants to read that once.
    """
    kept: dict[object, Finding] = {}
    for finding in ranked(findings):
        lasting = (tuple(sorted(finding.labels.items())), finding.since)
        kept.setdefault(lasting if finding.until is None else id(finding), finding)
    return list(kept.values())


@dataclass(frozen=True, slots=True)
class Result:
    """Answer of one analysis over one window; immutable, with an exact JSON round trip (analytics.codec).

    `frames` holds tables by name (columns as the Analysis declares them, after the label columns of `by`);
    `samples` the signal samples by signal name; `notes` refusals and caveats in words.
    """

    analysis: str
    status: Status
    window: Window
    params: Mapping[str, Any]
    frames: Mapping[str, "pl.DataFrame"]
    samples: Mapping[str, "pl.DataFrame"] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> Severity | None:
        """Severity of the worst finding that lasts at the window's end or lay within it."""
        return max((finding.severity for finding in self.findings), key=lambda s: s.rank, default=None)


Frames = Mapping[str, tuple[Column, ...]]
"""Declared frames of an analysis: name → columns."""
