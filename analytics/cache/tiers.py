"""Tiers of a cache, and caches of whole answers: hits, latency and moves, from events, counters and spans."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from analytics.cache.survival import median_life
from analytics.cache.tier import BLOCKS, REQUESTS, TIERS, Tier
from analytics.metrics.counters import increase
from analytics.metrics.histograms import buckets, means
from analytics.metrics.quantiles import quantiles
from analytics.metrics.series import with_labels
from analytics.stats.proportion import wilson

YES, NO = ("true", "1", "hit", "yes"), ("false", "0", "miss", "no")
_LABELS = ("source", "direction", "operation", "kind", "tier", "medium")
_COUNTS = ("queries", "hits", "stored", "removed", "moved")


def of_events(stored: pl.DataFrame, removed: Mapping[str, int]) -> list[dict[str, Any]]:
    """One row per medium of KV events."""
    made = stored.group_by("medium").agg(
        pl.len().alias("stored"), pl.col("moved").sum(), pl.col("present").sum(), pl.col("age_s", "evicted")
    )
    rows = []
    for row in made.sort("medium").to_dicts():
        life = median_life(row.pop("age_s"), row.pop("evicted"))
        more = {"source": "KV events", "unit": BLOCKS, "removed": removed.get(row["medium"], 0), "life_p50_s": life}
        rows.append(row | more)
    return rows


def of_counters(samples: pl.DataFrame, from_zero: bool) -> list[dict[str, Any]]:
    """One row per tier of which a counter moved or stood; `samples` are two points per series."""
    grown = with_labels(increase(samples, from_zero=from_zero), _LABELS).drop_nulls("increase")
    # a gateway counts again what the engines behind it count, but for its own cache
    own = grown.filter(pl.col("tier").ne_missing("gateway") | pl.col("name").str.starts_with("gateway_"))
    parts = [part for tier in TIERS for part in tier.parts(own)]
    found = [row for tier, series in parts if (row := _row(tier, series, samples, from_zero)) is not None]
    return [row for row in found if any(row.get(name) for name in (*_COUNTS, "loaded_bytes", "written_bytes"))]


def _row(tier: Tier, grown: pl.DataFrame, samples: pl.DataFrame, from_zero: bool) -> dict[str, Any] | None:
    named = {name: getattr(tier, name) for name in (*_COUNTS, "misses", "loaded_bytes", "written_bytes", "loading_s")}
    values = {name: None if count is None else count.of(grown) for name, count in named.items()}
    if values["queries"] is None and values["hits"] is not None and values["misses"] is not None:
        values["queries"] = values["hits"] + values["misses"]
    if all(value is None for value in values.values()):
        return None
    row: dict[str, Any] = {"medium": tier.medium, "source": "counters", "unit": tier.unit}
    row |= {name: None if (value := values[name]) is None else round(value) for name in _COUNTS}
    row |= {name: values[name] for name in ("loaded_bytes", "written_bytes")}
    if values["loading_s"] and values["loaded_bytes"] is not None:
        row["load_bytes_per_second"] = values["loaded_bytes"] / values["loading_s"]
    for side, name in (("load", tier.load), ("write", tier.write)):
        if name:
            row[f"{side}_s"], p99 = _latency(samples, name, from_zero)
            row |= {"load_p99_s": p99} if side == "load" else {}
    return row | _ratio(row, tier.unit)


def _ratio(row: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Hit ratio; its interval where lookups are independent enough to count: of requests, not of tokens."""
    hits, queries = row.get("hits"), row.get("queries")
    if not queries or hits is None:
        return {}
    found: dict[str, Any] = {"hit_ratio": min(hits / queries, 1.0)}
    if unit == REQUESTS:
        low, high = wilson(min(hits, queries), queries)
        found |= {"hits_low": float(low), "hits_high": float(high)}
    return found


def _latency(samples: pl.DataFrame, name: str, from_zero: bool) -> tuple[float | None, float | None]:
    rows = samples.with_columns(pl.lit("").alias("all"))
    mean = means(rows, name, ["all"], from_zero=from_zero)
    found = quantiles(buckets(rows, name, ["all"], from_zero=from_zero), ["all"], (0.99,))
    return _first(mean, "mean"), _first(found, "value")


def _first(frame: pl.DataFrame, column: str) -> float | None:
    values = frame[column].drop_nulls()
    return float(values[0]) if len(values) else None


def of_answers(requests: pl.DataFrame, names: Sequence[str], tier: str = "") -> list[dict[str, Any]]:
    """Rows where spans say whether a cache of answers had theirs: the first of the attributes that is there.

    One for all of it and, where hits name their tier (document, paragraph, sentence), one for each: its hits among all
    lookups.
    """
    said = pl.coalesce(*(pl.col(name) for name in names)).str.to_lowercase() if names else pl.lit(None, pl.String)
    hit = pl.when(said.is_in(YES)).then(True).when(said.is_in(NO)).then(False)
    known = requests.with_columns(hit.alias("hit"), (pl.col(tier) if tier else pl.lit(None)).alias("which"))
    known = known.drop_nulls("hit")
    if known.is_empty():
        return []
    which = known.filter(pl.col("hit"))["which"].drop_nulls().unique().sort().to_list()
    parts = [("semantic cache", pl.col("hit")), *((text, pl.col("hit") & (pl.col("which") == text)) for text in which)]
    return [_answers(known, name, found) for name, found in parts]


def _answers(known: pl.DataFrame, name: str, found: pl.Expr) -> dict[str, Any]:
    inside, missed = known.filter(found), known.filter(~pl.col("hit"))
    row: dict[str, Any] = {"medium": f"answers: {name}", "source": "spans", "unit": REQUESTS}
    row |= {"queries": known.height, "hits": inside.height, "hit_latency_p50_s": inside["e2e_s"].median()}
    return row | {"miss_latency_p50_s": missed["e2e_s"].median()} | _ratio(row, REQUESTS)
