"""What else moved: each series in an incident against the calm time before it, in units of its own usual spread.

Median and MAD, never mean and standard deviation: where detection is late, the calm window holds some of the incident,
and a z score then finds hardly anything (RCAEval: .05 instead of .82 of root causes among the first five).
"""

from datetime import datetime

import polars as pl

from store.window import Window

SERIES = ("entity", "name")
OUTSIDE = 3.0
"""Spreads from the median beyond which a point counts as outside of what is usual."""
GONE = 10.0
"""Score of a series that ended, began or left the one value it ever had: no spread says how much that is."""
LEAST_BEFORE = 3
"""Calm points from which a median and a spread are made; with fewer, a series has no score."""
_LEAST_SPREAD = 0.01
"""Least spread as a share of the median: smaller steps of a nearly constant series are no incident."""


def moved(series: pl.DataFrame, incident: Window, before: Window, top: int = 10) -> pl.DataFrame:
    """Rank what moved: the `top` series with the highest score, the earlier one first where scores are equal.

    `series` has ts, entity, name and value (null or NaN: not available), naive UTC. Gives entity, name, score,
    direction (up, down, gone, appeared), before (median), during (median, or the outer tenth where that makes the
    score), since (first of the points in a row outside of what is usual, which may lie before the incident) and lag_s
    (from the incident's start to that, negative: earlier).
    Only series outside of what is usual are listed: an empty frame says that nothing else moved.
    """
    found = scores(series, incident, before).filter(pl.col("score") >= OUTSIDE)
    return found.sort("score", "lag_s", *SERIES, descending=[True, False, False, False], nulls_last=True).head(top)


def scores(series: pl.DataFrame, incident: Window, before: Window) -> pl.DataFrame:
    """Score every series, in order of entity and name; a score is null where there was too little before.

    Score: the larger of the shift of the median, and of how far the outer tenth of the points lies beyond every calm
    one (so one stray point of many is no incident); in units of the larger of 1.4826 MAD, IQR / 1.349
    and 1 % of the median (1.2533 mean deviations where all are 0: a series that hardly ever leaves one value).
    """
    rows = series.select("ts", *SERIES, pl.col("value").cast(pl.Float64).fill_nan(None))
    rows = rows.with_columns(pl.when(pl.col("value").is_finite()).then(pl.col("value")))
    inside, calm = (rows.filter(_within(window)) for window in (incident, before))
    usual = _usual(calm)
    table = usual.join(_during(inside), on=SERIES, how="full", coalesce=True, nulls_equal=True)
    table = table.with_columns(pl.col("n", "n_during").fill_null(0))
    expected = pl.col("n") * (incident.span / before.span)
    scored = table.with_columns(_score(expected), _direction())
    since = _since(pl.concat([calm, inside]).sort("ts"), scored, incident)
    found = scored.join(since, on=SERIES, how="left", nulls_equal=True)
    start = pl.lit(_naive(incident.start)).cast(pl.Datetime("us"))
    return found.select(
        *SERIES,
        "score",
        pl.when(pl.col("score").is_not_null()).then(pl.col("direction")).alias("direction"),
        pl.col("middle").alias("before"),
        _reached(),
        "since",
        ((pl.col("since") - start).dt.total_microseconds() / 1e6).alias("lag_s"),
    ).sort(*SERIES)


def _within(window: Window) -> pl.Expr:
    return (pl.col("ts") >= _naive(window.start)) & (pl.col("ts") < _naive(window.end))


def _naive(at: datetime) -> datetime:
    return at.replace(tzinfo=None)


def _usual(calm: pl.DataFrame) -> pl.DataFrame:
    """Median, spread and extremes of each series in the calm window."""
    value = pl.col("value")
    middle = calm.group_by(SERIES).agg(
        value.count().alias("n"),
        value.median().alias("middle"),
        value.min().alias("lowest"),
        value.max().alias("highest"),
        ((value.quantile(0.75) - value.quantile(0.25)) / 1.349).alias("iqr"),  # of two usual levels, MAD sees one
    )
    away = calm.join(middle.select(*SERIES, "middle"), on=SERIES, nulls_equal=True)
    distance = (value - pl.col("middle")).abs()
    spread = away.group_by(SERIES).agg(
        (1.4826 * distance.median()).alias("mad"), (1.2533 * distance.mean()).alias("deviation")
    )
    widest = pl.max_horizontal("mad", "iqr", _LEAST_SPREAD * pl.col("middle").abs())
    return middle.join(spread, on=SERIES, nulls_equal=True).with_columns(
        pl.when(pl.col("highest") > pl.col("lowest"))
        .then(pl.when(widest > 0).then(widest).otherwise(pl.col("deviation")))
        .alias("spread")
    )


