"""Histograms over time: what their buckets gained in a window, added up over the series of an entity.

Buckets grow by the rules of counters; the buckets of one histogram restart together. Parts with other bounds (an old
and a new version side by side) meet on the bounds that all of them have: a sum by `le` alone would miss counts.
"""

from collections.abc import Sequence

import polars as pl

from analytics.metrics import exponential
from analytics.metrics.counters import increase
from analytics.metrics.series import about, with_labels, without_label
from store.window import Window

DIGITS = 12
"""Significant digits of a bound: 300 ms scaled to seconds and 0.3 are one bound."""
_FLAGS = ("merged", "no_inf", "repaired")


def buckets(
    samples: pl.DataFrame, name: str, by: Sequence[str], window: Window | None = None, *, from_zero: bool = False
) -> pl.DataFrame:
    """Return one row per entity and bound of the histogram `name`: what was observed in the window at or below it.

    `samples` holds `<name>_bucket` (label le) and, where there is one, `<name>_count`. `by` names columns or labels (at
    least one). Columns: those of `by`, name, le (rises to inf), count (cumulative, never falling), parts (histograms
    added up), merged (bounds differ between parts or changed within the window: only common ones are kept), no_inf (a
    part lacks +Inf: its count is `<name>_count`, else its highest bucket), repaired (counts that fell with rising
    bounds were lifted), first_ts, last_ts.
    """
    rows, series = _parts(samples.filter(pl.col("name") == f"{name}_bucket"), by)
    grown = increase(rows, window, from_zero=from_zero, together=series).drop_nulls("increase")
    joined = grown.select("series_id", "increase", "first_ts", "last_ts").join(series, on="series_id")
    parts = _throughout(joined, [*by, "member"])
    counts = samples.filter(pl.col("name") == f"{name}_count")
    whole = _with_inf(parts, _counts(counts, window, from_zero=from_zero), by)
    return _merged(whole, by).select(
        *by, pl.lit(name).alias("name"), "le", "count", "parts", *_FLAGS, "first_ts", "last_ts"
    )


