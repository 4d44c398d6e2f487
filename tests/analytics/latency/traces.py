"""Span trees written as rows: (id, parent, start s, length s) and what a span is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analytics import codec
from analytics.catalog import load
from analytics.latency import LatencyParams, inputs
from analytics.latency.critical import critical_path
from analytics.latency.skew import straighten
from analytics.latency.trees import Forest, grow
from analytics.result import Result
from collector.files import ImportOptions
from collector.files import load as import_file
from store.batch import Batch
from store.database import Database
from store.query import Choice, SpanQuery
from store.tables import SPANS
from store.window import Window
from tests.analytics.frames_of import times, window_of

ANALYSIS = load("latency")
REQUEST = {"operation": "chat"}
Node = tuple[str, str | None, float, float, Mapping[str, Any]]


def node(name: str, parent: str | None, start: float, length: float | None, **more: Any) -> dict[str, Any]:
    """One span; its id is its name unless `id` says otherwise."""
    given = {"trace_id": "t", "span_id": name, "service": "a", "kind": "internal", "status": "ok"} | more
    return {"name": name, "parent_span_id": parent, "at": start, "duration_s": length} | given


def frame(nodes: Sequence[Mapping[str, Any]], **by_and_where: Any) -> pl.DataFrame:
    """Rows of the query `spans` from nodes."""
    query = inputs(LatencyParams(**by_and_where))["spans"]
    assert isinstance(query, SpanQuery)
    schema = {name: SPANS.schema()[name] for name in query.columns if name != "ts"}
    schema |= dict.fromkeys(query.attributes, pl.String())
    columns = {name: pl.Series(name, [n.get(name) for n in nodes], t) for name, t in schema.items()}
    made = pl.DataFrame(columns).with_columns(times([n["at"] for n in nodes]).alias("ts"))
    return made.with_columns(pl.lit(1.0).alias("share_read")).sort("ts", maintain_order=True)


def path(nodes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], Forest, int]:
    """Self time by span id, the forest, and how many spans outlived their parent."""
    forest = straighten(grow(frame(nodes)))
    found = critical_path(forest)
    return dict(zip(forest.spans["span_id"], found.self_us / 1e6, strict=True)), forest, found.outlived


def run(spans: pl.DataFrame, window: Window | None = None, **given: Any) -> Result:
    """Answer from spans alone: those with an operation are the requests."""
    params = ANALYSIS.make_params(given)
    query = ANALYSIS.inputs(params)["requests"]
    assert isinstance(query, SpanQuery)
    missing = [n for n in (*query.columns, *query.attributes) if n not in spans.columns]
    empty = [pl.lit(None, SPANS.schema().get(n, pl.String())).alias(n) for n in missing]
    requests = spans.filter(pl.col("operation").is_not_null()).with_columns(empty)
    for field in {field for field, _ in params.where}:
        requests = requests.filter(pl.col(field).is_in([value for key, value in params.where if key == field]))
    nothing = {"stages": summaries(), "loads": summaries()}
    result = ANALYSIS.run({"requests": requests, "spans": spans} | nothing, params, window or window_of(spans))
    assert codec.to_dict(codec.from_json(codec.to_json(result), ANALYSIS.frames)) == codec.to_dict(result)
    return result


def summaries(rows: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Rows of a RollupQuery of metrics."""
    texts = ("name", "unit", "combine", "kind", "raw", "service", "instance", "job", "labels")
    schema: dict[str, Any] = dict.fromkeys(texts, pl.String()) | {"series_id": pl.UInt64()}
    schema |= dict.fromkeys(("first", "last", "increase"), pl.Float64())
    schema |= dict.fromkeys(("first_ts", "last_ts"), pl.Datetime("us"))
    return pl.DataFrame({n: pl.Series(n, [row.get(n) for row in rows], t) for n, t in schema.items()})


def answer(database: Database, window: Window, **given: Any) -> Result:
    """Answer from a store."""
    params = ANALYSIS.make_params(given)
    asked = ANALYSIS.inputs(params).items()
    found = {name: database.read(query, window) for name, query in asked if not isinstance(query, Choice)}
    return ANALYSIS.run(found, params, window)


def stored(folder: Path, files: Sequence[tuple[Path, ImportOptions]]) -> Database:
    """A store with imported files."""
    database = Database(folder)
    for file, options in files:
        batches: Sequence[Batch] = import_file(file, options).batches
        database.append(list(batches))
    return database


def segment(result: Result, name: str) -> dict[str, Any]:
    """The row of one segment."""
    return result.frames["segments"].filter(pl.col("segment") == name).row(0, named=True)
