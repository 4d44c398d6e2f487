"""`Facts`: what the doctor looks at, gathered once from the store and the running process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson

from infractl.pricing import priced_models
from store.query import MetricQuery
from store.window import Window, format_time

if TYPE_CHECKING:
    import polars as pl

    from collector.prices.override import Entry
    from store.database import Database

_SERIES = """
SELECT s.series_id, s.name, s.canonical, s.kind, s.semantic, s.unit, s.job, s.instance, s.service, s.labels,
       m.last_ts, m.last_value
FROM metric_series s JOIN (
    SELECT series_id, max(ts) AS last_ts, arg_max_null(value, ts) AS last_value
    FROM metric_samples WHERE ts >= TIMESTAMP '{since}' AND ts <= TIMESTAMP '{until}' GROUP BY series_id
) m USING (series_id) ORDER BY s.name, s.series_id
"""
_SERVICES = """
SELECT service, count(*)::BIGINT AS requests, count(*) FILTER (quality LIKE '%clock_skew%')::BIGINT AS skewed,
       max(ts) AS last_ts, list(DISTINCT server_address) FILTER (server_address IS NOT NULL) AS addresses
FROM spans WHERE operation IS NOT NULL AND ts >= TIMESTAMP '{since}' AND ts <= TIMESTAMP '{until}'
GROUP BY service ORDER BY service
"""
_DROPS = """
SELECT source, reason, sum(rows)::BIGINT AS rows, max(committed) AS last_ts FROM ingest_drops GROUP BY ALL ORDER BY ALL
"""
HISTOGRAMS = timedelta(minutes=15)
"""How far back histograms are read: enough for a P99, and buckets of a fleet are many."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a check may use. Frames have naive UTC times.

    `series`: one row per series with a sample since `since` (labels parsed as dicts in `labels_of`); `services`:
    requests per service; `drops`: refused rows; `buckets`: by canonical latency histogram its buckets per service
    (`analytics.metrics.histograms.buckets`); `workers`: samples of gauges with a label pid; `targets`, `discovery`,
    `receivers`, `kv_events`, `probes` and `absences` (what readers here cannot see): state of the running process,
    empty where none runs; `limits_s`: latency limits asked for, by canonical histogram; `models`: models of the
    requests with the source of their price (`infractl.pricing.priced_models`).
    """

    now: datetime
    since: datetime
    series: "pl.DataFrame"
    services: "pl.DataFrame"
    drops: "pl.DataFrame"
    buckets: Mapping[str, "pl.DataFrame"]
    workers: "pl.DataFrame"
    targets: Sequence[Mapping[str, Any]] = ()
    discovery: Sequence[Mapping[str, Any]] = ()
    receivers: Sequence[Mapping[str, Any]] = ()
    kv_events: Sequence[Mapping[str, Any]] = ()
    probes: Sequence[Mapping[str, Any]] = ()
    absences: Sequence[Mapping[str, Any]] = ()
    limits_s: Mapping[str, float] = field(default_factory=dict)
    serving: bool = False
    models: Sequence[Mapping[str, Any]] = ()


def gather(database: "Database", now: datetime, since: timedelta, prices: "Sequence[Entry]" = (), **live: Any) -> Facts:
    """Read what the store has of the time `since` before `now` (aware).

    `prices` are a person's own, `live` the fields of a running process.
    """
    times = {"since": _naive(now - since), "until": _naive(now)}
    series = _frame(database, _SERIES.format(**times))
    window = Window(now - since, now + timedelta(microseconds=1))
    return Facts(
        now=now,
        since=now - since,
        series=series,
        buckets=_buckets(database, series, window),
        workers=_workers(database, series, window),
        services=_frame(database, _SERVICES.format(**times)),
        drops=_frame(database, _DROPS),
        models=priced_models(database, window, prices),
        **live,
    )


def nothing(now: datetime) -> Facts:
    """Facts of a machine where nothing is stored yet."""
    from store.database import Database

    with TemporaryDirectory() as folder, Database(Path(folder)) as empty:
        return gather(empty, now, timedelta(hours=1))


def labels_of(text: str | None) -> dict[str, str]:
    """Labels of a series."""
    found: dict[str, str] = orjson.loads(text or "{}")
    return found


def _buckets(database: "Database", series: "pl.DataFrame", window: Window) -> dict[str, "pl.DataFrame"]:
    """Read the latency histograms of the last minutes; one that was scraped once is counted from its start."""
    import polars as pl

    from analytics.metrics.histograms import buckets
    from collector.presets.catalog import catalog

    known = {name for name, metric in catalog().canonical.items() if metric.histogram and metric.unit == "s"}
    shown = set(series["canonical"].drop_nulls())
    bases = sorted(base for base in known if f"{base}_bucket" in shown)
    names = tuple(f"{base}{part}" for base in bases for part in ("_bucket", "_count"))
    recent = Window(max(window.start, window.end - HISTOGRAMS), window.end)
    samples = database.read(MetricQuery(names), recent) if names else pl.DataFrame()
    found = {}
    for base in bases:
        grown = buckets(samples, base, ("service",), recent)
        busy = grown.filter(pl.col("count") > 0).height > 0
        found[base] = grown if busy else buckets(samples, base, ("service",), recent, from_zero=True)
    return found


def _workers(database: "Database", series: "pl.DataFrame", window: Window) -> "pl.DataFrame":
    """Read the gauges that carry a label pid."""
    import polars as pl

    marked = pl.col("labels").str.contains('"pid":', literal=True) & (pl.col("kind") == "gauge")
    names = tuple(series.filter(marked)["name"].unique().sort())
    return database.read(MetricQuery(names), window) if names else pl.DataFrame()


def _frame(database: "Database", text: str) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(database.sql(text))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _naive(at: datetime) -> str:
    return format_time(at).removesuffix("Z").replace("T", " ")
