"""Quantiles of a histogram that say what the buckets know: bounds, an estimate between them, or "> 60 s".

Beyond the last finite bound and within the lowest bucket there is no estimate: a histogram tells `> 60` or `<= 0.3`
there, and a number would be a guess that looks like a measurement.
"""

from collections.abc import Sequence

import polars as pl

from analytics.metrics.histograms import DIGITS

EDGE = 1e-9
"""Relative distance at which a rank counts as lying on the edge of a bucket."""
SHOWN = 3
"""Significant digits of an estimate in words: no bucket knows more."""
AT_LEAST, AT_MOST, ESTIMATE = ">", "<=", "="


def quantiles(buckets: pl.DataFrame, by: Sequence[str], qs: Sequence[float]) -> pl.DataFrame:
    """Return one row per entity and quantile of the rows that `histograms.buckets` gives.

    Columns: those of `by`, name, q, total (observations), value (interpolated within its bucket; null where refused),
    low and high (bounds of its bucket; high is null beyond the last finite bound), relation ('=', '<=' high, '>' low;
    null where nothing is known), width_ratio (width of the bucket over its upper bound, 1 in the lowest; null beyond
    the last: the larger the coarser), and the flags of the buckets. Nothing observed gives nulls.
    Raises ValueError for a quantile outside (0, 1].
    """
    if not all(0 < q <= 1 for q in qs):
        raise ValueError(f"quantiles lie in (0, 1], not {tuple(qs)}")
    key = [*by, "name"]
    bounded = buckets.sort([*key, "le"]).with_columns(
        pl.col("le").shift(1).over(key).alias("_low"),
        pl.col("count").shift(1).over(key).fill_null(0.0).alias("_below"),
        pl.col("count").last().over(key).alias("total"),
    )
    found = [_quantile(bounded, key, q) for q in qs]
    return pl.concat(found).sort([*key, "q"]) if found else _quantile(bounded, key, 1.0).clear()


def _quantile(bounded: pl.DataFrame, key: list[str], q: float) -> pl.DataFrame:
    rank = pl.col("total") * q
    holds = pl.col("count") >= rank * (1 - EDGE)
    rows = bounded.filter(holds).group_by(key, maintain_order=True).first()
    some = pl.col("total") > 0
    finite, lowest = pl.col("le").is_finite(), pl.col("_low").is_null()
    on_edge = rank >= pl.col("count") * (1 - EDGE)
    floor = pl.when(lowest & (pl.col("le") > 0)).then(0.0).otherwise(pl.col("_low"))
    inside = (rank - pl.col("_below")) / (pl.col("count") - pl.col("_below"))
    between = pl.col("_low") + (pl.col("le") - pl.col("_low")) * inside.clip(0.0, 1.0)
    value = pl.when(on_edge).then(pl.col("le")).otherwise(pl.when(~lowest).then(between))
    relation = (
        pl.when(~finite & ~lowest)
        .then(pl.lit(AT_LEAST))
        .when(finite & lowest & ~on_edge)
        .then(pl.lit(AT_MOST))
        .when(finite)
        .then(pl.lit(ESTIMATE))
    )
    width = pl.when(lowest).then(1.0).otherwise((pl.col("le") - pl.col("_low")) / pl.col("le").abs())
    return rows.select(
        *key,
        pl.lit(q).alias("q"),
        "total",
        pl.when(some & finite).then(value).alias("value"),
        pl.when(some).then(pl.when(finite).then(floor).otherwise(pl.col("_low"))).alias("low"),
        pl.when(some & finite).then(pl.col("le")).alias("high"),
        pl.when(some).then(relation).alias("relation"),
        pl.when(some & finite & (pl.col("le") != 0)).then(width).alias("width_ratio"),
        *(name for name in ("parts", "merged", "no_inf", "repaired") if name in rows.columns),
    )


def text(unit: str = "") -> pl.Expr:
    """Return a row of `quantiles` in words: '> 60 s', '<= 0.3 s', '0.0931 s'; null where nothing is known."""
    ending = f" {unit}" if unit else ""
    stated = (
        pl.when(pl.col("relation") == AT_LEAST)
        .then(pl.format("> {}", _number("low", DIGITS)))
        .when(pl.col("relation") == AT_MOST)
        .then(pl.format("<= {}", _number("high", DIGITS)))
        .otherwise(_number("value", SHOWN))
    )
    return pl.when(pl.col("relation").is_not_null()).then(stated + ending)


def _number(name: str, digits: int) -> pl.Expr:
    return pl.col(name).round_sig_figs(digits).cast(pl.String).str.replace(r"\.0$", "")


def within(buckets: pl.DataFrame, by: Sequence[str], limit: float) -> pl.DataFrame:
    """Return what the buckets know of the share of observations at or below `limit` (an objective).

    Columns: those of `by`, name, total, low and high (bounds on either side; equal where `limit` is a bound, high null
    beyond the last), share_low and share_high (the share lies between). Wide shares mean: too coarse for this limit.
    """
    key = [*by, "name"]
    below, above = pl.col("le") <= limit * (1 + EDGE), pl.col("le") >= limit * (1 - EDGE)
    at = (
        buckets.sort([*key, "le"])
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("count").last().alias("total"),
            pl.col("le").filter(below).last().fill_null(0.0).alias("low"),
            pl.col("le").filter(above).first().alias("high"),
            pl.col("count").filter(below).last().fill_null(0.0).alias("_low"),
            pl.col("count").filter(above).first().alias("_high"),
        )
    )
    some = pl.col("total") > 0
    return at.select(
        *key,
        "total",
        "low",
        pl.when(pl.col("high").is_finite()).then(pl.col("high")).alias("high"),
        pl.when(some).then(pl.col("_low") / pl.col("total")).alias("share_low"),
        pl.when(some).then(pl.col("_high") / pl.col("total")).alias("share_high"),
    )
