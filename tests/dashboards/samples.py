"""Hand-made Results and a fake Source: one bad hour of a small fleet."""

import json
import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics.result import Finding, Result, Severity, Status
from store.errors import StoreError, UsageError
from store.tables import SPANS
from store.window import Window, format_time

NOW = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
SINCE = datetime(2026, 11, 30, 14, 5, tzinfo=UTC)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SERVICES = ("chat-api", "embeddings", "search-rag")


def naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


def p99_result(status: Status = Status.OK, notes: tuple[str, ...] = (), window: Window | None = None) -> Result:
    window = window or Window.last(timedelta(hours=24), NOW)
    frames = {
        "windows": pl.concat([_windows(name, window) for name in SERVICES]),
        "coefficients": pl.DataFrame(
            {
                "service": ["chat-api"] * 4,
                "term": ["kv_transfer_s", "queue_depth", "cpu_util", "input_tokens"],
                "estimate": [0.72, 0.0041, 0.12, 3.1e-5],
                "ci_low": [0.61, 0.0022, -0.31, 2.7e-5],
                "ci_high": [0.83, 0.0061, 0.55, 3.6e-5],
                "unit": ["s/s", "s/requests", "s/ratio", "s/tokens"],
                "per": ["s", "requests", "ratio", "tokens"],
                "effect": [0.312, 0.081, 0.004, 0.120],
                "effect_low": [0.264, 0.043, -0.010, 0.101],
                "effect_high": [0.359, 0.121, 0.018, 0.138],
            }
        ),
        "contributions": pl.DataFrame(
            {
                "service": ["chat-api"] * 4,
                "driver": ["kv_transfer_s", "input_tokens", "queue_depth", "cpu_util"],
                "share": [0.68, 0.19, 0.115, 0.015],
                "ci_low": [0.61, 0.14, 0.07, 0.0],
                "ci_high": [0.74, 0.25, 0.16, 0.04],
            }
        ),
        "fit": pl.DataFrame(
            {
                "service": ["chat-api"],
                "method": ["qr"],
                "tau": [0.99],
                "n": [48_211],
                "n_tail": [482],
                "n_eff": [212.0],
                "r1": [0.61],
                "r1_low": [0.55],
                "r1_high": [0.66],
                "verdict": ["ok"],
                "coverage": [0.9897],
                "residual_lag1": [0.12],
            }
        ),
        "vif": pl.DataFrame({"service": ["chat-api"] * 2, "driver": ["cpu_util", "kv_transfer_s"], "vif": [14.2, 1.3]}),
        "residuals": _residuals(window),
        "tail": pl.DataFrame(
            {
                "service": ["chat-api"] * 12,
                "ts": [naive(SINCE + timedelta(minutes=3 * i)) for i in range(12)],
                "trace_id": [TRACE] + [f"{i:06x}" + "0" * 26 for i in range(0xA1B2C3, 0xA1B2C3 + 11)],
                "span_id": [f"{i:016x}" for i in range(12)],
                "value": [0.98 - 0.02 * i for i in range(12)],
                "fitted": [0.41 + 0.003 * i for i in range(12)],
                "drivers": [json.dumps({"kv_transfer_s": 0.41, "queue_depth": 12, "input_tokens": 4096})] * 12,
            }
        ),
    }
    if status is not Status.OK:
        frames = {name: frame.clear() for name, frame in frames.items()}
    return Result(
        "p99", status, window, {"target": "ttft_s"}, frames, {}, (finding(),) if status is Status.OK else (), notes
    )


