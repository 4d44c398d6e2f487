"""Inputs of the analysis of caches: what is given, and empty frames for the rest; a simulated engine."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from analytics.cache import ANALYSIS, HITS, QUERIES
from analytics.result import Result
from collector.files import ImportOptions, load
from infractl.priced import SCHEMA as PRICES
from store.query import SpanQuery
from store.tables import BY_NAME, SPANS
from tests.analytics.frames_of import START, metric, window_of

SERIES: dict[str, Any] = {
    "name": pl.String, "series_id": pl.UInt64, "n": pl.Int64, "first": pl.Float64, "last": pl.Float64,
    "first_ts": pl.Datetime("us"), "last_ts": pl.Datetime("us"), "increase": pl.Float64, "kind": pl.String,
    "service": pl.String, "instance": pl.String, "job": pl.String, "labels": pl.String,
}  # fmt: skip
ROLLED = {"bucket": pl.Datetime("us"), "service": pl.String, "input_tokens": pl.Int64, "cached_input_tokens": pl.Int64}


def run(given: dict[str, pl.DataFrame], **params: Any) -> Result:
    """Run the analysis on these inputs; those that are not given have no rows."""
    made = ANALYSIS.make_params(params)
    asked: Any = ANALYSIS.inputs(made)
    requests = asked["requests"]
    assert isinstance(requests, SpanQuery)
    spans = {name: SPANS.schema()[name] for name in requests.columns} | dict.fromkeys(requests.attributes, pl.String())
    types: dict[str, Any] = {
        "events": {name: BY_NAME["kv_events"].schema()[name] for name in asked["events"].columns},
        "blocks": {name: BY_NAME["request_blocks"].schema()[name] for name in asked["blocks"].columns},
        "counters": metric(QUERIES, [], []).schema,
        "series": SERIES,
        "requests": spans | {"share_read": pl.Float64()},
        "prices": {name: kind.polars() for name, kind in PRICES.items()},
        "rolled": ROLLED,
    }
    inputs = {name: _as(given.get(name), types[name]) for name in asked}
    timed = [frame for frame in given.values() if "ts" in frame.columns and frame.height]
    return ANALYSIS.run(inputs, made, window_of(timed[0] if timed else pl.DataFrame({"ts": [START]})))


def _as(frame: pl.DataFrame | None, types: dict[str, Any]) -> pl.DataFrame:
    if frame is None:
        return pl.DataFrame(schema=types)
    missing = [pl.lit(1.0 if name == "share_read" else None, kind).alias(name) for name, kind in types.items()
               if name not in frame.columns]  # fmt: skip
    return frame.with_columns(missing).select(list(types))


def imported(path: Path, table: str, **labels: str) -> pl.DataFrame:
    """Rows of a table as `infractl import` makes them of a file."""
    frames = [
        batch.frames[table] for batch in load(path, ImportOptions(labels=labels)).batches if table in batch.frames
    ]
    return pl.concat(frames)


def series(samples: pl.DataFrame) -> pl.DataFrame:
    """What a RollupQuery of metrics gives of these samples: one row per series."""
    grouped = samples.group_by("series_id", maintain_order=True).agg(
        pl.col("name", "service", "instance", "job", "labels").first(),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("value").first().alias("first"),
        pl.col("value").last().alias("last"),
        pl.col("ts").first().alias("first_ts"),
        pl.col("ts").last().alias("last_ts"),
    )
    made = grouped.with_columns((pl.col("last") - pl.col("first")).alias("increase"), pl.lit("counter").alias("kind"))
    return made.select([pl.col(name).cast(kind) for name, kind in SERIES.items()])


def counter(name: str, ts: Sequence[datetime], grown: float, number: int, labels: str = "{}") -> pl.DataFrame:
    """A counter that grew from 0 between the first and the last of the times."""
    return metric(name, [ts[0], ts[-1]], [0.0, grown], series_id=number, labels=labels)


def simulated(
    prompts: Iterable[tuple[datetime, list[int]]], sizes: Iterable[int], tokens: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events and counters of an engine with an LRU cache, of `sizes` blocks at each request."""
    cache: OrderedDict[int, None] = OrderedDict()
    rows: list[tuple[Any, ...]] = []
    counts: list[tuple[datetime, float, float]] = []
    queries = hits = 0
    for number, ((ts, prompt), size) in enumerate(zip(prompts, sizes, strict=True)):
        parent = None
        for block in prompt:
            if block in cache:
                hits += tokens
            else:
                rows.append((ts, number, len(rows), "stored", block, parent))
            cache[block] = None
            cache.move_to_end(block)
            while len(cache) > size:
                rows.append((ts, number, len(rows), "removed", cache.popitem(last=False)[0], None))
            parent = block
        queries += tokens * len(prompt)
        counts.append((ts, float(queries), float(hits)))
    types: Any = {name: BY_NAME["kv_events"].schema()[name] for name in ("ts", "sequence", "position", "kind")}
    types |= {"block": pl.UInt64, "parent_block_hash": pl.UInt64}
    one = {"stream": "s", "service": "llm", "medium": "GPU"}
    events = pl.DataFrame(rows, schema=types, orient="row").with_columns(
        pl.concat_list("block").alias("block_hashes"),
        pl.lit(tokens, pl.Int64).alias("block_size"),
        *(pl.lit(text).alias(name) for name, text in one.items()),
    )
    at = [moment for moment, _, _ in counts]
    samples = [metric(QUERIES, at, [q for _, q, _ in counts], series_id=1)]
    return events, pl.concat([*samples, metric(HITS, at, [h for _, _, h in counts], series_id=2)])
