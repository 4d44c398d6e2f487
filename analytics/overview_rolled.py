"""Services of the overview from rollups: for windows that hold more requests than are worth reading one by one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from analytics import frames
from analytics.overview import STEPS, OverviewParams, rollups
from analytics.overview_services import Services, shaped, timeline_of, with_limits
from store.window import Window, format_duration

if TYPE_CHECKING:
    from analytics.analysis import Inputs

NOTE = "from rollups of {size}: quantiles are within 1 %; the timeline has whole buckets only; no traces are cited"
_TIMES = {"ttft_s": "ttft", "e2e_s": "e2e"}


def summarise(inputs: "Inputs", params: OverviewParams, window: Window) -> Services:
    """Total the rollups of the window; timeline and signals are of the buckets that lie wholly within it."""
    by, step_s = list(params.by), rollups(params, window)["rolled_requests"].step_s
    size = timedelta(seconds=step_s or STEPS["5m"])
    whole = _whole(window, size)
    counts = frames.label_columns(inputs["rolled_requests"], by)
    bucketed = counts.group_by([*by, "bucket"], maintain_order=True).agg(*_sums("requests", "errors"))
    bucketed = _with_latency(bucketed, frames.label_columns(inputs["rolled_latency"], by), [*by, "bucket"])
    totals = counts.group_by([*by, pl.lit("").alias("_all")], maintain_order=True).agg(*_totals(window))
    totals = _with_latency(totals, frames.label_columns(inputs["total_latency"], by), by)
    failed = counts.filter(pl.col("errors") > 0).with_columns(
        pl.col("bucket").alias("ts"), pl.lit(True).alias("failed"), pl.col("errors").alias("weight"),
        pl.lit(None, pl.String).alias("trace_id"),
    )  # fmt: skip
    found = counts["requests"].sum()
    return Services(
        services=shaped(with_limits(totals.filter(pl.col("requests") > 0)).sort(by), by, "services"),
        timeline=_timeline(bucketed, by, whole, size),
        requests=failed,
        size=size,
        end=whole.end.replace(tzinfo=None),
        notes=(NOTE.format(size=format_duration(size)),) if found else (f"no model requests in {window}",),
    )


def _whole(window: Window, size: timedelta) -> Window:
    """Return the whole buckets of a window; the window itself where it holds none."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    start, end = window.start + (epoch - window.start) % size, window.end - (window.end - epoch) % size
    return Window(start, end) if start < end else window


def _timeline(bucketed: pl.DataFrame, by: list[str], whole: Window, size: timedelta) -> pl.DataFrame:
    end = whole.end.replace(tzinfo=None)
    inside = bucketed.filter(pl.col("bucket").is_between(whole.start.replace(tzinfo=None), end, closed="left"))
    back = (pl.lit(end).cast(pl.Datetime("us")) - pl.col("bucket")).dt.total_microseconds()
    index = (back // (size // timedelta(microseconds=1)) - 1).alias("bucket")
    return timeline_of(inside.filter(pl.col("requests") > 0).with_columns(index), by, whole, size)


def _sums(*names: str) -> list[pl.Expr]:
    """Sum columns; null where nothing is stated."""
    return [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in names]


def _totals(window: Window) -> list[pl.Expr]:
    seconds = window.span.total_seconds()
    output = pl.when(pl.col("output_tokens").count() > 0).then(pl.col("output_tokens").sum())
    return [
        *_sums("requests", "errors", "input_tokens", "output_tokens"),
        (pl.col("requests").sum() / seconds).alias("requests_per_second"),
        (output / seconds).alias("output_tokens_per_second"),
        pl.col("last_ts").max(),
    ]


def _with_latency(counts: pl.DataFrame, latency: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add ttft_p50_s, …; null where no request states the measure."""
    for measure, name in _TIMES.items():
        names: Mapping[str, str] = {q: f"{name}_{q}_s" for q in ("p50", "p99")}
        part = latency.filter(pl.col("measure") == measure).select(
            *keys, *(pl.col(q).alias(n) for q, n in names.items())
        )
        counts = counts.join(part, on=keys, how="left", maintain_order="left") if keys else _beside(counts, part)
    return counts


def _beside(counts: pl.DataFrame, part: pl.DataFrame) -> pl.DataFrame:
    """Join what has one row each, or none."""
    return (
        counts.join(part, how="cross")
        if part.height
        else counts.with_columns(pl.lit(None, pl.Float64).alias(name) for name in part.columns)
    )
