"""A report → rows of `benchmarks`, `spans` and `token_arrivals`."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import polars as pl

from collector.files.benchmarks.report import Report, Request
from collector.files.identity import derived_ids
from collector.files.options import ImportOptions
from store.columns import Kind, Table
from store.tables import BENCHMARKS, SPANS, TOKEN_ARRIVALS

_MOST = 2048  # characters of an error message, of which some tools write whole tracebacks


def undated(report: Report) -> int:
    """Count the runs and requests that state no time."""
    return sum(run.ts_us is None for run in report.runs) + sum(request.ts_us is None for request in report.requests)


def frames_of(report: Report, options: ImportOptions, source: str) -> dict[str, pl.DataFrame]:
    """Return the frames that hold rows; runs without a time have that of `options.at`."""
    at_us = None if options.at is None else round(options.at.astimezone(UTC).timestamp() * 1e6)
    frames = {
        BENCHMARKS.name: _benchmarks(report, options, source, at_us),
        SPANS.name: _spans(report, options, at_us),
    }
    frames[TOKEN_ARRIVALS.name] = _arrivals(report, frames[SPANS.name])
    return {name: frame for name, frame in frames.items() if frame.height}


def _benchmarks(report: Report, options: ImportOptions, source: str, at_us: int | None) -> pl.DataFrame:
    rows = [
        {
            "run": run.name,
            "stage": run.stage,
            "ts": at_us if run.ts_us is None else run.ts_us,
            "tool": run.tool,
            "engine": options.labels.get("engine", run.engine),
            "model": options.labels.get("model", run.model),
            "concurrency": run.concurrency,
            "request_rate": run.request_rate,
            "metric": figure.metric,
            "statistic": figure.statistic,
            "value": figure.value,
            "unit": figure.unit or None,
            "labels": _json({**run.labels, **options.labels}),
            "source": source,
        }
        for run in report.runs
        for figure in run.figures
    ]
    return _frame(BENCHMARKS, rows)


def _spans(report: Report, options: ImportOptions, at_us: int | None) -> pl.DataFrame:
    labels = ",".join(f"{name}={text}" for name, text in sorted(options.labels.items()))
    keys = pl.Series([f"{r.run.name}\n{r.key}" for r in report.requests], dtype=pl.String)
    traces, spans = derived_ids(keys, labels)
    named = {
        name: text
        for name, text in options.labels.items()
        if (c := SPANS.column(name)) is not None and c.kind is Kind.TEXT
    }
    rest = {name: text for name, text in options.labels.items() if name not in named}
    rows = [
        {**_span(request, at_us, rest), "trace_id": trace, "span_id": span, **named}
        for request, trace, span in zip(report.requests, traces, spans, strict=True)
    ]
    return _frame(SPANS, rows)


def _span(request: Request, at_us: int | None, labels: Mapping[str, str]) -> dict[str, Any]:
    run = request.run
    attributes = {"benchmark.run": run.name, "benchmark.stage": run.stage or None, "benchmark.tool": run.tool}
    attributes |= {**request.attributes, **labels}
    return {
        "ts": at_us if request.ts_us is None else request.ts_us,
        "duration_s": request.e2e_s,
        "name": request.operation,
        "kind": "client",
        "status": "error" if request.error_code else "ok",
        "status_message": request.message[:_MOST] if request.message else None,
        "service": run.name,
        "operation": request.operation,
        "provider": run.engine,
        "model": run.model,
        "request_model": run.model,
        "input_tokens": request.input_tokens,
        "output_tokens": request.output_tokens,
        "reasoning_tokens": request.reasoning_tokens,
        "ttft_s": request.ttft_s,
        "ttft_source": "client" if request.ttft_s is not None else None,
        "tpot_s": request.tpot_s,
        "e2e_s": request.e2e_s,
        "request_id": request.request_id,
        "error_code": request.error_code,
        "attributes": _json(attributes),
    }


def _arrivals(report: Report, spans: pl.DataFrame) -> pl.DataFrame:
    """Arrivals of the requests that state them, under the ids of their spans (one row a request, in order)."""
    rows = [
        {
            **{name: span[name] for name in ("trace_id", "span_id", "service")},
            "ts": request.ts_us if request.ts_us is not None else _us(span["ts"]),
            "measured_by": "client",
            "offsets_us": request.offsets_us,
        }
        for request, span in zip(report.requests, spans.iter_rows(named=True), strict=True)
        if request.offsets_us
    ]
    return _frame(TOKEN_ARRIVALS, rows)


def _us(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1e6)


def _frame(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={**table.schema(), "ts": pl.Int64()})
    return table.conform(frame.with_columns(pl.col("ts").cast(pl.Datetime("us"))))


def _json(values: Mapping[str, Any]) -> str | None:
    known = {name: value for name, value in values.items() if value is not None}
    try:
        return orjson.dumps(known, option=orjson.OPT_SORT_KEYS).decode() if known else None
    except TypeError:  # a whole number beyond 64 bits
        return json.dumps(known, sort_keys=True)
