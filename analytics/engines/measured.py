"""Engines by their requests: one row a group, and one per band of prompt lengths."""

from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.stats.clusters import design_effect
from analytics.stats.order_statistics import quantile_limits
from analytics.stats.proportion import wilson

MEASURES = ("ttft", "tpot", "e2e")
FOR_P95, FOR_P99 = 20, 100
"""Requests below which the largest value would pass for the quantile."""
FOR_MEDIAN = 6
"""Fewest values whose order gives 95 % limits of a median."""
BANDS = tuple(1024 * 2**k for k in range(9))
"""Upper edges of the bands of prompt lengths: 1K, 2K, … 256K tokens."""
BLOCK_S, LEAST_BLOCKS = 60.0, 20
"""Requests of a minute share their queue; of shorter runs, of a twentieth."""
MADE_UP_S = 2e-6
"""Requests of a file without times are stored microseconds apart: such starts are no load."""


def prepared(requests: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Add label columns and `failed`. A failed request has no latency, whatever a tool wrote (0 s, often)."""
    failed = (pl.col("status").eq_missing(pl.lit("error"))) | pl.col("error_code").is_not_null()
    rows = frames.label_columns(requests.drop_nulls("ts").with_columns(failed.alias("failed")), by)
    latencies = [
        pl.when(~pl.col("failed") & (pl.col(f"{name}_s") >= 0) & pl.col(f"{name}_s").is_finite())
        .then(pl.col(f"{name}_s"))
        .alias(f"{name}_s")
        for name in MEASURES
    ]
    return rows.with_columns(latencies).with_columns(_blocks(rows["ts"]))


def _blocks(ts: pl.Series) -> pl.Series:
    """Block of time of each request; each is a block of its own where starts are made up."""
    at = ts.dt.epoch("us").to_numpy() / 1e6
    span = float(np.ptp(at)) if at.size else 0.0
    if span <= MADE_UP_S * at.size:
        return pl.Series("_block", np.arange(at.size), pl.Int64)
    return pl.Series("_block", (at - at.min()) // min(BLOCK_S, span / LEAST_BLOCKS), pl.Int64)


def clustering(hit: pl.Series, block: pl.Series) -> float:
    """Design effect of a share: 1 for independent requests."""
    return design_effect(hit.to_numpy(), block.to_numpy().astype(np.intp))


def limits(rows: pl.DataFrame, column: str, q: float) -> tuple[float | None, float | None]:
    """95 % limits of a quantile that allow for requests of one block being alike."""
    known = rows.select(column, "_block").drop_nulls()
    values = known[column].to_numpy()
    if not values.size:
        return None, None
    return quantile_limits(values, q, effect=clustering(known[column] > float(np.quantile(values, q)), known["_block"]))


def group_row(rows: pl.DataFrame) -> dict[str, Any]:
    """Return a row of `engines` of one group's requests."""
    good = rows.filter(~pl.col("failed"))
    n, failed, seconds = rows.height, rows.height - good.height, load_seconds(rows)
    tokens = good["output_tokens"].drop_nulls()
    made: dict[str, Any] = {
        "n": n,
        "failed": failed,
        **error_share(failed, n, clustering(rows["failed"], rows["_block"])),
        "requests_per_second": good.height / seconds if seconds else None,
        "sent_per_second": n / seconds if seconds else None,
        "output_tokens_per_second": float(tokens.sum()) / seconds if seconds and tokens.len() else None,
        "input_tokens": good["input_tokens"].mean(),
        "output_tokens": tokens.mean(),
        "models": _texts(rows["model"]),
        "ttft_source": _texts(good.filter(pl.col("ttft_s").is_not_null())["ttft_source"]),
    }
    for name in MEASURES:
        made |= quantile_columns(name, good)
    return made


def _texts(values: pl.Series) -> str | None:
    return ", ".join(sorted(values.drop_nulls().unique())) or None


def load_seconds(rows: pl.DataFrame) -> float | None:
    """Seconds from the first start to the last end; None where starts are made up or there is but one request."""
    if rows.height < 2:
        return None
    starts = rows["ts"].dt.epoch("us").to_numpy() / 1e6
    if float(np.ptp(starts)) <= MADE_UP_S * rows.height:
        return None
    ends = starts + rows["e2e_s"].fill_null(0.0).to_numpy()
    return float(ends.max() - starts.min())


def error_share(failed: float, n: float, effect: float = 1.0) -> dict[str, float | None]:
    """Return the error ratio and its Wilson limits, sizes divided by the design effect; nulls without requests."""
    if not n:
        return {"error_ratio": None, "error_low": None, "error_high": None}
    low, high = wilson([failed / effect], [n / effect])
    return {"error_ratio": failed / n, "error_low": float(low[0]) if failed else 0.0, "error_high": float(high[0])}


def quantile_columns(name: str, good: pl.DataFrame) -> dict[str, float | None]:
    """Return P50, P95 and P99 with its limits; each null where there are too few values for it."""
    values = good[f"{name}_s"].drop_nulls()
    n = values.len()
    enough = n >= FOR_P99
    low, high = limits(good, f"{name}_s", 0.99) if enough else (None, None)
    return {
        f"{name}_p50_s": values.median() if n else None,  # type: ignore[dict-item]
        f"{name}_p95_s": values.quantile(0.95, "linear") if n >= FOR_P95 else None,
        f"{name}_p99_s": values.quantile(0.99, "linear") if enough else None,
        f"{name}_p99_low_s": low,
        f"{name}_p99_high_s": high,
    }


def bands(rows: pl.DataFrame, labels: dict[str, str]) -> list[dict[str, Any]]:
    """Return a row per band of prompt lengths that has successful requests which state their tokens."""
    known = rows.filter(~pl.col("failed") & (pl.col("output_tokens") > 0) & (pl.col("e2e_s") > 0)).drop_nulls(
        "input_tokens"
    )
    edges = np.array(BANDS)
    index = np.searchsorted(edges, known["input_tokens"].to_numpy())
    speed = (pl.col("output_tokens") / pl.col("e2e_s")).alias("_speed")
    split = known.with_columns(pl.Series("_band", index, pl.Int64), speed).partition_by("_band", as_dict=True)
    return [labels | _band(int(key[0]), part) for key, part in sorted(split.items())]


def _band(index: int, part: pl.DataFrame) -> dict[str, Any]:
    low, high = limits(part, "_speed", 0.5) if part.height >= FOR_MEDIAN else (None, None)
    name = f"<= {BANDS[index] // 1024}K" if index < len(BANDS) else f"> {BANDS[-1] // 1024}K"
    return {
        "band": name,
        "n": part.height,
        "tokens_per_second": part["_speed"].median(),
        "tokens_low": low,
        "tokens_high": high,
        "ttft_p50_s": part["ttft_s"].median(),
        "tpot_p50_s": part["tpot_s"].median(),
    }
