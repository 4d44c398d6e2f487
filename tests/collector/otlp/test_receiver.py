"""Counts of what was taken and refused."""

import polars as pl

from collector.otlp.receiver import ReceiverCounts
from store.batch import Batch


def test_every_request_is_counted_under_one_outcome() -> None:
    counts = ReceiverCounts()
    rows = {"spans": pl.DataFrame({"name": ["a", "b"]})}
    counts.taken("http", Batch("otlp", rows))
    counts.taken("http", Batch("otlp", rows, {"invalid_trace_id": 3}))
    counts.taken("grpc", Batch("otlp", {}))
    counts.refused("grpc", "busy")
    assert counts.requests == {
        ("http", "traces", "stored"): 1,
        ("http", "traces", "partial"): 1,
        ("grpc", "traces", "empty"): 1,
        ("grpc", "traces", "busy"): 1,
    }
    assert counts.rows == {("http", "traces"): 4, ("grpc", "traces"): 0}
    assert counts.refused_rows == {("traces", "invalid_trace_id"): 3}
