"""Counters over time: how much each grew, whatever restarts, gaps and new pods came between.

A fall is a restart, and what is counted since adds from zero. A fall by a tiny share is no restart (a sum that lost a
member, a rounded value): it adds nothing until the counter passes its former height, and is reported as a dip beside
what Prometheus' `increase` would have made of it.
"""

from collections.abc import Sequence

import polars as pl

from analytics.metrics.series import about, naive, points, with_labels
from store.window import Window

DIP_RATIO = 0.02
"""Largest fall that is a dip. A restarted counter is back within 2 % of its height at the next scrape only if nearly
its whole life fits between two scrapes."""
_STEP = ("ts", "since", "series_id", "step", "prometheus_step", "reset", "dip_ratio")


def steps(samples: pl.DataFrame, *, from_zero: bool = False, together: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return what each sample added since the one before: one row per available sample, by series and time.

    Columns: ts, since (time of the sample before; null for the first), series_id, step, prometheus_step, reset,
    dip_ratio (0 where there was no dip). The first sample of a series adds nothing (null): what it counted before is
    not known to fall into this time. With `from_zero` it adds its whole value (`since` stays null): the total since
    the counter's own start. `together` maps series_id to a `member` whose series restart at once (the buckets of one
    histogram): a restart seen in one is one of all. Samples that are not available are passed over.
    """
    rows = points(samples).drop_nulls("value")
    same = (pl.col("series_id") == pl.col("series_id").shift(1)).fill_null(value=False)
    before = pl.when(same).then(pl.col("value").shift(1))
    rows = rows.with_columns(before.alias("before"), pl.when(same).then(pl.col("ts").shift(1)).alias("since"))
    fall = (pl.col("before") - pl.col("value")) / pl.col("before")
    dips = (pl.col("before") > 0) & (fall > 0) & (fall <= DIP_RATIO)
    rows = rows.with_columns(
        pl.when(dips).then(fall).otherwise(0.0).alias("dip_ratio"),
        ((pl.col("value") < pl.col("before")) & ~dips).fill_null(value=False).alias("reset"),
    )
    rows = _restarted_together(rows, together) if together is not None else rows
    return _measured(rows, from_zero).select(_STEP)


def _restarted_together(rows: pl.DataFrame, together: pl.DataFrame) -> pl.DataFrame:
    joined = rows.join(together.select("series_id", "member"), on="series_id", how="left", maintain_order="left")
    shared = joined.group_by("member", "ts").agg(pl.col("reset").any().alias("shared"))
    joined = joined.join(shared, on=["member", "ts"], how="left", maintain_order="left")
    reset = pl.col("shared") & pl.col("before").is_not_null()
    dip = pl.when(reset).then(0.0).otherwise(pl.col("dip_ratio"))
    return joined.with_columns(reset.alias("reset"), dip.alias("dip_ratio"))


def _measured(rows: pl.DataFrame, from_zero: bool) -> pl.DataFrame:
    """Add the steps: growth of the height reached since the start or the last reset."""
    first = pl.col("before").is_null()
    life = (first | pl.col("reset")).cum_sum()
    height = pl.col("value").cum_max().over(life)
    rows = rows.with_columns(height.alias("height"))
    whole = pl.max_horizontal(pl.col("value"), 0.0)
    fell = pl.col("value") < pl.col("before")
    grown = pl.when(pl.col("reset")).then(whole).otherwise(pl.col("height") - pl.col("height").shift(1))
    peer = pl.when(fell | pl.col("reset")).then(whole).otherwise(pl.col("value") - pl.col("before"))
    start = whole if from_zero else pl.lit(None, pl.Float64)
    return rows.with_columns(
        pl.when(first).then(start).otherwise(grown).alias("step"),
        pl.when(first).then(start).otherwise(peer).alias("prometheus_step"),
    )


def increase(
    samples: pl.DataFrame,
    window: Window | None = None,
    *,
    from_zero: bool = False,
    together: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the growth of every series within a window, one row per series.

    A step counts in the window that holds its later sample, so adjacent windows add up; rows of `samples` before the
    window serve as the base of its first step. Columns: series_id, what it is (`series.about`), increase (null where
    there is but one sample), prometheus_increase (differs where there are dips), resets, dips, dip_ratio (largest),
    n (samples in the window), first_ts and last_ts and span_s (the time that the increase covers; nothing is
    extrapolated beyond it).
    """
    found = steps(samples, from_zero=from_zero, together=together)
    if window is not None:
        found = found.filter(pl.col("ts") >= naive(window.start), pl.col("ts") < naive(window.end))
    known = pl.col("step").is_not_null().any()
    summed = found.group_by("series_id", maintain_order=True).agg(
        pl.when(known).then(pl.col("step").sum()).alias("increase"),
        pl.when(known).then(pl.col("prometheus_step").sum()).alias("prometheus_increase"),
        pl.col("reset").sum().cast(pl.Int64).alias("resets"),
        (pl.col("dip_ratio") > 0).sum().cast(pl.Int64).alias("dips"),
        pl.col("dip_ratio").max(),
        pl.len().cast(pl.Int64).alias("n"),
        pl.coalesce(pl.col("since").min(), pl.col("ts").min()).alias("first_ts"),
        pl.col("ts").max().alias("last_ts"),
    )
    spanned = summed.with_columns(_span_s())
    return spanned.join(about(samples), on="series_id", how="left", maintain_order="left")


def rate(samples: pl.DataFrame, window: Window | None = None) -> pl.DataFrame:
    """Return `increase` with per_second: the increase over the time it covers, null where it covers none."""
    return increase(samples, window).with_columns(_per_second())


def by_entity(increases: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add up the rows of `increase` by entity: pods that came and went are parts of one service.

    `by` names columns or labels. Columns: those of `by`, name, the sums, series (how many), the time covered (first to
    last sample of any series) and per_second. An entity of which no series has two samples has a null increase.
    """
    keyed = with_labels(increases, by)
    known = pl.col("increase").is_not_null().any()
    summed = keyed.group_by([*by, "name"], maintain_order=True).agg(
        pl.when(known).then(pl.col("increase").sum()),
        pl.when(known).then(pl.col("prometheus_increase").sum()),
        pl.col("resets", "dips", "n").sum(),
        pl.col("dip_ratio").max(),
        pl.len().cast(pl.Int64).alias("series"),
        pl.col("first_ts").min(),
        pl.col("last_ts").max(),
    )
    return summed.with_columns(_span_s()).with_columns(_per_second())


def _span_s() -> pl.Expr:
    return ((pl.col("last_ts") - pl.col("first_ts")).dt.total_microseconds() / 1e6).alias("span_s")


def _per_second() -> pl.Expr:
    return pl.when(pl.col("span_s") > 0).then(pl.col("increase") / pl.col("span_s")).alias("per_second")


def hints(increases: pl.DataFrame) -> pl.Series:
    """Return a sentence per row of `increase` or `by_entity` that had dips, null for the others."""
    text = pl.format(
        "counter decreased by {} % without a restart; Prometheus' increase would say {} instead of {}",
        (pl.col("dip_ratio") * 100).round(2),
        pl.col("prometheus_increase").round(3),
        pl.col("increase").round(3),
    )
    return increases.select(pl.when(pl.col("dips") > 0).then(text).alias("hint")).to_series()


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return part over whole within [0, 1]; null where the whole is zero or unknown: 0/0 is no share."""
    return pl.when(whole > 0).then((part / whole).clip(0.0, 1.0))
