"""Services of the overview: totals, timeline, error signals and the stretches in which errors were high."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics import buckets, frames
from analytics.overview import ERRORS, ERRORS_LOW, FRAMES, HIGH_ERRORS, RATE, VERY_HIGH_ERRORS, OverviewParams
from analytics.result import Finding, Trigger
from analytics.stats.proportion import wilson
from store.window import Window, format_duration, format_time

MEDIAN_REQUESTS = 20
"""Requests in the median bucket: of 20 requests 3 errors are the fewest that put the lower limit above 5 %."""
EXAMPLES = 5
_ALL = "_all"  # groups everything where no label does


@dataclass(frozen=True, slots=True)
class Services:
    """Frames of the overview's services.

    `requests` has the label columns, error flag and code that findings cite, each row for `weight` requests.
    """

    services: pl.DataFrame
    timeline: pl.DataFrame
    requests: pl.DataFrame
    size: timedelta
    end: datetime
    notes: tuple[str, ...]


def summarise(requests: pl.DataFrame, params: OverviewParams, window: Window) -> Services:
    """Total and bucket the requests by the labels. A request with status error or an error code failed."""
    by = list(params.by)
    failed = (pl.col("status").eq_missing(pl.lit("error"))) | pl.col("error_code").is_not_null()
    flagged = frames.label_columns(requests.drop_nulls("ts").with_columns(failed.alias("failed")), by)
    flagged = flagged.with_columns(pl.lit("").alias(_ALL), pl.lit(1).alias("weight"))
    auto = params.bucket == "auto"
    size = buckets.choose(flagged, window, MEDIAN_REQUESTS) if auto else buckets.named(params.bucket, window)
    seconds = window.span.total_seconds()
    group = [*by, _ALL]
    totals = flagged.group_by(group, maintain_order=True).agg(*_measures(), *_totals(seconds))
    bucketed = flagged.with_columns(buckets.bucket_index(window, size)).group_by([*group, "bucket"]).agg(*_measures())
    notes = (f"buckets of {format_duration(size)}",) if flagged.height else (f"no model requests in {window}",)
    return Services(
        services=shaped(with_limits(totals).sort(by), by, "services"),
        timeline=timeline_of(bucketed, by, window, size),
        requests=flagged,
        size=size,
        end=buckets.end_of(window),
        notes=notes,
    )


def _measures() -> list[pl.Expr]:
    latencies = [
        pl.col(f"{name}_s").cast(pl.Float64).fill_nan(None).quantile(q, "linear").alias(f"{name}_{label}_s")
        for name in ("ttft", "e2e")
        for label, q in (("p50", 0.5), ("p99", 0.99))
    ]
    return [
        pl.len().cast(pl.Int64).alias("requests"),
        pl.col("failed").sum().cast(pl.Int64).alias("errors"),
        *latencies,
    ]


def _totals(seconds: float) -> list[pl.Expr]:
    tokens = [_sum(f"{side}_tokens").alias(f"{side}_tokens") for side in ("input", "output")]
    rates = [
        (pl.len() / seconds).alias("requests_per_second"),
        (_sum("output_tokens") / seconds).alias("output_tokens_per_second"),
    ]
    return [*tokens, *rates, pl.col("ts").max().alias("last_ts")]


def _sum(name: str) -> pl.Expr:
    """Sum that is null where no request says: missing tokens are not zero tokens."""
    value = pl.col(name).cast(pl.Int64)
    return pl.when(value.count() > 0).then(value.sum())


def with_limits(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the error ratio and its limits to rows with requests and errors."""
    low, high = wilson(frame["errors"].to_numpy(), frame["requests"].to_numpy())
    ratio = pl.when(pl.col("requests") > 0).then(pl.col("errors") / pl.col("requests")).alias("error_ratio")
    limits = [pl.Series("error_ratio_low", low, pl.Float64), pl.Series("error_ratio_high", high, pl.Float64)]
    return frames.finite(frame.with_columns(ratio, *limits))


def timeline_of(bucketed: pl.DataFrame, by: list[str], window: Window, size: timedelta) -> pl.DataFrame:
    """Buckets of every group from its first to the latest; one without requests has 0 requests and null latencies."""
    parts = []
    for labels, part in frames.groups(bucketed, by):
        index = part["bucket"].sort()
        span = [*range(index[-1], index[0] - 1, -1), *([0] if index[0] else [])]
        whole = pl.DataFrame({"bucket": pl.Series(span, dtype=index.dtype)})
        whole = whole.with_columns(pl.lit(value).alias(name) for name, value in labels.items())
        parts.append(whole.join(part.drop(by), on="bucket", how="left", maintain_order="left"))
    if not parts:
        return frames.build(by, FRAMES["timeline"], ())
    table = pl.concat(parts).with_columns(pl.col("requests", "errors").fill_null(0))
    return shaped(with_limits(table.with_columns(buckets.bucket_start(window, size))), by, "timeline")


