"""The arms of an experiment: which request belongs to which variant, and how they cluster in time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.ab import SUGGESTED, AbParams
from analytics.stats.clusters import design_effect
from analytics.stats.smoothed import Array
from store.window import format_duration, parse_time

VARIANT = "_variant"
MINUTE = timedelta(minutes=1)
LEAST_BLOCKS = 20


@dataclass(frozen=True)
class Arm:
    """Requests of one variant, in order of time.

    `values` are the target in seconds of those that state it and did not fail, `at_us` their time and `cell` their
    block; `total` counts all, `failed` those that failed, and `failed_cell` is the block of each of those.
    """

    name: str
    values: Array
    at_us: NDArray[np.int64]
    cell: NDArray[np.intp]
    total: int
    failed: int
    failed_cell: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @cached_property
    def blocks(self) -> int:
        """Blocks of time that hold requests."""
        return int(np.unique(self.cell).size)

    def design_effect(self, hit: "NDArray[np.bool_]") -> float:
        """Design effect of a share of the requests that state the target."""
        return design_effect(hit, self.cell)

    def over_all(self, hit: "NDArray[np.bool_]", *, failed: bool) -> float:
        """Design effect of a share of all requests: `hit` of those that state the target, and failed ones all or none.

        Failures come in storms, so their share varies far more between blocks than latencies do.
        """
        lost = np.full(self.failed_cell.size, failed)
        return design_effect(np.concatenate([hit, lost]), np.concatenate([self.cell, self.failed_cell]))


def labelled(requests: pl.DataFrame, params: AbParams) -> pl.DataFrame:
    """Add the variant of each request as text (null: none) and its target as a number; failed ones have none."""
    if params.split:
        at = parse_time(params.split).replace(tzinfo=None)
        before = pl.col("ts") < pl.lit(at).cast(pl.Datetime("us"))
        variant = pl.when(before).then(pl.lit("before")).otherwise(pl.lit("after"))
    else:
        variant = pl.col(params.field).cast(pl.String) if params.field in requests.columns else pl.lit(None, pl.String)
    target = pl.col(params.target).cast(pl.Float64)
    failed = (pl.col("status") == "error").fill_null(value=False) | pl.col("error_code").is_not_null()
    good = target.is_finite() & (target >= 0) & ~failed
    return requests.with_columns(
        variant.alias(VARIANT), failed.alias("_failed"), pl.when(good).then(target).alias("_y")
    )


def names(requests: pl.DataFrame, params: AbParams) -> tuple[str, ...]:
    """Return the variants, the baseline first: those asked for, else the two most frequent, the elder first."""
    if params.split:
        return ("before", "after")
    if params.values:
        return params.values
    seen = requests.drop_nulls(VARIANT).group_by(VARIANT).agg(pl.len().alias("n"), pl.col("ts").min())
    return tuple(seen.sort("n", descending=True).head(2).sort("ts", VARIANT)[VARIANT])


def block_size(requests: pl.DataFrame) -> timedelta:
    """Return a minute, or less where the data would give fewer than 20 blocks."""
    span = (requests["ts"].max() - requests["ts"].min()) if requests.height else MINUTE  # type: ignore[operator]
    assert isinstance(span, timedelta)
    return max(min(MINUTE, span / LEAST_BLOCKS), timedelta(milliseconds=1))


def arms(requests: pl.DataFrame, wanted: Sequence[str], size: timedelta) -> list[Arm]:
    """Return the arms of these names; cells of time are shared between them."""
    step = size // timedelta(microseconds=1)
    rows = requests.filter(pl.col(VARIANT).is_in(list(wanted))).sort("ts")
    micros = rows["ts"].cast(pl.Int64).to_numpy()
    _, cell = np.unique(micros // step, return_inverse=True)
    rows = rows.with_columns(pl.Series("_cell", cell, pl.Int64), pl.Series("_us", micros, pl.Int64))
    return [_arm(rows.filter(pl.col(VARIANT) == name), name) for name in wanted]


def _arm(part: pl.DataFrame, name: str) -> Arm:
    stated = part.drop_nulls("_y")
    return Arm(
        name,
        stated["_y"].to_numpy(),
        stated["_us"].to_numpy(),
        stated["_cell"].to_numpy(),
        stated.height + int(part["_failed"].sum()),
        int(part["_failed"].sum()),
        part.filter("_failed")["_cell"].to_numpy(),
    )


def suggestion(requests: pl.DataFrame, params: AbParams) -> str:
    """Say which columns would give variants here."""
    found = []
    for name in SUGGESTED:
        if name in requests.columns and name != params.field:
            values = requests[name].drop_nulls().unique().sort()
            if 2 <= values.len() <= 5:
                found.append(f"--variant {name}={','.join(map(str, values.head(2)))}")
    return " or ".join(found) if found else "--split TIME compares before and after"


def words_of(size: timedelta) -> str:
    """Describe the blocks."""
    rounded = timedelta(seconds=round(size.total_seconds(), 2))
    return f"intervals resample blocks of {format_duration(rounded) if rounded else 'milliseconds'}"
