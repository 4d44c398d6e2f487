"""Engines by what they expose: the rows of `status`, with bounds of buckets and the peak of GPU memory."""

from typing import Any

import polars as pl

from analytics.fleet.engines import ENGINE_METRICS, engines
from analytics.metrics.series import naive, with_labels
from store.window import Window

MEMORY = "gpu_memory_bytes"
NAMES = (*ENGINE_METRICS, MEMORY)
_MEASURED = ("requests_per_second", "generation_tokens_per_second", "ttft_p99", "itl_p99", "tpot_p99", "e2e_p99")


def live(samples: pl.DataFrame, window: Window) -> list[dict[str, Any]]:
    """Return a row per engine that measures something; of GPU memory only what the same instance exposes."""
    known = samples.drop_nulls(["ts", "name", "series_id"])
    rows = known.filter(pl.col("name").is_in(ENGINE_METRICS))
    if rows.drop_nulls("value").is_empty():
        return []
    found = engines(rows, window, window.end).join(
        _peaks(known, window), on=["service", "instance"], how="left", nulls_equal=True
    )
    found = found.rename({"generation_tokens_per_second": "output_tokens_per_second"})
    measured = [name.replace("generation_", "output_") for name in _MEASURED]
    return found.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in measured)).to_dicts()


def _peaks(samples: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Highest sum over an instance's GPUs of the memory in use."""
    used = samples.filter(pl.col("name") == MEMORY, pl.col("ts") < naive(window.end))
    used = with_labels(used, ["state"]).filter(pl.col("state") == "used").drop_nulls("value")
    at_once = used.group_by("service", "instance", "ts").agg(pl.col("value").sum())
    return at_once.group_by("service", "instance").agg(pl.col("value").max().alias("peak_memory_bytes"))