def shaped(frame: pl.DataFrame, by: list[str], name: str) -> pl.DataFrame:
    """Select the columns that a frame of the result declares."""
    return frame.select(*by, *(pl.col(c.name).cast(c.kind.polars()) for c in FRAMES[name]))


def _groups(found: Services, params: OverviewParams) -> list[tuple[dict[str, str], pl.DataFrame]]:
    return frames.groups(found.timeline, params.by)


def samples(found: Services, params: OverviewParams) -> dict[str, pl.DataFrame]:
    """Rate and error ratios of the latest bucket of every group."""
    rate, ratio, low = [], [], []
    for labels, table in _groups(found, params):
        row = table.row(-1, named=True)
        rate.append(labels | {"value": row["requests"] / found.size.total_seconds()})
        ratio.append(labels | {"value": row["error_ratio"]})
        low.append(labels | {"value": row["error_ratio_low"]})
    made = ((RATE, rate), (ERRORS, ratio), (ERRORS_LOW, low))
    return {signal.name: frames.samples(params.by, rows) for signal, rows in made}


def findings(found: Services, params: OverviewParams) -> list[Finding]:
    """One finding per trigger that holds in the latest bucket, and one per past stretch at its worst trigger."""
    made = []
    for labels, table in _groups(found, params):
        last = found.end - found.size
        for trigger in (VERY_HIGH_ERRORS, HIGH_ERRORS):
            for run in _runs(table, trigger, found.size):
                lasting = run["ts"][-1] == last
                worst = VERY_HIGH_ERRORS if VERY_HIGH_ERRORS.holds(_peak(run)) else HIGH_ERRORS
                if lasting or trigger is HIGH_ERRORS:
                    made.append(_finding(labels, run, found, trigger if lasting else worst, lasting=lasting))
    return made


def _runs(table: pl.DataFrame, trigger: Trigger, size: timedelta) -> list[pl.DataFrame]:
    """Stretches of adjacent buckets in which the trigger holds."""
    kept = table.filter(pl.col("error_ratio_low") > trigger.bound)
    starts = (kept["ts"].diff() != size).fill_null(value=True).cum_sum()
    return kept.with_columns(starts.alias("_run")).partition_by("_run", include_key=False, maintain_order=True)


def _peak(run: pl.DataFrame) -> float:
    return float(run["error_ratio_low"].to_numpy().max())


def _finding(
    labels: Mapping[str, str], run: pl.DataFrame, found: Services, trigger: Trigger, *, lasting: bool
) -> Finding:
    since, until = run["ts"][0], run["ts"][-1] + found.size
    errors, requests = int(run["errors"].sum()), int(run["requests"].sum())
    same = [pl.col(name) == value for name, value in labels.items()]
    inside = found.requests.filter(pl.col("failed"), pl.col("ts") >= since, pl.col("ts") < until, *same)
    codes = (
        inside.group_by("error_code")
        .agg(pl.col("weight").sum().alias("n"))
        .sort("n", "error_code", descending=[True, False])
        .head(3)
    )
    who = ", ".join(value or "(none)" for value in labels.values()) or "all requests"
    first, last = (format_time(at.replace(microsecond=0)) for at in (since, until))
    when = f"since {first}" if lasting else f"from {first} to {last}"
    named = ", ".join(f"{code or 'no code'}: {n}" for code, n in codes.iter_rows())
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=dict(labels),
        value=float(run["error_ratio_low"][-1]) if lasting else _peak(run),
        expected=(0.0, trigger.bound),
        since=since.replace(tzinfo=UTC),
        until=None if lasting else until.replace(tzinfo=UTC),
        summary=f"{errors} of {requests} requests to {who} failed ({errors / requests:.0%}) {when}; {named}",
        evidence=_evidence(inside, codes),
    )


def _evidence(inside: pl.DataFrame, codes: pl.DataFrame) -> dict[str, Any]:
    traces = inside.drop_nulls("trace_id")["trace_id"].head(EXAMPLES)
    return {"trace_ids": traces.to_list(), "error_codes": codes.to_dicts()}
