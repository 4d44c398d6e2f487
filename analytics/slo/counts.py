"""Good and bad requests of one objective in buckets of five minutes, from rollups or from rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics import frames
from analytics.slo import STEP_S, counters
from analytics.slo.objective import Slo
from analytics.stats.proportion import wilson
from analytics.stats.smoothed import Array
from store.query import ROLLUP_DIMENSIONS

STEP = timedelta(seconds=STEP_S)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counts:
    """Cumulative counts at the bounds of buckets: element i is of everything before `start` + i steps."""

    start: datetime
    n: Array
    bad: Array
    first: datetime | None

    @property
    def buckets(self) -> int:
        """Buckets up to the window's end."""
        return self.n.size - 1

    def last(self, span: timedelta) -> tuple[float, float]:
        """Count requests and bad ones of the last `span`."""
        n, bad = self.rolling(span)
        return float(n[-1]), float(bad[-1])

    def rolling(self, span: timedelta) -> tuple[Array, Array]:
        """Count requests and bad ones of the `span` up to the end of each bucket.

        The last bucket is cut by the window's end and so reaches up to five minutes less far: one more is counted, so
        that 5m is never the first seconds of a bucket alone.
        """
        steps = max(round(span / STEP), 1) + 1
        low = np.maximum(np.arange(1, self.buckets + 1) - steps, 0)
        return self.n[1:] - self.n[low], self.bad[1:] - self.bad[low]


def counted(
    frame: pl.DataFrame, slo: Slo, requests: pl.DataFrame | None = None, by: Sequence[str] = ()
) -> pl.DataFrame:
    """Columns bucket, n, bad and labels of one SLO, whichever query gave the frame; n counts slices where it has any.

    `requests` counts all requests beside one limit: those that failed and state no latency are bad.
    """
    if slo.slices is None:
        return _requests(frame, slo, requests, by)
    width, share = slo.slices.width, slo.slices.share
    kept = _requests(frame, slo, requests, by).filter(pl.col("n") > 0)
    labels = [c for c in kept.columns if c in ROLLUP_DIMENSIONS]
    at = pl.col("bucket").dt.truncate(f"{round(width.total_seconds())}s")
    wide = kept.group_by(*labels, at).agg(pl.col("n").sum(), pl.col("bad").sum())
    lost = pl.col("bad") / pl.col("n")
    if share is not None:
        lost = (1.0 - lost < share - 1e-12).cast(pl.Float64)
    return wide.with_columns(lost.alias("bad"), pl.lit(1).alias("n"))


def _requests(frame: pl.DataFrame, slo: Slo, requests: pl.DataFrame | None, by: Sequence[str]) -> pl.DataFrame:
    if slo.counters is not None:
        return counters.counted(frame, slo.counters, by)
    if "ts" in frame.columns:
        return _of_rows(frame, slo)
    if not slo.limits:
        return frame.with_columns(
            pl.col("requests").fill_null(0).alias("n"), pl.col("errors").fill_null(0).alias("bad")
        )
    within = next((name for name in frame.columns if name.startswith("within_")), None)
    good = pl.col(within).fill_null(0) if within else pl.lit(0)
    known = frame.with_columns(pl.col("n").fill_null(0), (pl.col("n").fill_null(0) - good).clip(0).alias("bad"))
    return known if requests is None else _with_failed(known, requests)


def _with_failed(known: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Add requests that failed and state no latency, as bad ones.

    Rollups count failures and latencies apart: as many failed without one as there are requests without, at most all
    that failed.
    """
    keys = [c for c in requests.columns if c in ("bucket", *ROLLUP_DIMENSIONS)]
    both = requests.select(*keys, "requests", "errors").join(
        known.select(*keys, "n", "bad"), on=keys, how="full", coalesce=True, nulls_equal=True
    )
    both = both.with_columns(pl.col("requests", "errors", "n", "bad").fill_null(0))
    failed = pl.min_horizontal("errors", (pl.col("requests") - pl.col("n")).clip(0))
    return both.select(
        *keys,
        n=pl.col("n") + failed,
        bad=pl.col("bad") + failed,
        failed=failed,
        silent=(pl.col("requests") - pl.col("n") - failed).clip(0),
    )


def _of_rows(frame: pl.DataFrame, slo: Slo) -> pl.DataFrame:
    """Judge requests one by one: good ones state every measure within its limit and did not fail.

    A request that failed is bad; one that succeeded and lacks a measure is not counted.
    """
    failed = (pl.col("status") == "error").fill_null(value=False) | pl.col("error_code").is_not_null()
    kept = [pl.col(m) <= limit for m, limit in slo.limits]
    stated = pl.all_horizontal([pl.col(m).is_not_null() for m in slo.measures]) if slo.measures else pl.lit(value=True)
    good = (pl.all_horizontal(kept) if kept else pl.lit(value=True)) & ~failed
    counts = frame.filter(stated | failed).with_columns(
        pl.col("ts").dt.truncate("5m").alias("bucket"),
        pl.lit(1).alias("n"),
        (~good.fill_null(value=False)).cast(pl.Int64).alias("bad"),
    )
    labels = [c for c in frame.columns if c not in ("ts", "status", "error_code", "share_read", *slo.measures)]
    return counts.group_by([*labels, "bucket"]).agg(pl.col("n").sum(), pl.col("bad").sum())


def groups(frame: pl.DataFrame, by: Sequence[str], end: datetime) -> list[tuple[dict[str, str], Counts]]:
    """Cumulative counts per group; groups without requests are left out."""
    rows = frames.label_columns(frame.filter(pl.col("n") > 0), by)
    return [(labels, _cumulative(part, end)) for labels, part in frames.groups(rows, by)]


def _cumulative(part: pl.DataFrame, end: datetime) -> Counts:
    first = part["bucket"].min()
    assert isinstance(first, datetime)
    start = first.replace(tzinfo=UTC)
    size = max(-((start - end) // STEP), 1)
    at: NDArray[np.int64] = ((part["bucket"] - first).dt.total_seconds() // STEP_S).to_numpy()
    inside = (at >= 0) & (at < size)
    n, bad = (np.bincount(at[inside], part[c].to_numpy()[inside].astype(float), size) for c in ("n", "bad"))
    zero = np.zeros(1)
    return Counts(start, np.concatenate([zero, np.cumsum(n)]), np.concatenate([zero, np.cumsum(bad)]), start)


def burn(n: Array, bad: Array, allowed: float) -> Array:
    """Burn rate: share bad over the share allowed; nan without requests."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(bad / n / allowed)


def burn_low(n: Array, bad: Array, allowed: float) -> Array:
    """Lower 95 % Wilson limit of the burn rate."""
    return np.asarray(wilson(bad, n)[0] / allowed)
