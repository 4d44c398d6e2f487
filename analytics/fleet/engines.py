"""Engines and gateways: one row per service, instance and model, with load, cache, tokens, requests and latency.

Levels are those at `now`; rates, shares and quantiles are over the window. An instance that was scraped once has no
growth yet: it is shown by its totals since its own start, and a note says so.
"""

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.fleet import engine_latency, engine_notes
from analytics.fleet.engine_requests import BY, by_outcome, outcomes, with_model
from analytics.metrics.combine import combined, frozen_workers, latest
from analytics.metrics.counters import by_entity, increase, share
from analytics.metrics.series import TIME, about, naive, with_labels
from store.window import Window

LEVELS = (
    "requests_running",
    "requests_waiting",
    "requests_max",
    "kv_cache_usage_ratio",
    "generation_tokens_per_second",
)
COUNTERS = (
    "requests_total", "request_errors_total", "requests_rejected_total", "http_requests_total", "prompt_tokens_total",
    "generation_tokens_total", "prefix_cache_queries_total", "prefix_cache_hits_total", "preemptions_total",
    "request_prompt_tokens_sum", "request_generation_tokens_sum",
)  # fmt: skip
ENGINE_METRICS = (*LEVELS, *COUNTERS, *engine_latency.PARTS)
"""Canonical names that `engines` reads: ask for them in one MetricQuery."""
# Raw names tell the engine: no prefix is a NIM 1.x. Names as in the spec of each engine, in any spelling.
KINDS = (
    (r"^(ray_)?vllm[:_]", "vllm"), (r"^(ray_)?sglang[:_]", "sglang"), (r"^trtllm[:_]", "trtllm"),
    (r"^nv_", "triton"), (r"^tgi_", "tgi"), (r"^litellm_", "litellm"), (r"^dynamo_", "dynamo"),
    (r"^(inference_(model|pool|objective|extension)|llm_d|llmd)_", "llm-d"),
    (r"^(num_request|gpu_cache_usage_perc|time_to_first_token_seconds|e2e_request_latency)", "nim"),
)  # fmt: skip


def engines(samples: pl.DataFrame, window: Window, now: datetime) -> pl.DataFrame:
    """Return one row per engine of the samples (rows of MetricQuery(ENGINE_METRICS)).

    Columns: service, instance, model, engine (its kind, where the rows have the column `raw`, the name on the wire);
    requests_running, requests_waiting, requests_max, kv_usage_ratio (mean), kv_usage_max_ratio, hottest_engine and
    hottest_waiting (of the data-parallel rank with the fullest cache, where there are several); prefix_hit_ratio,
    prompt_tokens_per_second, generation_tokens_per_second, requests_per_second, outcomes (text), error_ratio (failures
    of the engine), client_error_ratio (HTTP 4xx), requests_rejected, preemptions; those of `engine_latency.COLUMNS`;
    notes (joined by `; `), span_s (time that growth covers), since_start, ts, age_s, fresh. What is not exposed is
    null.
    """
    rows = with_model(samples)
    windowed = rows.filter(pl.col("ts") < naive(window.end))
    rates, latencies = _growth(windowed, window)
    found = _present(rows, now)
    for part in (_levels(rows, now), rates, latencies):
        found = found.join(part, on=list(BY), how="left", nulls_equal=True)
    noted = engine_notes.noted(_speed(found), frozen_workers(rows, now))
    return noted.select(*COLUMNS).sort(*BY, nulls_last=False)


COLUMNS = (
    *BY, "engine", "requests_running", "requests_waiting", "requests_max", "kv_usage_ratio", "kv_usage_max_ratio",
    "hottest_engine", "hottest_waiting", "prefix_hit_ratio", "prompt_tokens_per_second",
    "generation_tokens_per_second", "requests_per_second", "outcomes", "error_ratio", "client_error_ratio",
    "requests_rejected", "preemptions", *engine_latency.COLUMNS, "notes", "span_s", "since_start", "ts", "age_s",
    "fresh",
)  # fmt: skip


