"""What is scraped: pages by URL, and readers on this machine."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from collector.prometheus.config import HttpClient
from collector.prometheus.exposition import Sample
from collector.prometheus.relabel import Rule

_LOCAL_TIMEOUT_S = 10.0


EVERYTHING = "everything"
"""What is absent of a device that does not answer."""


@dataclass(frozen=True, slots=True)
class Absence:
    """What a reader cannot see: `what` (a metric, a file) of `subject` (a GPU; "" is the machine), and why."""

    subject: str
    what: str
    reason: str


class Reader(Protocol):
    """What is read on this machine at an interval (NVML, host)."""

    def read(self) -> Sequence[Sample]:
        """Return all samples as of now; called in a thread, may block.

        A time of None is now, a value of NaN is not available. Raises SourceError.
        """
        ...

    def absences(self) -> Sequence[Absence]:
        """Return what the last read could not see; never blocks, and may be called from any thread."""
        ...

    def close(self) -> None:
        """Let go of what is held open."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a page may hold; more fails the scrape. 0 is no limit. Lengths are in bytes of UTF-8."""

    body_size_bytes: int = 0
    samples: int = 0
    labels: int = 0
    label_name_bytes: int = 0
    label_value_bytes: int = 0

    @property
    def on_labels(self) -> bool:
        """Whether labels are limited at all."""
        return bool(self.labels or self.label_name_bytes or self.label_value_bytes)


@dataclass(frozen=True)
class Target:
    """One page to scrape, or one reader to read. `labels` (job and instance among them) are put on all its series.

    `rules` are those of metric_relabel_configs; `refused` says why every scrape fails without being tried;
    `discovered` are the labels before relabelling.
    """

    job: str
    instance: str
    url: str
    labels: Mapping[str, str]
    interval_s: float = 15.0
    timeout_s: float = 10.0
    honor_labels: bool = False
    honor_timestamps: bool = True
    compression: bool = True
    limits: Limits = Limits()
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    http: HttpClient = field(default_factory=HttpClient, repr=False)
    reader: Reader | None = field(default=None, repr=False)
    refused: str = ""
    discovered: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What makes it the same target after the next discovery, so that it keeps its schedule and memory."""
        labels = tuple(sorted(self.labels.items()))
        return self.job, self.url, labels, self.interval_s, self.timeout_s, self.refused, id(self.reader)


def local_target(job: str, reader: Reader, interval_s: float = 15.0, labels: Mapping[str, str] | None = None) -> Target:
    """Return the target of a reader on this machine; its instance and its label `host` are the host's name."""
    host = socket.gethostname()
    named = {"job": job, "instance": host, "host": host, **(labels or {})}
    return Target(
        job=job,
        instance=named["instance"],
        url=f"{job}:",
        labels=named,
        interval_s=interval_s,
        timeout_s=min(_LOCAL_TIMEOUT_S, interval_s),
        reader=reader,
    )
