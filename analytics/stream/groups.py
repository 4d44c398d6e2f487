"""Streams of a group together: quantiles of jitter and gaps, stalls, goodput, and whether groups may be compared."""

from typing import Any

import polars as pl

from analytics.stats.proportion import wilson
from analytics.stream import StreamParams
from store.window import Window

FOR_P99 = 100
DIFFERENT = 0.10
"""Share by which tokens per event may differ between groups whose jitter is compared: chunks of four tokens, and bursts
of speculative decoding, change the gaps more than any network does."""


def group_row(
    streams: pl.DataFrame, rows: pl.DataFrame, judged: pl.DataFrame, params: StreamParams, window: Window
) -> dict[str, Any]:
    """Return the measures of one group: its streams, their events, and all its requests (for goodput)."""
    whole = streams.filter(~pl.col("cancelled"))
    mine = rows.join(streams.select("stream"), on="stream", how="semi") if streams.height else rows.clear()
    gaps = mine.drop_nulls("gap_us")
    if whole.height < streams.height:
        gaps = gaps.join(whole.select("stream"), on="stream", how="semi")
    gap, each = gaps["gap_us"] / 1e6, gaps["gap_us"] / 1e6 / gaps["tokens"]
    jittered = whole.drop_nulls("ji")
    able = whole.drop_nulls("stalls")
    stalled, n_able = int((able["stalls"] > 0).sum()), able.height
    good, n_judged = int(_good(judged, params).sum()), judged.height
    return {
        "n": streams.height,
        "jittered": jittered.height,
        "cancelled": streams.height - whole.height,
        "tokens_per_event": mine["tokens"].sum() / mine.height if mine.height else None,
        "ji_p50": jittered["ji"].median(),
        "ji_p99": jittered["ji"].quantile(0.99, "linear") if jittered.height >= FOR_P99 else None,
        "ji_pooled": _pooled(jittered),
        "itl_p50_s": gap.median(),
        "itl_p99_s": gap.quantile(0.99, "linear") if gap.len() >= FOR_P99 else None,
        "itl_token_p50_s": each.median(),
        "itl_token_p99_s": each.quantile(0.99, "linear") if each.len() >= FOR_P99 else None,
        "tpot_s": whole["tpot_s"].median(),
        **_share("stalled", stalled, n_able),
        **_share("goodput", good, n_judged),
        "goodput_per_second": good / window.span.total_seconds() if n_judged else None,
    }


def _pooled(streams: pl.DataFrame) -> float | None:
    """Return sd over mean of all gaps, each gap about the mean of its own stream: means of streams are no jitter."""
    gaps, mean_sum = int(streams["gaps"].sum()), float(streams["gap_sum"].sum())
    freedom = gaps - streams.height
    if freedom <= 0 or mean_sum <= 0:
        return None
    return float((float(streams["gap_m2"].sum()) / freedom) ** 0.5 / (mean_sum / gaps))


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
