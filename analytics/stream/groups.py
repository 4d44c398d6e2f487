"""Streams of a group together: quantiles of jitter and gaps, stalls, goodput, and whether groups may be compared."""

from typing import Any

import polars as pl

from analytics.stats.proportion import wilson
from analytics.stream import StreamParams, intervals
from store.window import Window

FOR_P99 = 100
DIFFERENT = 0.10
"""Share by which tokens per event may differ between groups whose jitter is compared: chunks of four tokens, and bursts
of speculative decoding, change the gaps more than any network does."""


def group_row(
    streams: pl.DataFrame, rows: pl.DataFrame, judged: pl.DataFrame, params: StreamParams, window: Window
) -> dict[str, Any]:
    """Return the measures of one group: its streams, their events, and all its requests (for goodput)."""
    whole = intervals.with_block(streams.filter(~pl.col("cancelled")))
    mine = rows.join(streams.select("stream"), on="stream", how="semi") if streams.height else rows.clear()
    gaps = mine.drop_nulls("gap_us")
    if whole.height < streams.height:
        gaps = gaps.join(whole.select("stream"), on="stream", how="semi")
    gaps = gaps.select("stream", gap=pl.col("gap_us") / 1e6, each=pl.col("gap_us") / 1e6 / pl.col("tokens"))
    able = whole.drop_nulls("stalls")
    stalled, n_able = int((able["stalls"] > 0).sum()), able.height
    good, n_judged = int(_good(judged, params).sum()), judged.height
    return {
        "n": streams.height,
        "jittered": whole["ji"].count(),
        "cancelled": streams.height - whole.height,
        "tokens_per_event": mine["tokens"].sum() / mine.height if mine.height else None,
        **_jitter(whole),
        **_gaps(gaps, whole),
        "stalls": int(able["stalls"].sum()) if n_able else None,
        "tpot_s": whole["tpot_s"].median(),
        **_share("stalled", stalled, n_able),
        **_share("goodput", good, n_judged),
        "goodput_per_second": good / window.span.total_seconds() if n_judged else None,
    }


def _jitter(whole: pl.DataFrame) -> dict[str, float | None]:
    """Quantiles of the jitter of single streams, and that of all their gaps, with limits."""
    jittered = whole.drop_nulls("ji")
    enough = jittered.height >= FOR_P99
    squares = (pl.col("gap_m2") + pl.col("gap_sum") ** 2 / pl.col("gaps")).sum().alias("gap_sum_squares")
    sums = pl.col("gaps").sum().alias("gap_n"), pl.col("gap_sum").sum().alias("gap_sum_s"), squares
    blocks = whole.filter(pl.col("gaps") > 0).group_by("block", maintain_order=True).agg(*sums)
    return {
        "ji_p50": jittered["ji"].quantile(0.5, "linear"),
        **_limits("ji_p50", intervals.of_streams(jittered, "ji", 0.5)),
        "ji_p99": jittered["ji"].quantile(0.99, "linear") if enough else None,
        **_limits("ji_p99", intervals.of_streams(jittered, "ji", 0.99, FOR_P99)),
        "ji_pooled": intervals.ratio(jittered),
        **_limits("ji_pooled", intervals.pooled(jittered)),
        **overall(blocks),
    }


def overall(blocks: pl.DataFrame) -> dict[str, float | None]:
    """Jitter of all gaps from sums per block of time, with limits."""
    value, *limits = intervals.overall(blocks)
    return {"ji_overall": value, **_limits("ji_overall", (limits[0], limits[1]))}


def _limits(name: str, limits: intervals.Limits, unit: str = "") -> dict[str, float | None]:
    return {f"{name}_low{unit}": limits[0], f"{name}_high{unit}": limits[1]}


def _gaps(gaps: pl.DataFrame, whole: pl.DataFrame) -> dict[str, float | None]:
    """Quantiles of the gaps and of their time per token, with limits that rest on streams and minutes."""
    made: dict[str, float | None] = {"gaps": gaps.height}
    for column, name in (("gap", "itl"), ("each", "itl_token")):
        for q, label, fewest in ((0.5, "p50", 1), (0.99, "p99", FOR_P99)):
            enough = gaps.height >= fewest
            made[f"{name}_{label}_s"] = gaps[column].quantile(q, "linear") if enough else None
            limits = intervals.of_gaps(gaps, whole, column, q) if enough and name == "itl" else (None, None)
            made |= _limits(f"{name}_{label}", limits, "_s") if name == "itl" else {}
    return made


def _share(name: str, hits: int, n: int) -> dict[str, float | None]:
    if not n:
        return {f"{name}_ratio": None, f"{name}_low": None, f"{name}_high": None}
    low, high = wilson([hits], [n])
    return {f"{name}_ratio": hits / n, f"{name}_low": float(low[0]), f"{name}_high": float(high[0])}


def _good(judged: pl.DataFrame, params: StreamParams) -> pl.Series:
    """Say which requests met every limit; one that failed, was given up or does not say its time did not."""
    fine = pl.col("status").ne_missing(pl.lit("error")) & pl.col("error_code").is_null() & ~pl.col("cancelled")
    first, later, end = (
        pl.coalesce(a, b) for a, b in (("first_s", "ttft_s"), ("arrival_tpot_s", "tpot_s"), ("last_s", "e2e_s"))
    )
    met = fine & (first <= params.ttft_limit) & ((later <= params.tpot_limit) | (later.is_null() & first.is_not_null()))
    if params.e2e_limit:
        met &= end <= params.e2e_limit
    return judged.select(met.fill_null(value=False).alias("good")).to_series()


def with_comparable(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of each group whether its jitter may be held against the others': tokens per event must be alike."""
    sizes = sorted(row["tokens_per_event"] for row in groups if row["tokens_per_event"])
    usual = sizes[(len(sizes) - 1) // 2] if sizes else None
    for row in groups:
        size = row["tokens_per_event"]
        row["comparable"] = "yes"
        if usual and size and abs(size / usual - 1) > DIFFERENT:
            row["comparable"] = f"no: {size:.2f} tokens per event, {usual:.2f} elsewhere"
    return groups
