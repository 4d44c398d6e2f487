"""What tests ask of an imported file: values by canonical name and labels."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from collector.files import Imported, ImportOptions, load
from store.batch import Batch

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Taken:
    """One imported file."""

    imported: Imported

    @property
    def batch(self) -> Batch:
        [batch] = self.imported.batches
        return batch

    def values(self, name: str, **labels: str) -> list[float | None]:
        """Values, in time order, of the series with this name and (at least) these labels; "" is a label not there."""
        series = self.batch.frames["metric_series"].filter(pl.col("name") == name)
        ids = [r["series_id"] for r in series.to_dicts() if _carries(json.loads(r["labels"]), labels)]
        samples = self.batch.frames["metric_samples"].filter(pl.col("series_id").is_in(ids)).sort("ts")
        return samples["value"].to_list()

    def value(self, name: str, **labels: str) -> float | None:
        """The one value."""
        [value] = self.values(name, **labels)
        return value

    def labels(self, name: str) -> list[dict[str, str]]:
        """Labels of the series with this name."""
        series = self.batch.frames["metric_series"].filter(pl.col("name") == name)
        return [json.loads(text) for text in series["labels"]]

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.batch.frames["events"].to_dicts()

    @property
    def times(self) -> Sequence[datetime]:
        return sorted(set(self.batch.frames["metric_samples"]["ts"].to_list()))


def _carries(found: dict[str, str], labels: dict[str, str]) -> bool:
    return all(found.get(name, "") == text for name, text in labels.items())


def take(path: Path, **options: Any) -> Taken:
    """Import a file; what states no time was taken at AT."""
    return Taken(load(path, ImportOptions(**{"at": AT, **options})))


def take_text(folder: Path, text: str, **options: Any) -> Taken:
    """Import a text as a file."""
    path = folder / "output.txt"
    path.write_text(text, encoding="utf-8")
    return take(path, **options)
