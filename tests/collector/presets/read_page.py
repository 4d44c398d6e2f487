"""A page of metrics taken in as a scrape does, as canonical rows."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from store.tables import METRIC_SAMPLES, METRIC_SERIES

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Row(NamedTuple):
    """A series with its sample; `value` is canonical (raw where no preset knows it), None where not available."""

    name: str
    canonical: str | None
    semantic: str | None
    unit: str | None
    value: float | None
    labels: dict[str, str]


class Page(NamedTuple):
    """Rows of a page, and values refused by reason."""

    rows: list[Row]
    drops: dict[str, int]

    def of(self, canonical: str, **labels: str) -> list[Row]:
        """Rows of a canonical metric with these labels."""
        return [r for r in self.rows if r.canonical == canonical and labels.items() <= r.labels.items()]

    def value(self, canonical: str, **labels: str) -> float | None:
        """The value of the one row with these labels."""
        (row,) = self.of(canonical, **labels)
        return row.value

    def raw(self) -> set[str]:
        """Names that have no canonical meaning."""
        return {r.name for r in self.rows} - {r.name for r in self.rows if r.canonical}


def read(text: str) -> Page:
    """Take in a page; every line must be readable."""
    page = parse(text.encode())
    assert page.rejected == ()
    batch = to_batch("test", page, AT)
    joined = batch.frames[METRIC_SERIES.name].join(batch.frames[METRIC_SAMPLES.name], on="series_id")
    return Page([_row(row) for row in joined.iter_rows(named=True)], dict(batch.drops))


def _row(row: dict[str, Any]) -> Row:
    value = None if row["value"] is None else row["value"] * (row["scale"] or 1.0)
    labels = orjson.loads(row["labels"])
    return Row(row["name"], row["canonical"], row["semantic"], row["unit"], value, labels)
