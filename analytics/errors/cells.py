"""Cells of place, code and time, each held against the same code at the same place at other times."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics import buckets
from analytics.errors import ErrorsParams
from analytics.errors.meanings import meaning
from analytics.errors.outcomes import Outcomes
from analytics.stats import negative_binomial as nb
from analytics.stats.smoothed import Array
from store.window import Window

FEWEST_BUCKETS = 8
"""Buckets with requests that a baseline wants."""


@dataclass(frozen=True, slots=True)
class Cells:
    """`frame` has one row per series and bucket with requests; `keys` are the columns that name a place."""

    frame: pl.DataFrame
    keys: list[str]
    notes: tuple[str, ...]


def cells(found: Outcomes, params: ErrorsParams, window: Window) -> Cells:
    """Return every cell with its expectation; p and what follows are null where the buckets are too few."""
    keys = [*params.by, "cloud", "region"]
    merged = found.counts.group_by([*keys, "bucket", "code"]).agg(pl.col("n").sum())
    exposure = merged.group_by([*keys, "bucket"]).agg(pl.col("n").sum().alias("requests"))
    errors = merged.drop_nulls("code").rename({"n": "errors"})
    series = errors.select(*keys, "code").unique(maintain_order=True).sort(*keys, "code")
    full = series.join(exposure, on=keys, how="inner", nulls_equal=True)
    full = full.join(errors, on=[*keys, "code", "bucket"], how="left", nulls_equal=True)
    full = full.with_columns(pl.col("errors").fill_null(0)).sort(*keys, "code", "bucket", descending=False)
    if full.is_empty():
        return Cells(_tested(full, params.fdr), keys, ())
    tested = _tested(full, params.fdr)
    known = full.group_by([*keys, "code"]).len()["len"].max()
    few = isinstance(known, int) and known < FEWEST_BUCKETS
    note = (f"no baseline: requests in {known!r} buckets, {FEWEST_BUCKETS} are wanted",) if few else ()
    return Cells(tested.with_columns(buckets.bucket_start(window, found.size)), keys, note)


def _tested(full: pl.DataFrame, fdr: float) -> pl.DataFrame:
    """Add expectation, p, adjusted p, shrunk ratio, and whether the cell stands out."""
    if full.is_empty():
        nothing: dict[str, pl.DataType] = dict.fromkeys(("expected", "shrunk_ratio", "p", "p_adj"), pl.Float64())
        nothing |= {"significant": pl.Boolean(), "low_exposure": pl.Boolean(), "ts": pl.Datetime("us")}
        return full.with_columns(pl.lit(None, t).alias(n) for n, t in (nothing | {"meaning": pl.String()}).items())
    names = [name for name in full.columns if name not in ("bucket", "requests", "errors")]
    number = full.select(pl.struct(names).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    times, place = np.unique(full["bucket"].to_numpy(), return_inverse=True)
    shape = (int(number.max()) + 1, len(times))
    counts, exposure = np.zeros(shape), np.zeros(shape)
    counts[number, place], exposure[number, place] = full["errors"].to_numpy(), full["requests"].to_numpy()
    fitted = nb.baseline(counts, exposure)
    enough = (exposure > 0).sum(axis=1, keepdims=True) >= FEWEST_BUCKETS
    p = np.where(enough & (exposure > 0), fitted.p, np.nan)
    p_adj = nb.adjusted(p)
    ratio = nb.shrunk_ratio(counts, fitted.expected)
    expected = np.where(enough, fitted.expected, np.nan)

    def column(name: str, values: Array) -> pl.Series:
        return pl.Series(name, values[number, place]).fill_nan(None)

    return full.with_columns(
        column("expected", expected),
        column("shrunk_ratio", np.where(enough, ratio, np.nan)),
        column("p", p),
        column("p_adj", p_adj),
    ).with_columns(
        (pl.col("p_adj") <= fdr).fill_null(value=False).alias("significant"),
        (pl.col("expected") < 0.5).alias("low_exposure"),
        pl.col("code").map_elements(meaning, return_dtype=pl.String).alias("meaning"),
    )