def _parts(rows: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Bucket samples, and their series with le, the columns of `by` and the member: the histogram they are part of."""
    series = with_labels(about(rows), [*by, "le"]).with_columns(_member())
    bound = pl.col("le").str.replace(r"^\+", "").cast(pl.Float64, strict=False)
    series = series.with_columns(bound.round_sig_figs(DIGITS).alias("le")).drop_nulls("le")
    series = series.filter(~pl.col("le").is_nan())
    if "kind" not in series.columns:
        return rows, series
    lazy = series.filter(pl.col("kind").str.starts_with(exponential.KIND).fill_null(value=False))
    if not lazy.height:
        return rows, series
    filled, ids = exponential.with_all_bounds(rows, lazy)
    fixed = series.join(lazy, on="series_id", how="anti")
    kept = rows.select("series_id", "ts", "value").join(fixed, on="series_id", how="semi")
    return pl.concat([kept, filled]), pl.concat([fixed, ids])


def _throughout(grown: pl.DataFrame, part: list[str]) -> pl.DataFrame:
    """Growth by part and bound, for bounds that were there as long as their part; cut: others were not.

    A restart with other bounds leaves bounds that counted for half of the time: less than the bounds below them.
    """
    parts = grown.group_by([*part, "le"]).agg(
        pl.col("increase").sum(), pl.col("first_ts").min(), pl.col("last_ts").max()
    )
    inf = pl.col("le").is_infinite()
    since = pl.coalesce(pl.col("first_ts").filter(inf).min(), pl.col("first_ts").min()).over(part)
    until = pl.coalesce(pl.col("last_ts").filter(inf).max(), pl.col("last_ts").max()).over(part)
    whole = (pl.col("first_ts") <= since) & (pl.col("last_ts") >= until)
    marked = parts.with_columns(whole.alias("_whole"), (~whole).any().over(part).alias("cut"))
    return marked.filter("_whole").drop("_whole")


def _member() -> pl.Expr:
    texts = [pl.col(name).fill_null("") for name in ("service", "instance", "job")]
    return pl.concat_str([*texts, without_label("le").fill_null("")], separator="\n").alias("member")


def _counts(rows: pl.DataFrame, window: Window | None, *, from_zero: bool) -> pl.DataFrame:
    grown = increase(rows, window, from_zero=from_zero).with_columns(_member())
    return grown.group_by("member").agg(pl.col("increase").sum().alias("stated"))


def _with_inf(parts: pl.DataFrame, counts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add the +Inf bucket to parts that lack it."""
    key = [*by, "member"]
    tops = parts.group_by(key).agg(
        pl.col("le").is_infinite().any().alias("has_inf"),
        pl.col("increase").max(),
        pl.col("first_ts").min(),
        pl.col("last_ts").max(),
        pl.col("cut").any(),
    )
    lacking = tops.filter(~pl.col("has_inf")).join(counts, on="member", how="left")
    added = lacking.with_columns(
        pl.lit(float("inf")).alias("le"), pl.max_horizontal("increase", "stated").alias("increase")
    )
    whole = pl.concat([parts, added.select(parts.columns)])
    flags = tops.select(*key, (~pl.col("has_inf")).alias("no_inf"))
    return whole.join(flags, on=key, how="left", nulls_equal=True)


def _merged(parts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add parts up on their common bounds. Parts that observed nothing have no say in which bounds are common."""
    key = list(by)
    size = pl.col("increase").max().over([*by, "member"])
    busy = parts.with_columns((size > 0).alias("_busy"))
    idle = ~pl.col("_busy").any().over(key)
    used = busy.filter(pl.col("_busy") | idle).with_columns(pl.col("member").n_unique().over(key).alias("parts"))
    summed = used.group_by([*by, "le"]).agg(
        pl.col("increase").sum(),
        pl.len().alias("_having"),
        pl.col("parts").first().cast(pl.Int64),
        pl.col("no_inf", "cut").any(),
        pl.col("first_ts").min(),
        pl.col("last_ts").max(),
    )
    common = pl.col("_having") == pl.col("parts")
    kept = (
        summed.with_columns((~common | pl.col("cut")).any().over(key).alias("merged")).filter(common).sort([*by, "le"])
    )
    lifted = pl.col("increase").cum_max().over(key)
    fell = (pl.col("increase") < lifted * (1 - 1e-9)).any().over(key)
    return kept.with_columns(
        lifted.alias("count"),
        fell.alias("repaired"),
        pl.col("no_inf").any().over(key),
        pl.col("first_ts").min().over(key),
        pl.col("last_ts").max().over(key),
    )


def means(
    samples: pl.DataFrame, name: str, by: Sequence[str], window: Window | None = None, *, from_zero: bool = False
) -> pl.DataFrame:
    """Return the mean per entity from `<name>_sum` and `<name>_count` alone.

    Columns: those of `by`, name, sum, count, mean, first_ts, last_ts (the time covered). The mean is null where nothing
    was observed. Sources without buckets (Triton's cumulative durations) have it too.
    """
    rows = samples.filter(pl.col("name").is_in([f"{name}_sum", f"{name}_count"]))
    together = about(rows).select("series_id", _member())
    grown = with_labels(increase(rows, window, from_zero=from_zero, together=together), by).drop_nulls("increase")
    parts = [
        grown.filter(pl.col("name") == f"{name}_{part}")
        .group_by(list(by))
        .agg(pl.col("increase").sum().alias(part), pl.col("first_ts").min(), pl.col("last_ts").max())
        for part in ("sum", "count")
    ]
    parts[1] = parts[1].drop("first_ts", "last_ts")
    joined = parts[0].join(parts[1], on=list(by), how="full", coalesce=True, nulls_equal=True)
    mean = pl.when(pl.col("count") > 0).then(pl.col("sum") / pl.col("count")).alias("mean")
    return joined.select(*by, pl.lit(name).alias("name"), "sum", "count", mean, "first_ts", "last_ts").sort(list(by))