def _present(rows: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Return the engines there are, their kind, and the age of their newest sample."""
    at = naive(now)
    age = ((pl.lit(at, TIME) - pl.col("ts")).dt.total_microseconds() / 1e6).alias("age_s")
    known = rows.filter(pl.col("ts") <= at).drop_nulls("value")
    found = known.group_by(list(BY)).agg(pl.col("ts").max()).with_columns(age)
    found = found.with_columns((pl.col("age_s") <= STALE_AFTER.total_seconds()).alias("fresh"))
    if "raw" not in rows.columns:
        return found.with_columns(pl.lit(None, pl.String).alias("engine"))
    raw = about(rows).select(*BY, "raw").unique()
    tests = [pl.when(pl.col("raw").str.contains(pattern)).then(pl.lit(kind)) for pattern, kind in KINDS]
    kinds = raw.with_columns(pl.coalesce(tests).alias("engine")).drop_nulls("engine")
    most = kinds.group_by([*BY, "engine"]).len().sort("len", "engine", descending=[True, False])
    named = most.unique(list(BY), keep="first", maintain_order=True).drop("len")
    return found.join(named, on=list(BY), how="left", nulls_equal=True)


def _levels(rows: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Levels at `now`, without the gauges of dead workers."""
    living = latest(rows.filter(pl.col("name").is_in(LEVELS)), now)
    living = living.join(frozen_workers(rows, now).select("series_id"), on="series_id", how="anti")
    parts = combined(living, BY, hottest="engine")
    values = _pivot(parts, LEVELS, "value")
    cache = parts.filter(pl.col("name") == "kv_cache_usage_ratio")
    several = pl.when(pl.col("series") > 1).then(pl.col("hottest")).alias("hottest_engine")
    hot = cache.select(*BY, pl.col("max").alias("kv_usage_max_ratio"), several)
    ranks = with_labels(living.filter(pl.col("name") == "requests_waiting"), ["engine"])
    waiting = ranks.drop_nulls("engine").group_by([*BY, "engine"]).agg(pl.col("value").sum().alias("hottest_waiting"))
    hot = hot.join(waiting, left_on=[*BY, "hottest_engine"], right_on=[*BY, "engine"], how="left", nulls_equal=True)
    joined = values.join(hot, on=list(BY), how="left", nulls_equal=True)
    return joined.rename({"kv_cache_usage_ratio": "kv_usage_ratio", "generation_tokens_per_second": "stated_tokens"})


def _pivot(parts: pl.DataFrame, names: Sequence[str], value: str) -> pl.DataFrame:
    table = parts.pivot(on="name", index=list(BY), values=value, aggregate_function="first")
    found = [pl.col(n) if n in table.columns else pl.lit(None, pl.Float64).alias(n) for n in names]
    return table.select(*BY, *found)


def _growth(rows: pl.DataFrame, window: Window) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Growth over the window, or since the start for instances that were scraped once: counters and latencies."""
    counting = rows.filter(~pl.col("name").is_in(LEVELS))
    once = pl.col("ts").n_unique().over("service", "instance") == 1
    marked = counting.with_columns(once.alias("_once"))
    halves = [(marked.filter("_once").drop("_once"), True), (marked.filter(~pl.col("_once")).drop("_once"), False)]
    rates = [_rates(half, window, from_zero) for half, from_zero in halves]
    latencies = [engine_latency.latencies(half, window, BY, from_zero=from_zero) for half, from_zero in halves]
    return pl.concat(rates), pl.concat(latencies)


def _rates(rows: pl.DataFrame, window: Window, from_zero: bool) -> pl.DataFrame:
    grown = increase(rows.filter(pl.col("name").is_in(COUNTERS)), window, from_zero=from_zero)
    parts = by_entity(grown, BY)
    sums, speeds = _pivot(parts, COUNTERS, "increase"), _pivot(parts, COUNTERS, "per_second")
    dips = parts.group_by(list(BY)).agg(pl.col("dips").sum(), pl.col("dip_ratio").max(), pl.col("span_s").max())
    joined = sums.join(speeds, on=list(BY), how="left", nulls_equal=True, suffix="_per_second")
    for part in (dips, by_outcome(outcomes(rows, window, from_zero=from_zero))):
        joined = joined.join(part, on=list(BY), how="left", nulls_equal=True)
    return joined.with_columns(pl.lit(from_zero).alias("since_start"))


def _speed(found: pl.DataFrame) -> pl.DataFrame:
    """Tokens and requests per second, hit ratio and error share from whichever source says them."""
    failed = pl.max_horizontal("request_errors_total", "failed_outcomes")
    total = pl.col("requests_total")
    by_request = share(failed, pl.when(total.is_not_null()).then(pl.max_horizontal(total, failed)))
    by_http = share(pl.col("failed_http"), pl.col("answered_http"))
    return found.with_columns(
        share(pl.col("prefix_cache_hits_total"), pl.col("prefix_cache_queries_total")).alias("prefix_hit_ratio"),
        pl.coalesce("prompt_tokens_total_per_second", "request_prompt_tokens_sum_per_second").alias(
            "prompt_tokens_per_second"
        ),
        pl.coalesce(
            "generation_tokens_total_per_second", "request_generation_tokens_sum_per_second", "stated_tokens"
        ).alias("generation_tokens_per_second"),
        pl.coalesce("requests_total_per_second", "e2e_per_second").alias("requests_per_second"),
        pl.coalesce(by_request, by_http).alias("error_ratio"),
        share(pl.col("refused_http"), pl.col("answered_http")).alias("client_error_ratio"),
        pl.col("requests_rejected_total").alias("requests_rejected"),
        pl.col("preemptions_total").alias("preemptions"),
        pl.max_horizontal("span_s", "latency_span_s").alias("span_s"),
        pl.coalesce("since_start", "latency_since_start").alias("since_start"),
    )
