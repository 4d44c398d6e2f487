"""Devices, engines and hosts as they are now, from stored metrics: what `infractl status` shows of a fleet."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from store.query import MetricQuery
from store.tables import EVENTS
from store.window import Window

if TYPE_CHECKING:
    from store.database import Database

RECENT = timedelta(minutes=15)
"""Rates and quantiles are over this time: enough requests for a tail, and short enough to be now."""
EVENTS_BACK = timedelta(hours=1)
"""How far back Xid errors and ECC counts are read; an event older than this no longer makes a device bad."""


def fleet(database: "Database", now: datetime) -> dict[str, list[dict[str, Any]]]:
    """Rows of `devices`, `engines` and `hosts` (JSON values) at `now` (aware); kinds without rows are left out."""
    from analytics.codec import rows
    from analytics.fleet.devices import DEVICE_METRICS, devices
    from analytics.fleet.engines import ENGINE_METRICS, engines
    from analytics.fleet.hosts import HOST_METRICS, hosts

    long, recent = _before(now, EVENTS_BACK), _before(now, RECENT)
    of_devices = database.read(MetricQuery(DEVICE_METRICS), long)
    of_engines = database.read(MetricQuery(ENGINE_METRICS), recent)
    of_hosts = database.read(MetricQuery(HOST_METRICS), recent)
    log = database.table(EVENTS.name, long)
    found = {
        "devices": devices(of_devices, long, now, log),
        "engines": engines(of_engines, recent, now),
        "hosts": hosts(of_hosts, recent, now),
    }
    return {name: rows(frame) for name, frame in found.items() if frame.height}


def _before(now: datetime, span: timedelta) -> Window:
    return Window(now - span, now + timedelta(microseconds=1))
