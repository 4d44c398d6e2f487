"""Series of a MetricQuery's rows: their points in order, what each one is, and its labels as columns.

Numbers are worked on without the texts that describe them, which are joined once per series: a fleet has a million
samples but some thousand different label sets.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import polars as pl

TIME = pl.Datetime("us")
_OF_THE_SAMPLE = ("kind", "unit", "combine", "raw")
"""Columns of a MetricQuery that say how a series was exposed; a label of such a name says something else."""


def naive(at: datetime) -> datetime:
    """Return an aware time as the naive UTC time that frames hold."""
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def points(samples: pl.DataFrame) -> pl.DataFrame:
    """Rows (series_id, ts, value) by series and time; NaN and infinities are null, as what is not available is."""
    return _values(samples).sort("series_id", "ts")


def _values(samples: pl.DataFrame) -> pl.DataFrame:
    value = pl.col("value").cast(pl.Float64)
    return samples.select("series_id", "ts", pl.when(value.is_finite()).then(value))


def about(samples: pl.DataFrame) -> pl.DataFrame:
    """One row per series: series_id and all other columns but ts and value, which are the same for all its samples."""
    return samples.drop("ts", "value").unique("series_id", keep="last")


def with_labels(series: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Add labels as text columns. A label that is missing or empty is null: Prometheus takes the two for one.

    A name that is a column already (service, instance, job) stays as it is, but for kind, unit, combine and raw: asked
    for as a label, such a column becomes the label.
    """
    asked = list(dict.fromkeys(names))
    series = series.drop([name for name in asked if name in _OF_THE_SAMPLE], strict=False)
    wanted = [name for name in asked if name not in series.columns]
    if not wanted:
        return series
    texts = series.select("labels").unique().drop_nulls()
    shape = pl.Struct({name: pl.String() for name in wanted})
    decoded = texts.with_columns(pl.col("labels").str.json_decode(shape).alias("_")).unnest("_")
    empty = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in wanted]
    return series.join(decoded.with_columns(empty), on="labels", how="left", maintain_order="left")


def without_label(name: str) -> pl.Expr:
    """Return the labels text without one label: equal for series that differ in nothing else."""
    return pl.col("labels").str.replace(rf'"{name}":"(?:[^"\\]|\\.)*",?', "").str.replace(r",\}$", "}")


def live(samples: pl.DataFrame, now: datetime, seconds: float) -> pl.DataFrame:
    """Latest value of every series that still speaks for `now`: series_id, ts, value.

    A series whose latest sample is null has ended; one older than `seconds` no longer counts.
    """
    at = naive(now)
    rows = _values(samples.filter(pl.col("ts") <= at))
    rows = rows if rows["ts"].is_sorted() else rows.sort("ts")  # the store gives them by time
    found = rows.group_by("series_id").agg(pl.col("ts", "value").last())
    fresh = (pl.lit(at, TIME) - pl.col("ts")).dt.total_microseconds() <= seconds * 1e6
    return found.filter(pl.col("value").is_not_null(), fresh)
