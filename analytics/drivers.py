"""Drivers of a request: span columns, attributes, and metrics as they stood when the request arrived (as-of join)."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from store.errors import UsageError
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
    "_watts": "watts",
    "_hz": "hz",
    "_tokens": "tokens",
    "requests_waiting": "requests",
    "requests_running": "requests",
}
_CUMULATIVE = ("_total", "_count", "_sum")
_SELECTED = re.compile(r"(?P<name>[^{]+)\{(?P<labels>[^{}]*)\}")
USUAL: Mapping[str, Where] = {
    "gpu_utilization_ratio": (("engine", "graphics"),),
    "gpu_memory_bytes": (("state", "used"),),
    "gpu_temperature_celsius": (("sensor", "gpu"),),
    "gpu_clock_hz": (("domain", "sm"),),
    "host_pressure_ratio": (("resource", "cpu"), ("kind", "some"), ("window", "10s")),
    "host_load": (("window", "1m"),),
    "host_memory_bytes": (("state", "available"),),
}
"""What a name alone means, where its series are different things: a mean over graphics and encoder says nothing."""


RATIOS: Mapping[str, tuple[str, str]] = {
    "prefix_cache_hit_ratio": ("prefix_cache_hits_total", "prefix_cache_queries_total"),
}
"""Drivers that are growth over growth of two counters, where no series of their own name is stored."""
_RATIO_OVER = "1m"


def asked_for(drivers: Iterable[str]) -> tuple[str, ...]:
    """Names of the metrics that a MetricQuery must ask for to join these drivers."""
    names = [selected(driver)[0] for driver in drivers]
    return tuple(dict.fromkeys(part for name in names for part in (name, *RATIOS.get(name, ()))))


def selected(driver: str) -> tuple[str, Where]:
    """Split a metric driver into its name and the labels asked for: `host_softirqs_total{type=NET_RX}`.

    A name alone means its USUAL series. Raises UsageError for what is no list of label=value.
    """
    found = _SELECTED.fullmatch(driver)
    if found is None:
        return driver, USUAL.get(driver, ())
    pairs = [part.partition("=") for part in found["labels"].split(",") if part.strip()]
    if not all(sign and key.strip() for key, sign, _ in pairs):
        raise UsageError(f"driver {driver!r} cannot be read", "write it like name{label=value,label=value}")
    return found["name"], tuple((key.strip(), value.strip().strip('"')) for key, _, value in pairs)


def stated_units(samples: "pl.DataFrame") -> dict[str, str]:
    """Return the units that the samples of a MetricQuery state, by metric name."""
    if not {"name", "unit"} <= set(samples.columns):
        return {}
    return dict(samples.select("name", "unit").drop_nulls().unique("name", keep="first").iter_rows())


def unit_of(name: str, stated: Mapping[str, str] | None = None) -> str:
    """Return the unit of a driver: its span column's, the one `stated`, or what its name ends in; empty if unknown."""
    column = SPANS.column(name)
    if column is not None:
        return column.unit
    base = selected(name)[0]
    unit = (stated or {}).get(base) or next((unit for suffix, unit in _UNITS.items() if base.endswith(suffix)), "")
    return f"{unit or '1'}/s" if base.endswith(_CUMULATIVE) else unit


def join_metrics(
    requests: "pl.DataFrame", samples: "pl.DataFrame", names: Iterable[str], stale_after: timedelta = STALE_AFTER
) -> "pl.DataFrame":
    """Add one float column per metric name: its value in the last sample at or before each request's ts.

    A name may select series by labels (`selected`); of a counter it is the growth per second up to that sample.

    `requests` has ts (sorted) and service, and may have server_address and host; `samples` are rows of a MetricQuery.
    A series counts until its next sample, a null sample or `stale_after`. A request sees, of each metric, the series of
    the address it was served by, else of its service on its host, else of its service, else of the machine at that
    address; where nothing of the metric meets any request, all requests see all of it. Series of one such entity
    combine as their `combine` says (sum, mean, max).
    """
    import polars as pl

    who = [name for name in ("service", "server_address", "host") if name in requests.columns]
    places = requests.select(who).unique().with_row_index("_place")  # a few, so that millions of rows cost one join
    joined = requests.join(places, on=who, nulls_equal=True, how="left", maintain_order="left").with_row_index("_row")
    asked = _keys(places, "server_address", "host")
    for name in names:
        base, labels = selected(name)
        series = matching(samples.filter(pl.col("name") == base), labels)
        if not series.height and base in RATIOS:
            series = _growth_ratio(samples, base, labels)
        series = _per_second(series) if base.endswith(_CUMULATIVE) else series
        series = series.with_columns(_host_of(pl.col("instance")).alias("_host"))
        offered = _keys(series, "instance", "_host")
        if not series.height:
            joined = joined.with_columns(pl.lit(None, pl.Float64).alias(name))
            continue
        of = _closest(asked, offered)
        entities = of.drop_nulls().unique().sort().to_list()
        parts = {
            one: series.filter(offered.select(pl.any_horizontal(pl.all() == one)).to_series().fill_null(False))
            for one in entities
        } or {"": series}
        steps = [combined_steps(part, stale_after).with_columns(_of=pl.lit(one)) for one, part in parts.items()]
        left = joined.with_columns(_of=of.gather(joined["_place"]) if entities else pl.lit(""))
        right = pl.concat(steps).sort("ts").rename({"value": name})
        joined = left.join_asof(right, on="ts", by="_of", strategy="backward", check_sortedness=False).drop("_of")
    return joined.sort("_row").drop("_row", "_place")


