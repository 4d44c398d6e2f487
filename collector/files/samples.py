"""Columns of a table as series and samples: a series for each name and each set of labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from collector.files.measure import Measure
from collector.presets.catalog import canonical
from collector.prometheus.identity import series_row
from collector.prometheus.series import series_frame
from store.tables import METRIC_SAMPLES, METRIC_SERIES


def tabulate(
    measures: Sequence[Measure], ts: pl.Series, labels: pl.DataFrame, constants: Mapping[str, str]
) -> dict[str, pl.DataFrame]:
    """Return `metric_series` and `metric_samples` of rows with times `ts` and label columns.

    `constants` are labels of every series and win over a column of that name. A missing value is no sample, a missing
    label no label.
    """
    sets, groups = _label_sets(labels, ts.len())
    named = [{**{name: text for name, text in row.items() if text is not None}, **constants} for row in sets]
    rows = {measure.name: [_row(measure, one) for one in named] for measure in measures}
    parts = [_samples(measure, ts, groups, rows[measure.name]) for measure in measures]
    samples = pl.concat(parts) if parts else METRIC_SAMPLES.schema().to_frame()
    first = dict(samples.group_by("series_id").agg(pl.col("ts").min()).iter_rows())
    found = [row for each in rows.values() for row in each if row["series_id"] in first]
    return {METRIC_SERIES.name: series_frame(found, first), METRIC_SAMPLES.name: samples}


def _label_sets(labels: pl.DataFrame, height: int) -> tuple[list[dict[str, str | None]], pl.Series]:
    """Return the different sets of labels, and for each row the number of its set."""
    if not labels.width:
        return [{}], pl.repeat(0, height, dtype=pl.UInt32, eager=True)
    sets = labels.unique(maintain_order=True)
    numbered = labels.join(sets.with_row_index("set"), on=labels.columns, nulls_equal=True, maintain_order="left")
    return sets.to_dicts(), numbered["set"]


def _row(measure: Measure, labels: Mapping[str, str]) -> dict[str, Any]:
    """Row of `metric_series`. A mapping says what the column is; else a preset may know it by its name."""
    kind = "counter" if (measure.canonical or measure.name).endswith("_total") else "gauge"
    row = series_row(measure.name, labels, kind, measure.unit)
    if measure.canonical is None:
        return row
    metric = canonical(measure.canonical)
    return row | {
        "canonical": measure.canonical,
        "unit": (metric.unit if metric else None) or measure.unit,
        "scale": measure.scale,
        "semantic": metric.semantic if metric else None,
        "combine": metric.combine if metric else None,
    }


def _samples(measure: Measure, ts: pl.Series, groups: pl.Series, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    ids = pl.Series([row["series_id"] for row in rows], dtype=pl.UInt64)
    columns = {"series_id": ids.gather(groups), "ts": ts, "value": measure.values}
    return pl.DataFrame(columns).drop_nulls("value")
