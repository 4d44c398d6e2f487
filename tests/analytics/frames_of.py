"""Frames as the store would hand them over, built from shared captures and from simple columns."""

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from store.tables import SPANS
from store.window import Window

METRIC_SCHEMA = {
    "ts": pl.Datetime("us"),
    "name": pl.String,
    "series_id": pl.UInt64,
    "value": pl.Float64,
    "combine": pl.String,
    "service": pl.String,
    "instance": pl.String,
    "job": pl.String,
    "labels": pl.String,
}
START = datetime(2026, 11, 30, 12, 0)


def requests(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of a SpanQuery: declared columns get their type, others stay as given; ids and service are filled in."""
    n = len(next(iter(columns.values())))
    ids = {"trace_id": [f"{i:032x}" for i in range(n)], "span_id": [f"{i:016x}" for i in range(n)]}
    frame = pl.DataFrame({"service": ["llm"] * n} | ids | dict(columns))
    typed = [pl.col(c.name).cast(c.kind.polars()) for c in SPANS.columns if c.name in frame.columns]
    return frame.with_columns(typed).sort("ts")


def metric(name: str, ts: Sequence[Any], value: Sequence[Any], **more: Any) -> pl.DataFrame:
    """Rows of a MetricQuery: one series."""
    given = {"combine": "sum", "service": "llm", "instance": "i", "job": "j", "labels": "{}", "series_id": 1} | more
    columns = {"ts": ts, "name": [name] * len(ts), "value": value} | {k: [v] * len(ts) for k, v in given.items()}
    return pl.DataFrame({k: pl.Series(k, columns[k], t, strict=False) for k, t in METRIC_SCHEMA.items()})


def times(seconds: Any) -> pl.Series:
    """Naive UTC times so many seconds after START."""
    origin = int(START.replace(tzinfo=UTC).timestamp() * 1e6)
    return pl.Series((pl.Series(seconds, dtype=pl.Float64) * 1e6).round().cast(pl.Int64) + origin).cast(
        pl.Datetime("us")
    )


def window_of(frame: pl.DataFrame) -> Window:
    """Smallest window that holds all rows."""
    low, high = frame["ts"].min(), frame["ts"].max()
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    return Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC) + timedelta(microseconds=1))


def lines(path: Path) -> list[dict[str, Any]]:
    """Objects of a gzipped JSON-lines file."""
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def burstgpt(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and engine metrics of the eight load scales; a scale is a service (BurstGPT replay)."""
    rows: list[dict[str, Any]] = []
    samples = []
    for series, path in enumerate(sorted(folder.glob("detail_log_*.json.gz"))):
        scale = path.name.split("_")[2]
        with gzip.open(path, "rt") as file:
            log = json.load(file).values()
        rows += [
            {
                "arrival": one["record_time"] - one["total_chunk_time"],
                "ttft_s": one["first_chunk_time"],
                "input_tokens": one["sampled_in_num"],
                "service": scale,
            }
            for one in log
        ]
        with (folder / path.name.replace("detail", "vllm").replace(".json.gz", ".csv")).open() as file:
            engine = list(csv.DictReader(file))
        ts = times([float(row["timestamp"]) for row in engine])
        for name, key in (("requests_waiting", "num_pending"), ("kv_usage_percent", "gpu_kvcache_usage")):
            value = [float(row[key]) for row in engine]
            samples.append(metric(name, ts, value, service=scale, series_id=series))
    frame = pl.DataFrame(rows)
    spans = requests(frame.drop("arrival").to_dict(as_series=False) | {"ts": times(frame["arrival"])})
    return spans, pl.concat(samples).sort("ts")


def vllm_real(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Engine spans of the recording as requests, and the engine's gauges of waiting requests and KV use."""
    from base64 import b64decode

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    rows: list[dict[str, Any]] = []
    for body in lines(folder / "otlp_traces.jsonl.gz"):
        sent = ExportTraceServiceRequest.FromString(b64decode(body["body_b64"]))
        spans = [span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans]
        for span in spans:
            value = {a.key: a.value.double_value or a.value.int_value for a in span.attributes}
            rows.append(
                {
                    "ts": span.start_time_unix_nano // 1000,
                    "trace_id": span.trace_id.hex(),
                    "ttft_s": value["gen_ai.latency.time_to_first_token"],
                    "input_tokens": value["gen_ai.usage.prompt_tokens"],
                }
            )
    frame = pl.DataFrame(rows).with_columns(pl.col("ts").cast(pl.Datetime("us")))
    return requests(frame.to_dict(as_series=False)), pl.concat(_gauges(folder)).sort("ts")


def _gauges(folder: Path) -> list[pl.DataFrame]:
    names = {"vllm:num_requests_waiting{": "requests_waiting", "vllm:kv_cache_usage_perc{": "kv_cache_usage_ratio"}
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in names.values()}
    for scrape in lines(folder / "vllm_metrics.jsonl.gz"):
        for line in scrape["text"].splitlines():
            for start, name in names.items():
                if line.startswith(start):
                    found[name].append((scrape["ts_ms"] * 1000, float(line.rpartition(" ")[2])))
    return [
        metric(name, pl.Series([t for t, _ in points]).cast(pl.Datetime("us")), [v for _, v in points], series_id=i)
        for i, (name, points) in enumerate(found.items())
    ]
