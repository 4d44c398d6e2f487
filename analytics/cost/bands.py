"""Rows of frame `hours`: what every hour (or day) cost, and the band it is held against; bounded."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics import frames
from analytics.cost import FRAMES
from analytics.cost.grid import Grid
from analytics.cost.judge import Verdict
from analytics.cost.seasonal import Flags

MOST_ROWS = 6_000
MOST_SERIES = 20
RECENT = {"hour": 168, "day": 42}
ABOUT = {"hour": 24, "day": 7}
"""Buckets shown before and after a drift."""


def hours(verdicts: Sequence[Verdict], labels: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Return the frame and a note where not every bucket is in it: then drifts and the newest week of the largest are.

    Buckets that are not judged yet have no band.
    """
    whole = sum(int(np.isfinite(v.grid.values).sum()) for v in verdicts) <= MOST_ROWS
    parts = [_rows(v, _every(v.grid) if whole else _some(v)) for v in verdicts]
    empty = frames.build(labels, FRAMES["hours"], [])
    made = frames.finite(pl.concat([empty, *(part.select(empty.columns) for part in parts)]))
    note = (
        f"hours: the newest {RECENT['hour'] // 24} days of the {MOST_SERIES} largest groups, and what is about drifts, "
        f"at most {MOST_ROWS:,} rows; sums over all are in totals and days"
    )
    return made.head(MOST_ROWS), "" if whole else note


def _every(grid: Grid) -> Flags:
    return np.isfinite(grid.values)


def _some(verdict: Verdict) -> Flags:
    grid = verdict.grid
    wanted = np.zeros(grid.values.shape, bool)
    for one in sorted(verdict.drifts, key=lambda one: -one.last)[:MOST_SERIES]:
        end = one.last + 1 + ABOUT[grid.grain]
        wanted[max(0, end - RECENT[grid.grain], one.first - ABOUT[grid.grain]) : end, one.series] = True
    largest = np.argsort(-np.nansum(grid.values, axis=0), kind="stable")[:MOST_SERIES]
    wanted[-RECENT[grid.grain] :, largest] = True
    return np.asarray(wanted & np.isfinite(grid.values))


def _rows(verdict: Verdict, wanted: Flags) -> pl.DataFrame:
    grid = verdict.grid
    series, row = np.nonzero(wanted.T)
    shown = {
        name: _gather(values, row, series)
        for name, values in (("expected", verdict.expected), ("low", verdict.low), ("high", verdict.high),
                             ("score", verdict.score))
    }  # fmt: skip
    keys = pl.DataFrame(grid.keys, infer_schema_length=None, orient="row") if grid.keys else pl.DataFrame()
    keys = keys.with_columns(pl.all().cast(pl.String)).with_row_index("series")
    starts = pl.Series(grid.starts, dtype=pl.Datetime("us"))
    made = pl.DataFrame({"series": series.astype(np.uint32), "bucket": starts.gather(row), **shown})
    made = made.with_columns(pl.Series("alert", _alerts(verdict)[row, series], dtype=pl.Boolean))
    cells = made.select("series", pl.col("bucket").alias("at"))
    of = grid.lines.filter(pl.col("series").is_in(cells["series"].unique().implode()))
    exact = of.join(cells, on=["series", "at"], how="semi").group_by("series", "at").agg(pl.col("cost").sum())
    made = made.join(keys, on="series", maintain_order="left")
    return made.join(exact.rename({"at": "bucket"}), on=["bucket", "series"], how="left", maintain_order="left")


def _gather(values: NDArray[np.float64], row: NDArray[np.int64], series: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values of judged buckets; NaN beyond."""
    inside = row < len(values)
    made = np.full(row.size, np.nan)
    made[inside] = values[row[inside], series[inside]]
    return made


def _alerts(verdict: Verdict) -> Flags:
    flags = np.zeros(verdict.grid.values.shape, bool)
    for one in verdict.drifts:
        if one.impact > 0:
            flags[one.first : one.last + 1, one.series] = True
    return flags