def _during(inside: pl.DataFrame) -> pl.DataFrame:
    value = pl.col("value")
    return inside.group_by(SERIES).agg(
        value.count().alias("n_during"),
        value.median().alias("during"),
        value.quantile(0.1, "lower").alias("lowest_during"),
        value.quantile(0.9, "higher").alias("highest_during"),
    )


def _score(expected: pl.Expr) -> pl.Expr:
    """Score as `scores` says; GONE where a series ended, began, or was constant and is not."""
    ended = (pl.col("n_during") == 0) & (expected >= LEAST_BEFORE)
    began = (pl.col("n") == 0) & (pl.col("n_during") > 0)
    different = (pl.col("lowest_during") < pl.col("lowest")) | (pl.col("highest_during") > pl.col("highest"))
    measured = pl.when(pl.col("spread") > 0).then(_shift() / pl.col("spread")).otherwise(different * GONE)
    known = (pl.col("n") >= LEAST_BEFORE) & (pl.col("n_during") > 0)
    return pl.when(ended | began).then(GONE).when(known).then(measured).alias("score")


def _shift() -> pl.Expr:
    beyond = pl.max_horizontal(pl.col("highest_during") - pl.col("highest"), pl.col("lowest") - pl.col("lowest_during"))
    return pl.max_horizontal((pl.col("during") - pl.col("middle")).abs(), beyond)


def _direction() -> pl.Expr:
    """Way of the shift: that of the median, or of the points beyond every calm one where these are farther out."""
    up = pl.max_horizontal(pl.col("during") - pl.col("middle"), pl.col("highest_during") - pl.col("highest"))
    down = pl.max_horizontal(pl.col("middle") - pl.col("during"), pl.col("lowest") - pl.col("lowest_during"))
    way = pl.when(up > down).then(pl.lit("up")).otherwise(pl.lit("down"))
    gone, began = pl.col("n_during") == 0, pl.col("n") == 0
    return pl.when(gone).then(pl.lit("gone")).when(began).then(pl.lit("appeared")).otherwise(way).alias("direction")


def _reached() -> pl.Expr:
    """Value during the incident that the score is about."""
    outer = pl.when(pl.col("direction") == "up").then(pl.col("highest_during")).otherwise(pl.col("lowest_during"))
    by_median = (pl.col("during") - pl.col("middle")).abs() >= _shift()
    return pl.when(by_median | pl.col("middle").is_null()).then(pl.col("during")).otherwise(outer).alias("during")


def _since(rows: pl.DataFrame, scored: pl.DataFrame, incident: Window) -> pl.DataFrame:
    """First of the points in a row that are outside on the way of the shift and reach into the incident.

    Of a series that ended, the time after its last point: the incident's start, or a moment after it where unknown.
    """
    start = pl.lit(_naive(incident.start)).cast(pl.Datetime("us"))
    points = rows.drop_nulls("value").join(
        scored.select(*SERIES, "middle", "spread", "lowest", "highest", "direction"), on=SERIES, nulls_equal=True
    )
    reach = OUTSIDE * pl.col("spread").fill_null(0.0)
    above = pl.col("value") > pl.min_horizontal(pl.col("middle") + reach, "highest")
    below = pl.col("value") < pl.max_horizontal(pl.col("middle") - reach, "lowest")
    outside = pl.when(pl.col("direction") == "up").then(above).when(pl.col("direction") == "down").then(below)
    points = points.with_columns(outside.fill_null(pl.col("direction") == "appeared").alias("outside"))
    first = points.filter(pl.col("outside") & (pl.col("ts") >= start)).group_by(SERIES).agg(pl.col("ts").min())
    joined = points.join(first.rename({"ts": "first"}), on=SERIES, how="left", nulls_equal=True)
    usual = (
        joined.filter(~pl.col("outside") & (pl.col("ts") < pl.col("first")))
        .group_by(SERIES)
        .agg(pl.col("ts").max().alias("usual"))
    )
    run = joined.join(usual, on=SERIES, how="left", nulls_equal=True).filter(
        pl.col("outside") & (pl.col("usual").is_null() | (pl.col("ts") > pl.col("usual")))
    )
    ended = (
        scored.filter(pl.col("direction") == "gone")
        .select(*SERIES)
        .join(points.group_by(SERIES).agg(pl.col("ts").max().alias("since")), on=SERIES, nulls_equal=True)
    )
    return pl.concat([run.group_by(SERIES).agg(pl.col("ts").min().alias("since")), ended])
