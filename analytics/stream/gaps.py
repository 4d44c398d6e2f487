"""Arrivals of every stream as rows, and what one stream says: jitter, stalls, time per token.

Of a stream's events those without tokens (a role, a keep-alive) and repeated ones (same time as the one before) are
left out; times are put in order. Formulas are of gaps between successive events: JI = sd / mean (n - 1), TIAV = var.
"""

import polars as pl

STALL_S, STALL_TIMES, STALL_GAPS = 0.2, 5.0, 5
"""A stall is a gap over both; of fewer gaps the median says nothing."""
JITTER_GAPS = 3
SKEW_TOKENS = 8
KEY = ("trace_id", "span_id")


def events(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Return a row per event with tokens: stream (place of its row in `arrivals`), at_us, tokens, gap_us.

    gap_us is null for a stream's first event; `again` counts the repeated events that were left out before this one.
    """
    counted = pl.when(pl.col("tokens").list.len() == pl.col("offsets_us").list.len()).then(pl.col("tokens"))
    ones = pl.col("offsets_us").list.eval(pl.lit(1, pl.Int64).repeat_by(pl.len()).explode())
    rows = (
        arrivals.with_row_index("stream")
        .filter(pl.col("offsets_us").list.len() > 0)
        .select("stream", pl.col("offsets_us").alias("at_us"), pl.coalesce(counted, ones).alias("tokens"))
        .explode("at_us", "tokens")
        .filter(pl.col("tokens") > 0)
    )
    same = pl.col("stream") == pl.col("stream").shift()
    if rows.select((same & (pl.col("at_us") < pl.col("at_us").shift())).any()).item():
        rows = rows.sort("stream", "at_us", maintain_order=True)
    again = same & (pl.col("tokens") == 1) & (pl.col("at_us") == pl.col("at_us").shift())
    rows = rows.with_columns(again.fill_null(value=False).cast(pl.Int64).alias("again"))
    if rows["again"].sum():
        rows = rows.with_columns(pl.col("again").cum_sum().alias("_all")).filter(pl.col("again") == 0)
        rows = rows.with_columns(pl.col("_all").diff().fill_null(pl.col("_all")).alias("again")).drop("_all")
    return rows.with_columns(pl.when(same).then(pl.col("at_us").diff()).alias("gap_us"))


def streams(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per stream from its events. What is undefined is null: jitter below 3 gaps, TPOT of one token."""
    seconds = rows.with_columns(
        (pl.col("gap_us") / 1e6).alias("gap"),
        (pl.col("at_us") / 1e6).alias("at"),
        (pl.col("gap_us") / 1e6 / pl.col("tokens")).alias("each"),
        pl.when(pl.col("gap_us").is_not_null()).then("tokens").alias("later"),
    )
    gap, tokens, at = pl.col("gap"), pl.col("tokens"), pl.col("at")
    made = seconds.group_by("stream", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("events"),
        tokens.sum().alias("tokens"),
        pl.col("again").sum().alias("repeated"),
        at.first().alias("first_s"),
        at.last().alias("last_s"),
        at.filter(tokens.cum_sum() >= tokens.sum() / 2).first().alias("half_s"),
        gap.max().alias("itl_max_s"),
        gap.median().alias("itl_median_s"),
        gap.count().cast(pl.Int64).alias("gaps"),
        gap.sum().alias("gap_sum"),
        gap.std().alias("spread"),
        pl.col("later").sum().alias("later"),
        (pl.col("later") * (pl.col("each") - gap.sum() / pl.col("later").sum()) ** 2).sum().alias("each_m2"),
    )
    whole, mean = pl.col("last_s") - pl.col("first_s"), pl.col("gap_sum") / pl.col("gaps")
    each, many = pl.col("gap_sum") / pl.col("later"), pl.col("gaps") >= JITTER_GAPS
    each_spread = (pl.col("each_m2") / (pl.col("later") - 1)).sqrt()
    long_enough = (pl.col("tokens") >= SKEW_TOKENS) & (whole > 0)
    return made.join(_stalls(seconds, made), on="stream", how="left", maintain_order="left").with_columns(
        pl.when(many & (mean > 0)).then(pl.col("spread") / mean).alias("ji"),
        pl.when(many).then(pl.col("spread") ** 2).alias("tiav"),
        pl.when(many & (each > 0)).then(each_spread / each).alias("ji_token"),
        pl.when(pl.col("last_s") > 0).then(whole / pl.col("last_s")).alias("decode_share"),
        pl.when(pl.col("last_s") > 0).then(whole / pl.col("last_s")).alias("ftlts"),
        pl.when(long_enough).then((pl.col("half_s") - pl.col("first_s")) / whole - 0.5).alias("half_time_skew"),
        pl.when(pl.col("tokens") > 1).then(whole / (pl.col("tokens") - 1)).alias("arrival_tpot_s"),
        (pl.col("spread") ** 2 * (pl.col("gaps") - 1)).fill_null(0.0).alias("gap_m2"),
    )


def _stalls(seconds: pl.DataFrame, made: pl.DataFrame) -> pl.DataFrame:
    """Count the stalls of the streams that have gaps enough; only those with a long gap are looked at again."""
    able = made.filter(pl.col("gaps") >= STALL_GAPS)
    limit = pl.max_horizontal(pl.lit(STALL_S), STALL_TIMES * pl.col("itl_median_s"))
    some = able.filter(pl.col("itl_max_s") > limit).select("stream", limit.alias("limit"))
    found = some.join(seconds.select("stream", "gap"), on="stream").group_by("stream")
    counted = found.agg((pl.col("gap") > pl.col("limit")).sum().cast(pl.Int64).alias("stalls"))
    return able.select("stream").join(counted, on="stream", how="left").with_columns(pl.col("stalls").fill_null(0))


def paints(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Return jitter index and longest gap of the frames of a browser, a row per stream that has three or more."""
    steps = pl.col("paints_us").list.diff(null_behavior="drop")
    rows = arrivals.filter(pl.col("paints_us").list.len() > JITTER_GAPS)
    return rows.select(
        *KEY,
        (steps.list.std() / steps.list.mean()).alias("frame_jitter"),
        (steps.list.max() / 1e6).alias("frame_gap_max_s"),
    )
