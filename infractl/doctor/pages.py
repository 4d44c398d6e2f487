"""The series of each target, as its page of names: what tells which engine or exporter it is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from collector.presets.catalog import catalog
from collector.presets.names import key
from infractl.doctor.facts import Facts, labels_of


@dataclass(frozen=True, slots=True)
class Page:
    """Series of one target. `present` holds the keys of their names, `sources` the presets they are from."""

    subject: str
    rows: tuple[dict[str, Any], ...]
    present: frozenset[str]
    sources: tuple[str, ...]

    @classmethod
    def of(cls, subject: str, names: Iterable[str]) -> "Page":
        """Return a page of names alone, without series."""
        present = frozenset(key(name) for name in names)
        return cls(subject, (), present, catalog().sources(present))

    def has(self, name: str) -> bool:
        """Whether a name is there, in any spelling; a histogram is there by its count."""
        return key(name) in self.present or key(f"{name}_count") in self.present


def pages(facts: Facts) -> Iterator[Page]:
    """Group the series by job and instance; each row has its labels parsed."""
    for (job, instance), frame in sorted(
        facts.series.partition_by("job", "instance", as_dict=True).items(), key=lambda item: str(item[0])
    ):
        rows = tuple({**row, "labels": labels_of(row["labels"])} for row in frame.iter_rows(named=True))
        present = frozenset(key(row["name"]) for row in rows)
        subject = f"{job or ''} {instance or ''}".strip() or "(imported)"
        yield Page(subject, rows, present, catalog().sources(present))


def shown(names: set[str], most: int = 4) -> str:
    """Names in a sentence, the first ones where they are many."""
    listed = sorted(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
