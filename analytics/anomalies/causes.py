"""Where along the calls between services an incident was added, from spans and their parents."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import polars as pl

from analytics.anomalies.series import CALL_ERRORS, CALL_TIME
from analytics.root_cause import Cause, Times, callers, causes, entries, measured, scores
from analytics.root_cause.moves import OUTSIDE
from store.window import Window

Measure = Literal["latency", "errors", "load"]
MEASURES: dict[str, Measure] = {
    "ttft p50": "latency", "ttft p99": "latency", "e2e p50": "latency", "e2e p99": "latency", CALL_TIME: "latency",
    "error ratio": "errors", CALL_ERRORS: "errors", "request rate": "load",
}  # fmt: skip
"""What got worse, by the series that says so."""
MOST = 5
"""Candidates of one incident and measure."""
EVE_STEPS = (7, 1)
"""Steps before the incident between which its eve lies; not up to it, since an incident may be seen a step late."""


@dataclass(frozen=True)
class Calls:
    """Entry spans with their callers, the measures of services by step, and the share of the traces that was read."""

    entered: pl.DataFrame
    measures: pl.DataFrame
    edges: pl.DataFrame
    share: float

    @classmethod
    def of(cls, spans: pl.DataFrame | None, step_s: int) -> "Calls | None":
        """Read the calls; None without any between two services."""
        if spans is None or not spans.height:
            return None
        entered = entries(spans.drop_nulls(["ts", "service"]))
        edges = entered.drop_nulls("caller").group_by("caller", pl.col("service").alias("callee")).len("calls")
        if not edges.height:
            return None
        share = spans["share_read"][0] if "share_read" in spans.columns else 1.0
        return cls(entered, measured(entered, step_s), edges, float(share or 1.0))

    def ranked(self, service: str, measure: Measure, times: Times) -> list[Cause]:
        """Candidates of an incident of a service, the likeliest first; none that is the service itself."""
        if measure == "load":
            found = callers(self.entered, service, times)
        else:
            rows = self.measures.select("ts", "entity", pl.col(measure).alias("value"), "calls")
            found = causes(rows, self.edges, service, times)
        return [cause for cause in found if cause.entity != service][:MOST]


def times_of(incident: Window, start: Window, step: int) -> Times:
    """Return the day before the incident (or what the window has of it) as calm time, its last steps as the eve."""
    far, near = (timedelta(seconds=step * steps) for steps in EVE_STEPS)
    begin = max(start.start, incident.start - max(timedelta(days=1), timedelta(seconds=60 * step)))
    eve_start, eve_end = incident.start - far, incident.start - near
    if begin >= eve_start:
        return Times(incident, Window(min(begin, incident.start - near), incident.start))
    return Times(incident, Window(begin, eve_start), Window(eve_start, eve_end))


def moved_at(rows: pl.DataFrame, service: str, times: Times) -> str:
    """Names of the metrics of a service (rows: ts, entity, name, value, owner) that moved with the incident."""
    own = rows.filter(pl.col("owner") == service)
    if not own.height:
        return ""
    found = scores(own.select("ts", "entity", "name", "value"), times.incident, times.before)
    found = found.filter(pl.col("score") >= OUTSIDE).sort("score", descending=True)
    return ", ".join(list(dict.fromkeys(found["name"].to_list()))[:MOST])


def shown(service: str, measure: Measure, times: Times, found: list[Cause], moves: list[str]) -> list[dict[str, Any]]:
    """Rows of the frame of causes."""
    return [
        {
            "service": service, "start": times.incident.start.replace(tzinfo=None), "measure": measure, "rank": rank,
            "cause": cause.entity, "path": " → ".join(cause.path), "added": cause.added, "share": cause.share,
            "moved": moves[rank - 1] or None,
        }
        for rank, cause in enumerate(found, 1)
    ]  # fmt: skip
