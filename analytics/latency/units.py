"""From span trees to requests with the seconds of each of their segments.

A request is the outermost span of a model request: what a client saw. The engine's spans below it divide its time, and
so do stage spans and the times that access logs state; `transfer` is what the client saw beyond the engine, `other`
what nothing accounts for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics import frames
from analytics.latency.names import ATTRIBUTE_SEGMENTS, NETWORK, SEGMENTS, STAGE_SEGMENTS
from analytics.latency.trees import Forest, Index
from store.tables import INFERENCE_OPERATIONS

ROW = "_row"
ROUNDING_S = 1e-5
"""A remainder below it is the rounding of a few times to microseconds."""
_KEY = ("trace_id", "span_id")


@dataclass(frozen=True, slots=True)
class Units:
    """One row per request: label columns, ts, trace_id, e2e_s and a column `<segment>` of seconds per segment.

    Where nothing states a segment it is null. `failed` requests and those without a time are left out, and counted.
    """

    rows: pl.DataFrame
    failed: int
    untimed: int


def divide(requests: pl.DataFrame, forest: Forest, by: Sequence[str], wanted: Mapping[str, frozenset[str]]) -> Units:
    """Divide all requests. `wanted` is the filter on what is no model request (access logs): values by field."""
    nodes = _nodes(forest)
    outer = frames.label_columns(_outermost(requests, nodes, by), by)
    entries = _entries(nodes, by, wanted)
    units = pl.concat([outer, entries])
    failed = (pl.col("status") == "error").fill_null(value=False) | (pl.col("error_code").fill_null("") != "")
    timed = pl.col("e2e_s").is_not_null() & (pl.col("e2e_s") >= 0)
    kept = units.filter(~failed & timed)
    told = _stated(kept.join(_engine(nodes), on=ROW, how="left").join(_stages(nodes, forest), on=ROW, how="left"))
    counts = units.select(failed.sum().alias("failed"), (~failed & ~timed).sum().alias("untimed")).row(0)
    return Units(_remainders(told).select(*by, "ts", "trace_id", "e2e_s", *SEGMENTS), *map(int, counts))


def _nodes(forest: Forest) -> pl.DataFrame:
    """Spans with the row of the outermost request above (or the root, in traces without one), and whether innermost."""
    operation = forest.spans["operation"]
    asks = operation.is_in(INFERENCE_OPERATIONS).fill_null(value=False).to_numpy()
    top = np.where(asks & (forest.parent < 0), np.arange(asks.size), -1)
    nearest = top.copy()
    inner = asks.copy()
    for level in forest.levels[1:]:
        above = forest.parent[level]
        inner[nearest[above][asks[level] & (nearest[above] >= 0)]] = False
        nearest[level] = np.where(asks[level], level, nearest[above])
        top[level] = np.where(top[above] >= 0, top[above], nearest[level])
    free = ~_any_by(asks, forest.root)
    top = np.where(free, forest.root, top)
    return forest.spans.with_columns(
        pl.Series(ROW, np.arange(asks.size)),
        pl.Series("_top", top),
        pl.Series("_inner", inner),
        pl.Series("_free", free),
        pl.Series("_root", forest.parent < 0),
        pl.col("name").fill_null("").str.to_lowercase().replace_strict(STAGE_SEGMENTS, default=None).alias("segment"),
    )


def _any_by(flags: "np.typing.NDArray[np.bool_]", root: Index) -> "np.typing.NDArray[np.bool_]":
    """Whether any span of the same tree has the flag."""
    found = np.zeros(flags.size + 1, dtype=np.bool_)  # the last one is of spans too deep to have a root
    found[root[flags]] = True
    return np.asarray(found[root])


def _outermost(requests: pl.DataFrame, nodes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return requests with their row in the tree (null where it was not read); those within another are left out."""
    placed = requests.join(nodes.select(*_KEY, ROW, "_top"), on=_KEY, how="left")
    return placed.filter(pl.col("_top").is_null() | (pl.col("_top") == pl.col(ROW))).select(
        *_unit_columns(requests, by)
    )


def _entries(nodes: pl.DataFrame, by: Sequence[str], wanted: Mapping[str, frozenset[str]]) -> pl.DataFrame:
    """Roots of trees without a model request that state network or upstream times: access logs, probes of pages."""
    stages = nodes.filter(pl.col("_free") & pl.col("segment").is_not_null() & ~pl.col("_root"))["_top"].unique()
    states = pl.any_horizontal(pl.col(name).is_not_null() for name in ATTRIBUTE_SEGMENTS)
    tells = pl.col(ROW).is_in(stages.implode()) | states
    plain = pl.col("operation").is_null() & pl.col("segment").is_null()
    meets = [pl.col(name).cast(pl.String).is_in(list(values)) for name, values in wanted.items()]
    found = nodes.filter(pl.col("_free") & pl.col("_root") & plain, tells, *meets)
    found = found.with_columns(pl.lit(None, pl.String).alias("error_code"))
    return frames.label_columns(found, by).select(*_unit_columns(found, by))


def _unit_columns(frame: pl.DataFrame, by: Sequence[str]) -> list[pl.Expr]:
    labels = [pl.col(n).cast(pl.String) if n in frame.columns else pl.lit(None, pl.String).alias(n) for n in by]
    e2e = pl.coalesce("e2e_s", "duration_s").alias("e2e_s")
    kept = [pl.col(n) for n in ("ts", "trace_id", "status", "error_code") if n not in by]
    return [*labels, *kept, pl.col("ttft_s").alias("_ttft"), e2e, pl.col(ROW).cast(pl.Int64), pl.col("queue_s")]


