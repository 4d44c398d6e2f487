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
    """Return a row per event with tokens: the key, at_us, tokens, and gap_us to the event before (null for the first).

    A repeated event adds no tokens; how many were left out is in column `repeated` of the stream's first row.
    """
    counted = pl.when(pl.col("tokens").list.len() == pl.col("offsets_us").list.len()).then(pl.col("tokens"))
    ones = pl.col("offsets_us").list.eval(pl.lit(1, pl.Int64))
    rows = (
        arrivals.filter(pl.col("offsets_us").list.len() > 0)
        .select(*KEY, pl.col("offsets_us").alias("at_us"), pl.coalesce(counted, ones).alias("tokens"))
        .explode("at_us", "tokens")
        .filter(pl.col("tokens") > 0)
        .sort(*KEY, "at_us", maintain_order=True)
    )
    before = pl.col("at_us").shift().over(KEY)
    single = (pl.col("tokens") == 1) & (pl.col("at_us") == before)
    rows = rows.with_columns(single.fill_null(value=False).alias("_again"))
    repeated = rows.group_by(KEY).agg(pl.col("_again").sum().alias("repeated"))
    kept = rows.filter(~pl.col("_again")).drop("_again")
    return kept.with_columns((pl.col("at_us") - pl.col("at_us").shift().over(KEY)).alias("gap_us")).join(
        repeated, on=KEY, how="left"
    )


def streams(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per stream from its events. What is undefined is null: jitter below 3 gaps, TPOT of one token."""
    gap, tokens, at = pl.col("gap_us") / 1e6, pl.col("tokens"), pl.col("at_us") / 1e6
    later = tokens.filter(pl.col("gap_us").is_not_null())
    each = gap / tokens
    n = later.sum()
    mean_token = (each * tokens).sum() / n
    spread_token = ((tokens * (each - mean_token) ** 2).sum() / (n - 1)).sqrt()
    many = gap.count() >= JITTER_GAPS
    stall = pl.when(gap.count() >= STALL_GAPS).then(
        (gap > pl.max_horizontal(pl.lit(STALL_S), STALL_TIMES * gap.median())).sum()
    )
    half = at.filter(tokens.cum_sum() >= tokens.sum() / 2).first()
    whole = at.last() - at.first()
    made = rows.group_by(KEY, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("events"),
        tokens.sum().alias("tokens"),
        pl.col("repeated").first(),
        pl.when(many & (gap.mean() > 0)).then(gap.std() / gap.mean()).alias("ji"),
        pl.when(many).then(gap.var()).alias("tiav"),
        pl.when(many & (n >= JITTER_GAPS) & (mean_token > 0)).then(spread_token / mean_token).alias("ji_token"),
        pl.when(at.last() > 0).then(whole / at.last()).alias("decode_share"),
        pl.when((tokens.sum() >= SKEW_TOKENS) & (whole > 0))
        .then((half - at.first()) / whole - 0.5)
        .alias("half_time_skew"),
        at.first().alias("first_s"),
        at.last().alias("last_s"),
        pl.when(tokens.sum() > 1).then(whole / (tokens.sum() - 1)).alias("arrival_tpot_s"),
        gap.max().alias("itl_max_s"),
        gap.median().alias("itl_median_s"),
        stall.cast(pl.Int64).alias("stalls"),
        gap.count().cast(pl.Int64).alias("gaps"),
        gap.sum().alias("gap_sum"),
        ((gap - gap.mean()) ** 2).sum().alias("gap_m2"),
    )
    return made.with_columns(pl.col("decode_share").alias("ftlts"))


def paints(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Return jitter index and longest gap of the frames of a browser, a row per stream that has three or more."""
    steps = pl.col("paints_us").list.diff(null_behavior="drop")
    rows = arrivals.filter(pl.col("paints_us").list.len() > JITTER_GAPS)
    return rows.select(
        *KEY,
        (steps.list.std() / steps.list.mean()).alias("frame_jitter"),
        (steps.list.max() / 1e6).alias("frame_gap_max_s"),
    )
