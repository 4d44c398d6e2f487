"""`analyze errors`: which errors, where and when, which of them stand out, and since when nothing works."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.given_up import ABORTED
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Choice, Query, RollupQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS, B = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME, Kind.BOOL
COLUMNS = (
    "ts", "trace_id", "service", "cloud_provider", "cloud_region", "status", "error_code", "finish_reason",
    "output_tokens", "ttft_s", "e2e_s",
)  # fmt: skip
PLACE = ("cloud_provider", "cloud_region")


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorsParams(Params):
    """Parameters of `analyze errors`."""

    bucket: str = param("auto", "width of a bucket: auto, or a duration such as 5m")
    fdr: float = param(0.05, "share of false ones allowed among the cells that stand out", within=(0.0001, 0.5))
    examples: int = param(3, "traces cited for a cell that stands out", within=(0, 100))
    tiers: tuple[str, ...] = param((), "SERVICE=gold, silver or bronze, for the sampling advice; silver if not named")


def inputs(params: ErrorsParams) -> "Mapping[str, Query | Choice]":
    """Ask for all model requests with their outcome, or for their rollups by error."""
    columns = dict.fromkeys((*COLUMNS, *(name for name in params.by if SPANS.column(name) is not None)))
    attributes = (ABORTED, *(name for name in params.by if SPANS.column(name) is None))
    raw = SpanQuery(tuple(columns), tuple(dict.fromkeys(attributes)), where=params.where, requests_only=True)
    if not in_rollups(params.by, params.where) or params.bucket not in ("auto", "5m", "1h"):
        return {"requests": raw}
    dimensions = (*dict.fromkeys((*params.by, "service", *PLACE)), "error_code")
    return {
        "requests": Choice(
            raw, lambda window: {"rolled": RollupQuery("requests", dimensions, params.where, _step(params, window))}
        )
    }


def _step(params: ErrorsParams, window: Window) -> int:
    return 300 if params.bucket == "5m" or (params.bucket == "auto" and window.span <= timedelta(days=2)) else 3600


BURST = Signal(
    "error_burst_ratio",
    "",
    "errors of a code in the latest bucket over their baseline, shrunk; null unless they stand out",
    ("service", "code"),
)
SILENT = Signal(
    "seconds_without_success",
    "seconds",
    "time since a request went well, while others fail or are overdue; 0 else",
    ("service",),
)
ERROR_BURST = Trigger(
    "ErrorBurst", BURST, 3.0, Severity.WARNING, "{code} of {service} is {value} times its baseline", "error-burst"
)
OUTAGE = Trigger(
    "ServiceOutage", SILENT, 30.0, Severity.CRITICAL, "No request to {service} went well for {value}", "service-outage"
)

_CELL = (
    Column("cloud", T, "cloud provider; empty where none is stated"),
    Column("region", T, "region of the cloud"),
    Column("code", T, "normalised error; CLIENT_ABORT and STREAM_CUT where the request says no error"),
)
FRAMES = {
    "cells": (
        *_CELL,
        Column("meaning", T, "what the code means, in common words"),
        Column("bucket", TS, "start of the bucket"),
        Column("errors", N, "requests with this code", "requests"),
        Column("requests", N, "requests of this place", "requests"),
        Column("rate", F, "errors over requests", "ratio"),
        Column("expected", F, "errors to be expected of the other buckets", "requests"),
        Column("shrunk_ratio", F, "errors over expected, drawn to 1 where few say little"),
        Column("p", F, "chance of so many errors or more (negative binomial)"),
        Column("p_adj", F, "p adjusted for all cells (Benjamini-Hochberg)"),
        Column("significant", B, "p_adj within the share allowed"),
        Column("low_exposure", B, "fewer than 0.5 errors expected: a single one says little"),
    ),
    "top": (
        Column("cloud", T, "cloud provider; empty where none is stated"),
        Column("code", T, "normalised error"),
        Column("meaning", T, "what the code means"),
        Column("errors", N, "requests with this code", "requests"),
        Column("share", F, "share of the errors of this cloud", "ratio"),
        Column("share_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("share_high", F, "upper 95 % Wilson limit", "ratio"),
        Column("rate", F, "errors over requests of this cloud", "ratio"),
    ),
    "episodes": (
        *_CELL,
        Column("meaning", T, "what the code means"),
        Column("start", TS, "start of the first bucket that stands out"),
        Column("end", TS, "end of the last one"),
        Column("errors", N, "errors within", "requests"),
        Column("requests", N, "requests within", "requests"),
        Column("expected", F, "errors to be expected", "requests"),
        Column("lasting", B, "it reaches the end of the window"),
    ),
    "outages": (
        Column("start", TS, "when the last request before it went well"),
        Column("end", TS, "when one went well again; null: not yet"),
        Column("failed", N, "requests that failed meanwhile", "requests"),
        Column("overdue", F, "requests that should have gone well at the usual rate", "requests"),
        Column("kind", T, "failing: requests fail; silent: none comes"),
    ),
    "exemplars": (
        *_CELL,
        Column("bucket", TS, "bucket of the cell"),
        Column("trace_id", T, "a trace with this error"),
    ),
    "sampling": (
        Column("service", T, "service"),
        Column("tier", T, "gold, silver or bronze"),
        Column("requests_per_day", F, "requests at the rate of the window", "requests/d"),
        Column("error_ratio", F, "share whose spans say they failed; all of these are kept", "ratio"),
        Column("slow_s", F, "traces that last longer are kept: P99 of the window", "s"),
        Column("keep_ratio", F, "share of the others to keep", "ratio"),
        Column("kept_per_day", F, "traces kept in all", "requests/d"),
    ),
    "sampling_policy": (Column("yaml", T, "configuration of the OpenTelemetry Collector's tail_sampling processor"),),
}


def run(inputs: Inputs, params: ErrorsParams, window: Window) -> Result:
    """Count, compare with the baseline, name what stands out; empty without requests."""
    from analytics.errors.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="errors",
    title="Errors that stand out",
    doc="Errors by cloud, region, code and time: which stand out from their own baseline, outages, example traces, and "
    "how to sample traces so that these are kept.",
    params=ErrorsParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(BURST, SILENT),
    triggers=(ERROR_BURST, OUTAGE),
    every=timedelta(minutes=1),
)