def _engine(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the times of the innermost requests, added up per outermost one; null where none states it.

    SGLang counts prefill from the dispatch, the queue included: that is taken out, or left undivided if not known.
    """
    whole = pl.col("quality").fill_null("").str.contains("queue_in_prefill", literal=True)
    prefill = pl.when(whole).then(pl.col("prefill_s") - pl.col("queue_s")).otherwise(pl.col("prefill_s"))
    inner = nodes.filter("_inner").with_columns(prefill.clip(lower_bound=0.0).alias("prefill_s"))
    names = ("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s")
    sums = [pl.when(pl.col(n).count() > 0).then(pl.col(n).sum()).alias(f"_engine_{n}") for n in names]
    nested = (pl.col(ROW) != pl.col("_top")).any().alias("_nested")
    return inner.group_by(pl.col("_top").alias(ROW)).agg(*sums, nested, pl.len().alias("_engines"))


def _stages(nodes: pl.DataFrame, forest: Forest) -> pl.DataFrame:
    """Seconds of stage spans per request and segment, overlapping ones counted once, and of access logs' times."""
    timed = nodes.with_columns(pl.Series("_start", forest.start), pl.Series("_end", forest.end))
    rows = timed.filter(pl.col("segment").is_not_null() & (pl.col("_top") >= 0)).sort("_top", "segment", "_start")
    group = ["_top", "segment"]
    until = pl.col("_end").cum_max().over(group).shift(1).over(group)
    alone = (pl.col("_end") - pl.max_horizontal("_start", until)).clip(lower_bound=0) / 1e6
    found = rows.with_columns(alone.alias("_s")).group_by("_top", "segment").agg(pl.col("_s").sum())
    wide = found.pivot("segment", index="_top", values="_s") if found.height else found.select("_top")
    stated = timed.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in ATTRIBUTE_SEGMENTS))
    told = stated.filter(pl.col("_top") == pl.col(ROW)).select("_top", *_attributes())
    joined = wide.join(told, on="_top", how="full", coalesce=True)
    columns = [
        pl.coalesce([pl.col(n) for n in (s, f"_told_{s}") if n in joined.columns] or [pl.lit(None, pl.Float64)])
        for s in SEGMENTS
    ]
    named = [c.alias(f"_stage_{s}") for c, s in zip(columns, SEGMENTS, strict=True)]
    return joined.select(pl.col("_top").alias(ROW), *named)


def _attributes() -> list[pl.Expr]:
    made = []
    for segment in dict.fromkeys(ATTRIBUTE_SEGMENTS.values()):
        parts = [pl.col(n).cast(pl.Float64, strict=False) for n, s in ATTRIBUTE_SEGMENTS.items() if s == segment]
        some = pl.any_horizontal(part.is_not_null() for part in parts)
        made.append(pl.when(some).then(pl.sum_horizontal(parts)).alias(f"_told_{segment}"))
    return made


def _stated(units: pl.DataFrame) -> pl.DataFrame:
    """Segments that something states: a request's own columns first, then its stage spans."""
    engine = {
        "queue": pl.coalesce("_engine_queue_s", "queue_s"),
        "prefill": pl.col("_engine_prefill_s"),
        "decode": pl.col("_engine_decode_s"),
    }
    first = [pl.coalesce(engine.get(s, pl.lit(None, pl.Float64)), f"_stage_{s}").alias(s) for s in SEGMENTS]
    return units.with_columns(first)


def _remainders(units: pl.DataFrame) -> pl.DataFrame:
    """Fill in what follows from two clocks, and what nothing accounts for.

    The time up to the first token stays whole where no prefill is known, the time after it is decoding where no engine
    says so. A client's time beyond its engine's is transfer. `other` completes the sum, and is never negative.
    """
    network = pl.sum_horizontal(pl.col(n).fill_null(0.0) for n in NETWORK)
    beyond = (pl.col("e2e_s") - pl.col("_engine_e2e_s") - network).clip(lower_bound=0.0)
    nested = pl.col("_nested").fill_null(value=False) & pl.col("_engine_e2e_s").is_not_null()
    units = units.with_columns(pl.when(nested).then(beyond).otherwise(pl.col("transfer")).alias("transfer"))
    ttft = pl.coalesce(pl.when(nested).then("_engine_ttft_s"), "_ttft", "_engine_ttft_s")
    before = network + pl.sum_horizontal(pl.col(n).fill_null(0.0) for n in ("model_load", "queue"))
    undivided = pl.col("prefill").is_null() & ttft.is_not_null()
    waited = (ttft - pl.when(nested).then(before - network).otherwise(before)).clip(lower_bound=0.0)
    whole = pl.when(nested).then("_engine_e2e_s").otherwise("e2e_s")
    after = pl.when(pl.col("decode").is_null() & ttft.is_not_null()).then((whole - ttft).clip(lower_bound=0.0))
    units = units.with_columns(
        pl.when(undivided).then(waited).alias("first_token"), pl.coalesce("decode", after).alias("decode")
    )
    accounted = pl.sum_horizontal(pl.col(s).fill_null(0.0) for s in SEGMENTS if s != "other")
    rest = pl.col("e2e_s") - accounted
    return units.with_columns(pl.when(rest > ROUNDING_S).then(rest).otherwise(0.0).alias("other"))