def _per_second(samples: "pl.DataFrame") -> "pl.DataFrame":
    """Return the samples of counters as rates since the sample before; ends of series stay."""
    import polars as pl

    from analytics.metrics.counters import steps

    grown = steps(samples).drop_nulls("step")
    seconds = (pl.col("ts") - pl.col("since")).dt.total_microseconds() / 1e6
    rates = grown.select("series_id", "ts", (pl.col("step") / seconds).alias("value"))
    ends = samples.filter(pl.col("value").is_null()).select("series_id", "ts", "value")
    what = samples.drop("ts", "value").unique("series_id", keep="last")
    return pl.concat([rates, ends]).join(what, on="series_id").select(samples.columns).sort("ts")


def _growth_ratio(samples: "pl.DataFrame", name: str, labels: Where) -> "pl.DataFrame":
    """Return one series per instance: growth of the first counter over that of the second, over the last minute.

    Where the second did not grow there is no ratio, and the last one stands until it is stale.
    """
    import polars as pl

    from analytics.metrics.counters import steps

    who = ["service", "instance", "job"]
    grown = []
    for part, column in zip(RATIOS[name], ("over", "under"), strict=True):
        series = matching(samples.filter(pl.col("name") == part), labels)
        owners = series.select("series_id", *who).unique("series_id")
        step = steps(series).drop_nulls("step").join(owners, on="series_id")
        grown.append(step.group_by(*who, "ts").agg(pl.col("step").sum().alias(column)))
    both = grown[0].join(grown[1], on=[*who, "ts"], nulls_equal=True).sort("ts")
    summed = both.rolling("ts", period=_RATIO_OVER, group_by=who).agg(pl.col("over", "under").sum())
    ratio = summed.filter(pl.col("under") > 0).with_columns((pl.col("over") / pl.col("under")).alias("value"))
    series = ratio.with_columns(
        name=pl.lit(name),
        series_id=pl.struct(who).hash(),
        combine=pl.lit("mean"),
        labels=pl.lit("{}"),
        unit=pl.lit("ratio"),
    )
    wanted = [pl.col(c) if c in series.columns else pl.lit(None).alias(c) for c in samples.columns]
    return series.select(wanted).cast({"ts": samples.schema["ts"]}).sort("ts")


def _keys(frame: "pl.DataFrame", address: str, host: str) -> "pl.DataFrame":
    """Names of the entities a row may belong to, the closest first: address, service on host, service, machine."""
    import polars as pl

    known = {name: pl.col(name) if name in frame.columns else pl.lit(None, pl.String) for name in (address, host)}
    return frame.select(
        (pl.lit("address ") + known[address]).alias("address"),
        (pl.lit("host ") + pl.col("service") + " " + known[host]).alias("host"),
        (pl.lit("service ") + pl.col("service")).alias("service"),
        (pl.lit("machine ") + _host_of(known[address])).alias("machine"),
    )


def _host_of(address: "pl.Expr") -> "pl.Expr":
    return address.str.replace(r":\d+$", "")


def _closest(asked: "pl.DataFrame", offered: "pl.DataFrame") -> "pl.Series":
    """Return for each request the closest of its entities that the metric has too; null where there is none."""
    import polars as pl

    shared = [
        pl.when(pl.col(k).is_in(offered[k].drop_nulls().unique().implode())).then(pl.col(k)) for k in asked.columns
    ]
    return asked.select(pl.coalesce(shared).alias("_of")).to_series()


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
