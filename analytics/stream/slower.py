"""Whether the gaps of the latest streams are longer than they were: P99 by bucket against the calm buckets before.

The P99 of a bucket is that of a histogram (within 1 %), its lower limit that of as many independent gaps as the design
effect leaves: the larger of those between streams and between twentieths of the bucket.
"""

import bisect
import math
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.stats.order_statistics import limit_ranks
from analytics.stream import SLOWER
from analytics.stream.groups import DIFFERENT
from store.rollups.sketch import GAMMA, LOG_GAMMA, index_expr

Q = 0.99
LEAST_STREAMS, LEAST_GAPS = 20, 100
"""Streams in a bucket that is compared, and the independent gaps that they amount to."""
LEAST_EARLIER = 5
"""Such buckets before it, with as many tokens per event: the baseline is their median."""
PARTS = 20
MAD_TO_SD = 1.4826


def measured(rows: pl.DataFrame, streams: pl.DataFrame, by: list[str], size: timedelta) -> pl.DataFrame:
    """Return a row per group and bucket with gaps: gaps, gap_p50_s, gap_p99_s, its lower limit and what that rests on.

    `streams` has the labels, bucket, stream and ts; `rows` the events of all streams.
    """
    keys = [*by, "bucket"]
    cells = streams.select(keys).unique().sort(keys).with_row_index("cell")
    mine = streams.join(cells, on=keys).select("cell", "stream", "gaps", "events", "tokens", _part(size))
    gaps = rows.lazy().filter(pl.col("gap_us").is_not_null()).join(mine.lazy().select("cell", "stream"), on="stream")
    placed = gaps.select("cell", "stream", index_expr(pl.col("gap_us")).fill_null(-1).alias("idx")).collect()
    counts = placed.group_by("cell", "idx").len("n").sort("cell", "idx")
    counts = counts.with_columns(pl.col("n").cum_sum().over("cell").alias("upto"))
    found = counts.group_by("cell").agg(
        pl.col("n").sum().cast(pl.Int64).alias("gaps"), _index_at(0.5).alias("middle"), _index_at(Q).alias("tail")
    )
    found = found.join(_effects(placed, mine, found), on="cell")
    found = _limited(counts, found)
    sizes = mine.group_by("cell").agg(
        pl.len().cast(pl.Int64).alias("streams"),
        (pl.col("tokens").sum() / pl.col("events").sum()).alias("tokens_per_event"),
    )
    return cells.join(found, on="cell").join(sizes, on="cell").select(
        *keys, "gaps", "streams", "tokens_per_event", "independent", *_seconds()
    )  # fmt: skip


