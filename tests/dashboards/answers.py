"""Results of analyses made by hand from what their frames declare, for the pages and the report."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from analytics.catalog import load
from analytics.frames import build
from analytics.result import Finding, Result, Severity, Status
from store.window import Window
from tests.dashboards.samples import NOW, SINCE, TRACE, naive

WINDOW = Window.last(timedelta(hours=1), NOW)
EVIL = '</script><script>alert("x")</script>'
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def result(name: str, rows: Rows, findings: tuple[Finding, ...] = (), notes: tuple[str, ...] = ()) -> Result:
    """Return a Result with these rows; frames that are not named are empty."""
    frames = {frame: build(("service",), cols, rows.get(frame, ())) for frame, cols in load(name).frames.items()}
    return Result(name, Status.OK, WINDOW, {"by": ("service",)}, frames, {}, findings, notes)


def bare(name: str, **frames: pl.DataFrame) -> Result:
    """Return a Result with frames as they are, of an analysis that need not exist."""
    return Result(name, Status.OK, WINDOW, {}, frames)


def silent(name: str, status: Status, note: str) -> Result:
    """Return a Result that says only why it says nothing."""
    frames = {frame: build(("service",), columns, ()) for frame, columns in load(name).frames.items()}
    return Result(name, status, WINDOW, {}, frames, notes=(note,))


def errors(service: str = "chat-api") -> Result:
    """Return errors of two codes, one cell of which stands out."""
    place = {"service": service, "cloud": "gcp", "region": "europe-west4"}
    cells = [
        place
        | {"code": code, "bucket": naive(SINCE + timedelta(minutes=5 * i)), "errors": 4 + 90 * out, "requests": 200}
        | {"rate": 0.1, "expected": 4.0, "shrunk_ratio": 1.0 + 20 * out, "p": 1e-9, "p_adj": 1e-8, "significant": out}
        for code in ("HTTP_429", "TIMEOUT")
        for i in range(6)
        for out in [code == "HTTP_429" and i == 3]
    ]
    at = naive(SINCE + timedelta(minutes=15))
    exemplars = [place | {"code": "HTTP_429", "bucket": at, "trace_id": TRACE}]
    top = [place | {"code": "HTTP_429", "errors": 114, "share": 0.83, "share_low": 0.7, "share_high": 0.9}]
    found = Finding(
        "ErrorBurst", Severity.WARNING, {"service": service, "code": "HTTP_429"}, 21.0, (None, 3.0), SINCE,
        f"94 of 200 requests to {service} failed with HTTP_429; 4 were to be expected",
        evidence={"trace_ids": [TRACE], "expected": 4.0},
    )  # fmt: skip
    return result("errors", {"cells": cells, "exemplars": exemplars, "top": top}, (found,), ("buckets of 5m",))


def latency() -> Result:
    """Return segments whose shares add up to one."""
    whole = {
        "segment": "e2e",
        "n": 1000,
        "mean_s": 2.0,
        "tail_s": 30.0,
        "n_tail": 10,
        "share": 1.0,
        "share_of_p99": 1.0,
    }
    parts = [("queue", 0.1, 0.8), ("prefill", 0.3, 0.05), ("decode", 0.6, 0.15)]
    rows = [{"segment": name, "share": usual, "share_of_p99": tail} for name, usual, tail in parts]
    return result("latency", {"segments": [{"service": "chat-api"} | row for row in (whole, *rows)]})


def stream(requests: int = 40) -> Result:
    """Return streams with gaps and jitter."""
    rows = [
        {"service": "chat-api", "request_id": f"r{i}", "events": 12, "ji": 0.2 + i / 20, "trace_id": f"{i:032x}"}
        for i in range(requests)
    ]
    gaps = [
        {
            "service": "chat-api",
            "trace_id": f"{i:032x}",
            "at_s": 30 + j / 10,
            "gap_s": 1.2 if j == 4 else 0.1,
            "tokens": 1,
        }
        for i in range(7)
        for j in range(12)
    ]
    return result("stream", {"requests": rows, "worst_gaps": gaps})
