"""Xid errors as events. The usual gauge keeps the last code until a restart: an event is its change, not its value.

Where a source counts Xids (`gpu_xid_events_total`, or `gpu_xid_events` within a window of the exporter) the counts are
used instead: the gauge cannot show the same code twice. What the kernel log says of the same error comes first.
"""

from datetime import datetime, timedelta

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.fleet.keys import with_device
from analytics.metrics.series import TIME, about, naive, points, with_labels
from store.xids import describe

XID_METRICS = ("gpu_last_xid", "gpu_xid_events_total", "gpu_xid_events")
XID_AGE = timedelta(hours=1)
"""Age at which an event no longer makes a device unhealthy, though the gauge still shows its code."""
SAME_EVENT = timedelta(minutes=5)
"""Farthest that a metric shows an error after the kernel log: the longest usual scrape interval and exporter cache."""
_COLUMNS = (
    "ts", "device", "gpu_uuid", "host", "gpu", "xid", "previous", "count", "exact", "severity", "text", "action",
)  # fmt: skip
_RANKS = {"gpu_xid_events_total": 0, "gpu_xid_events": 1, "gpu_last_xid": 2}


def xid_events(samples: pl.DataFrame, log: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row per event: ts, device, gpu_uuid, host, gpu, xid, previous, count, exact, severity, text, action.

    `samples` may hold other metrics of the devices (a temperature): they tell that a device was seen before its first
    code came. `log` are rows of the table `events`; those of kind xid stand for what metrics show of them. `previous`
    is the code before (0 for none), null where unknown. `exact` is false where the code was there at the device's first
    sample already: then it came at some time up to ts. A code that goes away is no event.
    """
    return events_of(samples, with_device(about(samples)), log)


def events_of(samples: pl.DataFrame, series: pl.DataFrame, log: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return `xid_events` of samples whose series are known with their device (`keys.with_device`)."""
    found = _measured(samples, series)
    if log is not None:
        logged = _logged(log, series)
        near = logged.select("device", "xid", pl.col("ts").alias("logged"))
        doubled = found.join(near, on=["device", "xid"]).filter(
            (pl.col("ts") - pl.col("logged")).is_between(-SAME_EVENT, SAME_EVENT)
        )
        found = pl.concat([found.join(doubled, on=["device", "xid", "ts"], how="anti"), logged])
    who = series.group_by("device").agg(pl.col("gpu_uuid", "host", "gpu").drop_nulls().first())
    return _described(found).join(who, on="device", how="left").select(*_COLUMNS).sort("ts", "device", "xid")


def _measured(samples: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Events that metrics show: of each device by the best of its sources."""
    seen = samples.group_by("series_id").agg(pl.col("ts").min().alias("first_ts"))
    first = series.select("series_id", "device").join(seen, on="series_id").group_by("device").agg(pl.min("first_ts"))
    coded = with_labels(series.filter(pl.col("name").is_in(XID_METRICS)), ["xid"])
    rows = points(samples.filter(pl.col("name").is_in(XID_METRICS))).drop_nulls("value")
    rows = rows.join(coded, on="series_id").join(first, on="device")
    found = {
        "gpu_xid_events_total": _counted(rows, "gpu_xid_events_total"),
        "gpu_xid_events": _counted(rows, "gpu_xid_events"),
        "gpu_last_xid": _changed(rows),
    }
    ranked = pl.concat([part.with_columns(pl.lit(_RANKS[name]).alias("rank")) for name, part in found.items()])
    rank = pl.col("name").replace_strict(_RANKS, return_dtype=pl.Int32).alias("rank")
    best = rows.select("device", rank).group_by("device").agg(pl.col("rank").min())
    return ranked.join(best, on=["device", "rank"], how="semi").drop("rank")


def _counted(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Events of a count by code: what it rose by. A series that comes up later than its device starts from zero."""
    code = pl.col("xid").cast(pl.Int64, strict=False)
    counts = rows.filter(pl.col("name") == name).with_columns(code).drop_nulls("xid")
    counts = counts.group_by("device", "xid", "ts", "first_ts").agg(pl.col("value").max()).sort("device", "xid", "ts")
    same = (pl.col("device") == pl.col("device").shift(1)) & (pl.col("xid") == pl.col("xid").shift(1))
    before = pl.when(same).then(pl.col("value").shift(1))
    late = pl.col("ts") > pl.col("first_ts")
    recent = pl.lit(name == "gpu_xid_events")  # a count within the exporter's window is new by itself
    base = pl.coalesce(before, pl.when(late | recent).then(0.0))
    restarted = pl.when(~recent).then(pl.col("value"))  # a total that fell counts from zero; a window only let go
    grown = pl.when(pl.col("value") >= base).then(pl.col("value") - base).when(base.is_not_null()).then(restarted)
    events = counts.with_columns(grown.alias("count"), (late | before.is_not_null()).alias("exact"))
    none = pl.lit(None, pl.Int64).alias("previous")
    count = pl.col("count").cast(pl.Int64)
    return events.filter(pl.col("count") > 0).select("ts", "device", "xid", none, count, "exact")


def _changed(rows: pl.DataFrame) -> pl.DataFrame:
    """Events of the last code: its changes to another code that is not 0."""
    last = rows.filter(pl.col("name") == "gpu_last_xid")
    last = last.group_by("device", "ts", "first_ts").agg(pl.col("value").max()).sort("device", "ts")
    same = pl.col("device") == pl.col("device").shift(1)
    dated = last.with_columns(pl.when(same).then(pl.col("value").shift(1)).alias("previous"))
    changed = dated.filter(pl.col("value") != 0, pl.col("value").ne_missing(pl.col("previous")))
    exact = (pl.col("previous").is_not_null() | (pl.col("ts") > pl.col("first_ts"))).alias("exact")
    xid, previous = (pl.col(name).cast(pl.Int64) for name in ("value", "previous"))
    return changed.select("ts", "device", xid.alias("xid"), previous, pl.lit(1, pl.Int64).alias("count"), exact)


def _logged(log: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Events of the kernel log. Their GPU is known by UUID, else by host and bus id, else by a bus id only one has."""
    rows = log.filter(pl.col("kind") == "xid").select("ts", "host", "entity", "code", "labels").with_row_index("row")
    rows = with_labels(rows, ["gpu_uuid"]).with_columns(_bus("entity").alias("bus"))
    buses = series.select("device", _bus("pci_bus_id").alias("bus"), pl.col("host").alias("on")).unique()
    tied = rows.join(buses.drop_nulls("bus"), on="bus")
    tied = tied.filter(pl.col("host").is_null() | pl.col("on").is_null() | (pl.col("host") == pl.col("on")))
    only = tied.group_by("row").agg(pl.col("device").unique()).filter(pl.col("device").list.len() == 1)
    only = only.with_columns(pl.col("device").list.first())
    place = pl.concat_str(pl.col("host").fill_null("?"), pl.lit(" "), "entity")
    found = rows.join(only, on="row", how="left").with_columns(pl.coalesce("gpu_uuid", "device", place).alias("device"))
    known = found.with_columns(pl.col("code").cast(pl.Int64, strict=False).alias("xid")).drop_nulls(["xid", "device"])
    none = pl.lit(None, pl.Int64).alias("previous")
    counted = known.group_by("ts", "device", "xid").agg(pl.len().cast(pl.Int64).alias("count"))
    return counted.select("ts", "device", "xid", none, "count", pl.lit(value=True).alias("exact"))


def _bus(name: str) -> pl.Expr:
    """Bus id with a domain of four digits: some sources write eight."""
    return pl.col(name).str.to_lowercase().str.slice(-12)


def _described(events: pl.DataFrame) -> pl.DataFrame:
    codes = events["xid"].unique().to_list()
    known = [describe(code) for code in codes]
    texts = {
        "severity": [str(one.severity) for one in known],
        "text": [one.text or "undocumented here" for one in known],
        "action": [one.action for one in known],
    }
    table = pl.DataFrame(
        [pl.Series("xid", codes, pl.Int64), *(pl.Series(name, text, pl.String) for name, text in texts.items())]
    )
    return events.join(table, on="xid", how="left")


def weightiest(
    events: pl.DataFrame, now: datetime, age: timedelta = XID_AGE, since: datetime | None = None
) -> pl.DataFrame:
    """Return one row per device: of the events that still count at `now` (younger than `age`) the worst, else the last.

    `since` is the start of the window that was read: a code that stood there at its start may be days old, and does not
    count. A code that a device brought along later counts from when it was first seen.
    Columns: device, xid, xid_ts, xid_age_s, xid_severity, xid_text, xid_action, xid_exact, xid_current (it counts).
    """
    at = pl.lit(naive(now), TIME)
    ranks = {"info": 0, "warning": 1, "critical": 2}
    current = at - pl.col("ts") < age
    if since is not None:
        current &= pl.col("exact") | (pl.col("ts") > naive(since) + STALE_AFTER)
    rated = events.filter(pl.col("ts") <= at).with_columns(current.alias("xid_current"))
    rank = pl.col("severity").replace_strict(ranks, return_dtype=pl.Int64)
    rated = rated.with_columns(pl.when("xid_current").then(rank).otherwise(-1).alias("rank"))
    worst = rated.sort("rank", "ts", descending=True).unique("device", keep="first", maintain_order=True)
    renamed = [pl.col(name).alias(f"xid_{name}") for name in ("ts", "severity", "text", "action", "exact")]
    age_s = ((at - pl.col("ts")).dt.total_microseconds() / 1e6).alias("xid_age_s")
    return worst.select("device", "xid", *renamed, age_s, "xid_current")