def _part(size: timedelta) -> pl.Expr:
    width = max(size // timedelta(microseconds=1) // PARTS, 1)
    return (pl.col("ts").dt.epoch("us") // width).alias("part")


def _index_at(q: float) -> pl.Expr:
    """Index of the histogram at a quantile, of counts in rising order."""
    return pl.col("idx").filter(pl.col("upto") >= (q * pl.col("n").sum()).ceil()).first()


def _effects(placed: pl.DataFrame, mine: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Design effect of the share beyond the P99, by cell: the larger of that of streams and of parts of the bucket."""
    over = placed.join(found.select("cell", "tail"), on="cell").filter(pl.col("idx") > pl.col("tail"))
    hits = over.group_by("stream").len("hits")
    counted = (
        mine.filter(pl.col("gaps") > 0).join(hits, on="stream", how="left").with_columns(pl.col("hits").fill_null(0))
    )
    parts = counted.group_by("cell", "part", maintain_order=True).agg(pl.col("hits").sum(), pl.col("gaps").sum())
    made = (
        counted.group_by("cell").agg(_effect()).join(parts.group_by("cell").agg(_effect()), on="cell", suffix="_parts")
    )
    return made.select("cell", pl.max_horizontal("effect", "effect_parts").alias("effect"))


def _effect() -> pl.Expr:
    """`analytics.stats.clusters.effect_of_counts` of each group, as an expression."""
    n, blocks = pl.col("gaps").sum(), pl.len()
    share = pl.col("hits").sum() / n
    over = ((pl.col("hits") - share * pl.col("gaps")) ** 2).sum() * blocks / (blocks - 1)
    effect = over / (n * share * (1 - share))
    return (
        pl.when((blocks > 1) & (share > 0) & (share < 1))
        .then(pl.max_horizontal(effect, 1.0))
        .otherwise(1.0)
        .alias("effect")
    )


def _limited(counts: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Add the index of the lower limit of the P99."""
    independent = np.maximum((found["gaps"] / found["effect"]).to_numpy().astype(np.int64), 1)
    low = limit_ranks(independent, Q)[0]
    stretched = np.floor(low * found["gaps"].to_numpy() / independent).astype(np.int64)
    ranked = found.with_columns(pl.Series("independent", independent), pl.Series("rank", stretched))
    reached = counts.join(ranked.select("cell", "rank"), on="cell").filter(
        pl.col("rank") >= 1, pl.col("upto") >= pl.col("rank")
    )
    return ranked.join(reached.group_by("cell").agg(pl.col("idx").min().alias("low")), on="cell", how="left")


def _seconds() -> list[pl.Expr]:
    """Estimates of the indexes, in seconds; gaps of zero have the index -1 and are below a microsecond."""
    names = {"middle": "gap_p50_s", "tail": "gap_p99_s", "low": "gap_p99_low_s"}
    value = {name: 2e-6 * (pl.col(name) * LOG_GAMMA).exp() / (GAMMA + 1) for name in names}
    return [pl.when(pl.col(name) < 0).then(0.0).otherwise(value[name]).alias(names[name]) for name in names]


def judged(cells: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Add baseline and ratio: the lower limit of the P99 over the median P99 of the calm buckets before.

    That limit is the lower of the one from its own gaps and of P99 less twice the spread of the buckets before.

    Both are null for a bucket of few streams and where too few before it can be compared.
    """
    made = [
        part.with_columns(_ratios(part))
        for _, part in frames.groups(cells.sort(*by, "bucket", descending=[False] * len(by) + [True]), by)
    ]
    none = (pl.lit(None, pl.Float64).alias(name) for name in ("baseline_s", "gap_ratio"))
    return pl.concat(made) if made else cells.with_columns(none)


def _ratios(part: pl.DataFrame) -> list[pl.Series]:
    """Baseline and ratio of the buckets of one group, oldest first; no bucket is judged by a later one."""
    earlier: list[dict[str, Any]] = []
    bases: list[float | None] = []
    ratios: list[float | None] = []
    for row in part.iter_rows(named=True):
        able = row["streams"] >= LEAST_STREAMS and row["independent"] >= LEAST_GAPS and row["gap_p99_low_s"]
        base, spread = _baseline([old for old in earlier if _alike(old, row)]) if able else (None, 0.0)
        bases.append(base)
        ratios.append(min(row["gap_p99_low_s"], row["gap_p99_s"] * math.exp(-2 * spread)) / base if base else None)
        if able:
            bisect.insort(
                earlier, row | {"calm": not base or not SLOWER.holds(ratios[-1])}, key=lambda old: old["gap_p99_s"]
            )
    return [pl.Series("baseline_s", bases, pl.Float64), pl.Series("gap_ratio", ratios, pl.Float64)]


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Say whether two buckets deliver as many tokens per event: other chunks have other gaps."""
    return bool(abs(one["tokens_per_event"] / other["tokens_per_event"] - 1) <= DIFFERENT)


def _baseline(earlier: list[dict[str, Any]]) -> tuple[float | None, float]:
    """Median of the calm ones, in order of their P99; of all, once most are above: that is what is usual now.

    Also their robust spread on the log scale: what a bucket may differ by though nothing happened, beyond chance.
    """
    calm = [row["gap_p99_s"] for row in earlier if row["calm"]]
    used = calm if 2 * len(calm) >= len(earlier) else [row["gap_p99_s"] for row in earlier]
    k = len(used)
    base = float(used[(k - 1) // 2] + used[k // 2]) / 2 if k >= LEAST_EARLIER else None
    if not base:
        return None, 0.0
    away = sorted(abs(math.log(value / base)) for value in used if value > 0)
    return base, MAD_TO_SD * away[len(away) // 2] if away else 0.0
