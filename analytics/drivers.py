"""Drivers of a request: span columns, attributes, and metrics as they stood when the request arrived (as-of join)."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from store.query import Where
from store.tables import SPANS

if TYPE_CHECKING:
    import polars as pl

STALE_AFTER = timedelta(minutes=5)
"""Age at which a sample no longer speaks for the present: Prometheus' own lookback."""
_UNITS = {
    "_bytes_per_second": "bytes/s",
    "_seconds": "s",
    "_bytes": "bytes",
    "_ratio": "ratio",
    "_celsius": "celsius",
    "_watts": "W",
    "_hz": "Hz",
    "_tokens": "tokens",
    "requests_waiting": "requests",
    "requests_running": "requests",
}


def unit_of(name: str) -> str:
    """Return the unit of a driver: its span column's, else what the metric's name ends in; empty where unknown."""
    column = SPANS.column(name)
    if column is not None:
        return column.unit
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")


def join_metrics(
    requests: "pl.DataFrame", samples: "pl.DataFrame", names: Iterable[str], stale_after: timedelta = STALE_AFTER
) -> "pl.DataFrame":
    """Add one float column per metric name: its value in the last sample at or before each request's ts.

    `requests` has ts (sorted) and service; `samples` are rows of a MetricQuery. A series counts until its next sample,
    a null sample or `stale_after`. Series of one service combine as their `combine` says (sum, mean, max). Where a
    metric's services meet those of the requests, each request sees its own service's series; else all see all series.
    """
    import polars as pl

    joined = requests.with_row_index("_row")
    for name in names:
        of_name = samples.filter(pl.col("name") == name).select("ts", "series_id", "value", "combine", "service")
        own = set(of_name["service"].drop_nulls()) & set(requests["service"].drop_nulls())
        steps = [
            combined_steps(part, stale_after).with_columns(pl.lit(service).alias("_service"))
            for service, part in _by_service(of_name, own)
        ]
        key = pl.col("service") if own else pl.lit("")
        if not steps:
            joined = joined.with_columns(pl.lit(None, pl.Float64).alias(name))
            continue
        right = pl.concat(steps).sort("ts").rename({"value": name})
        left = joined.with_columns(key.alias("_service"))
        joined = left.join_asof(right, on="ts", by="_service", strategy="backward", check_sortedness=False)
        joined = joined.drop("_service")
    return joined.sort("_row").drop("_row")


def _by_service(samples: "pl.DataFrame", own: set[str]) -> list[tuple[str, "pl.DataFrame"]]:
    import polars as pl

    if not samples.height:
        return []
    return [(s, samples.filter(pl.col("service") == s)) for s in sorted(own)] if own else [("", samples)]


def combined_steps(samples: "pl.DataFrame", stale_after: timedelta) -> "pl.DataFrame":
    """Value over time of one entity as steps (ts, value): its series at each moment combined, null where all ended."""
    import polars as pl

    ends = _with_ends(samples.with_columns(pl.col("value").fill_nan(None)), stale_after)
    series = [part.drop("series_id") for part in ends.partition_by("series_id", maintain_order=True)]
    if len(series) == 1:
        return series[0]
    moments = ends.select("ts").unique().sort("ts")
    held = [
        moments.join_asof(one, on="ts", strategy="backward")["value"].alias(f"v{i}") for i, one in enumerate(series)
    ]
    columns = pl.DataFrame(held)
    how = samples["combine"][0]
    value = {"sum": pl.sum_horizontal, "max": pl.max_horizontal}.get(how, pl.mean_horizontal)(pl.all())
    live = pl.any_horizontal(pl.all().is_not_null())  # a sum over nothing would be 0
    combined = columns.select(pl.when(live).then(value).cast(pl.Float64).alias("value"))
    return moments.with_columns(combined.to_series())


def _with_ends(samples: "pl.DataFrame", stale_after: timedelta) -> "pl.DataFrame":
    """Rows (ts, series_id, value) in order, with a null just after `stale_after` wherever no sample came by then."""
    import polars as pl

    rows = samples.select("ts", "series_id", "value").unique(["series_id", "ts"], keep="last").sort("series_id", "ts")
    following = pl.col("ts").shift(-1).over("series_id")
    silent = following.is_null() | (following - pl.col("ts") > stale_after)
    ends = rows.filter(silent & pl.col("value").is_not_null()).with_columns(
        (pl.col("ts") + stale_after + timedelta(microseconds=1)).alias("ts"), pl.lit(None, pl.Float64).alias("value")
    )
    return pl.concat([rows.with_columns(pl.col("value").cast(pl.Float64)), ends]).sort("series_id", "ts")


def matching(samples: "pl.DataFrame", where: Where) -> "pl.DataFrame":
    """Leave out series that carry a label of `where` with another value; series without that label stay.

    A filter on requests (model, environment) says nothing about a metric that does not know the label.
    """
    import polars as pl

    if not where or not samples.height:
        return samples
    wanted: dict[str, set[str]] = {}
    for key, value in where:
        wanted.setdefault(key, set()).add(value)
    series = samples.select("series_id", "labels").unique("series_id")
    keep = [
        series_id
        for series_id, labels in series.iter_rows()
        if all(_agrees(json.loads(labels or "{}"), key, values) for key, values in wanted.items())
    ]
    return samples.filter(pl.col("series_id").is_in(keep))


def _agrees(labels: dict[str, str], key: str, values: set[str]) -> bool:
    return key not in labels or labels[key] in values