def finding(until: datetime | None = None, severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding(
        trigger="P99AboveBand",
        severity=severity,
        labels={"service": "chat-api", "target": "ttft_s"},
        value=2.29,
        expected=(1 / 1.5, 1.5),
        since=SINCE,
        until=until,
        summary=(
            f"P99 TTFT of chat-api reached 412 ms, 2.29x its baseline 180 ms, since {format_time(SINCE)}; "
            "associated with kv_transfer_s, share 0.68 [0.61, 0.74]"
        ),
        evidence={"trace_ids": [TRACE, "a1b2c3" + "0" * 26], "p99": 0.412, "baseline": 0.18},
    )


def overview_result(status: Status = Status.OK, window: Window | None = None) -> Result:
    window = window or Window.last(timedelta(hours=24), NOW)
    frames = {
        "services": pl.DataFrame(
            {
                "service": SERVICES,
                "requests": [48_211, 120_400, 9_120],
                "requests_per_second": [0.558, 1.394, 0.1056],
                "error_ratio": [0.0021, 0.0, 0.034],
                "ttft_p50_s": [0.081, None, 0.203],
                "ttft_p99_s": [0.412, None, 0.655],
                "e2e_p50_s": [1.9, 0.018, 4.1],
                "e2e_p99_s": [7.21, 0.061, 12.4],
                "output_tokens_per_second": [142.3, None, 36.2],
            }
        ),
        "timeline": pl.concat([_timeline(name, window) for name in SERVICES]),
        "targets": pl.DataFrame(
            {
                "job": ["vllm", "vllm", "dcgm"],
                "instance": ["10.0.0.4:8000", "10.0.0.5:8000", "10.0.0.4:9400"],
                "up": [1.0, 0.0, 1.0],
                "last_ts": [naive(NOW)] * 3,
                "since": [naive(window.start), naive(NOW - timedelta(minutes=41)), naive(window.start)],
            }
        ),
    }
    found = Finding(
        trigger="TargetDown",
        severity=Severity.WARNING,
        labels={"job": "vllm", "instance": "10.0.0.5:8000"},
        value=0.0,
        expected=(1.0, None),
        since=NOW - timedelta(minutes=41),
        summary=f"Target 10.0.0.5:8000 of job vllm does not answer since {format_time(NOW - timedelta(minutes=41))}",
    )
    if status is Status.EMPTY:
        frames = {name: frame.clear() for name, frame in frames.items()}
    return Result("overview", status, window, {}, frames, {}, (found,) if status is Status.OK else ())


def trace_frame() -> pl.DataFrame:
    chat = {"model": "llama-3.1-70b", "operation": "chat", "input_tokens": 4096, "output_tokens": 212, "ttft_s": 0.98}
    engine = {"queue_s": 0.33, "prefill_s": 0.62, "decode_s": 1.09, "attributes": '{"kv_transfer_s": 0.41}'}
    failed = {"status": "error", "error_code": "TIMEOUT"}
    rows = [
        _span("a", None, 0, 2.31, "POST /v1/chat/completions", "gateway"),
        _span("b", "a", 4, 0.021, "auth", "gateway"),
        _span("c", "a", 28, 0.19, "vector search", "search-rag"),
        _span("d", "a", 222, 2.06, "chat llama-3.1-70b", "chat-api") | chat,
        _span("e", "d", 231, 2.04, "llm_request", "vllm") | engine,
        _span("f", "9", 2280, 0.012, "audit", "gateway") | failed,
    ]
    base = dict.fromkeys(SPANS.names) | {"trace_id": TRACE, "status": "ok"}
    return pl.DataFrame([base | row for row in rows], schema=SPANS.schema())


def _span(letter: str, parent: str | None, start_ms: int, duration_s: float, name: str, service: str) -> dict[str, Any]:
    return {
        "span_id": letter * 16,
        "parent_span_id": parent * 16 if parent else None,
        "ts": naive(SINCE + timedelta(milliseconds=start_ms)),
        "duration_s": duration_s,
        "name": name,
        "service": service,
    }


class FakeSource:
    """Answers from the samples; names in `broken` raise, `calls` counts."""

    def __init__(self, broken: tuple[str, ...] = (), status: Status = Status.OK) -> None:
        self.broken, self.state = broken, status
        self.more: dict[str, Result] = {}
        self.calls: list[tuple[str, Mapping[str, Any], str | None]] = []

    def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
        self.calls.append((analysis, params, window))
        if analysis in self.broken:
            raise StoreError(f"{analysis}: out of memory", "raise memory_limit in infractl.yaml")
        if analysis in self.more:
            return self.more[analysis]
        at = Window.parse(window or "24h", NOW)
        if at.span > timedelta(days=400):
            raise UsageError("the window is too long", "take at most 400 days")
        return p99_result(self.state, window=at) if analysis == "p99" else overview_result(self.state, window=at)

    def status(self) -> Mapping[str, Any]:
        last = "2026-11-30T14:59:58.120000Z"
        rows = {"source": "otlp-http", "table": "spans", "rows": 1_204_331, "duplicates": 12, "last_row": last}
        drops = [{"source": "otlp-http", "reason": "invalid trace id", "rows": 3}]
        tables = {"spans": 1_204_331, "metric_samples": 88_120}
        return {"size_bytes": 187_000_000, "tables": tables, "sources": [rows], "drops": drops}

    def trace(self, trace_id: str) -> pl.DataFrame:
        return trace_frame() if trace_id == TRACE else trace_frame().clear()


def _windows(service: str, window: Window) -> pl.DataFrame:
    rng, scale = random.Random(service), {"chat-api": 0.15, "embeddings": 0.03, "search-rag": 0.5}[service]
    count = max(int(window.span / timedelta(minutes=5)), 2)
    rows = []
    for i in range(count):
        at = window.start + i * timedelta(minutes=5)
        if 0.4 < i / count < 0.44:
            continue
        day = 1 + 0.15 * math.sin(at.timestamp() / 86400 * 2 * math.pi)
        p99 = scale * day * rng.lognormvariate(0, 0.06) * (2.6 if service == "chat-api" and at >= SINCE else 1)
        rows.append(
            (
                service,
                naive(at),
                167,
                scale * 0.5 * day,
                p99,
                p99 * 0.97,
                scale * day,
                scale * day * 0.8,
                scale * day * 1.2,
            )
        )
    names = ("service", "ts", "n", "p50", "p99", "fitted_p99", "baseline", "low", "high")
    return pl.DataFrame(rows, schema=names, orient="row").cast({"ts": pl.Datetime("us")})


def _residuals(window: Window) -> pl.DataFrame:
    rng = random.Random(7)
    at = [naive(window.start + i * window.span / 288) for i in range(288)]
    fitted = [0.15 + 0.02 * rng.random() for _ in at]
    return pl.DataFrame(
        {"service": "chat-api", "ts": at, "fitted": fitted, "residual": [rng.gauss(0, 0.01) for _ in at]}
    ).cast({"ts": pl.Datetime("us")})


def _timeline(service: str, window: Window) -> pl.DataFrame:
    part = _windows(service, window)
    rng = random.Random(service)
    return part.select(
        "service",
        "ts",
        requests=pl.Series([160 + rng.randrange(40) for _ in range(part.height)]),
        errors=pl.Series([rng.randrange(3) if service != "embeddings" else 0 for _ in range(part.height)]),
        error_ratio=pl.Series([rng.choice((0.0, 0.0, 0.0, 0.01)) for _ in range(part.height)]),
        ttft_p50_s="p50" if service != "embeddings" else pl.lit(None, pl.Float64),
        ttft_p99_s="p99" if service != "embeddings" else pl.lit(None, pl.Float64),
    )
