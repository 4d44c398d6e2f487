"""What a person should know of an engine's numbers before believing them."""

import polars as pl

from analytics.fleet.engine_latency import LATENCIES

LEAST_PLAUSIBLE_S = 0.001
"""No generating model answers in less than a millisecond: a shorter mean measures something else."""
_FLAGS = {
    "merged": "bucket bounds differ between its parts, common ones used",
    "no_inf": "buckets lack +Inf",
    "repaired": "bucket counts fell with rising bounds, lifted",
}
_JUDGED = {
    "ttft": "mean TTFT {} is implausible for a generating model",
    "e2e": "mean e2e latency {} is implausible for a generating model: a decoupled backend counts the hand-over only",
}


def noted(engines: pl.DataFrame, frozen: pl.DataFrame) -> pl.DataFrame:
    """Add notes, joined by `; `; null where there are none. `frozen` are the series of dead workers."""
    said = [
        pl.when(pl.col("since_start")).then(pl.lit("scraped once: totals since its start")),
        *(_implausible(name, text) for name, text in _JUDGED.items()),
        *(_flag(name, flag, text) for name in LATENCIES for flag, text in _FLAGS.items()),
        pl.when((pl.col("prefix_hit_ratio") == 0) & (pl.col("prefix_cache_queries_total") > 0)).then(
            pl.lit("prefix hit ratio 0 may be block granularity: prefixes shorter than a block never hit")
        ),
        pl.when((pl.col("preemptions") > 0) & pl.col("prefix_hit_ratio").is_not_null()).then(
            pl.format(
                "{} preemptions: prompts computed again count in the prefix hit ratio",
                pl.col("preemptions").round(0).cast(pl.Int64),
            )
        ),
        pl.when(pl.col("dips") > 0).then(
            pl.format("a counter decreased by {} % without a restart", (pl.col("dip_ratio") * 100).round(2))
        ),
        pl.col("_frozen"),
    ]
    hints = frozen.group_by("service", "instance").agg(pl.col("hint").sort().str.join("; ").alias("_frozen"))
    joined = engines.join(hints, on=["service", "instance"], how="left", nulls_equal=True)
    text = pl.concat_str(said, separator="; ", ignore_nulls=True)
    return joined.with_columns(pl.when(text != "").then(text).alias("notes"))


def _implausible(name: str, text: str) -> pl.Expr:
    mean = pl.col(f"{name}_mean_s")
    ms = pl.format("{} ms", (mean * 1e3).round_sig_figs(2))
    return pl.when((mean >= 0) & (mean < LEAST_PLAUSIBLE_S)).then(pl.format(text, ms))


def _flag(name: str, flag: str, text: str) -> pl.Expr:
    return pl.when(pl.col(f"{name}_flags").str.contains(flag)).then(pl.lit(f"{name}: {text}"))
