"""From spans or measures of services to the ranking of an incident: below the service, and among its callers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analytics.root_cause.calls import MATTERS, Cause, added, root_causes
from store.window import Window

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Times:
    """The incident, the calm time that says what is usual, and the eve: what was so before is not part of it."""

    incident: Window
    before: Window
    eve: Window | None = None


def entries(spans: "pl.DataFrame") -> "pl.DataFrame":
    """Spans at which a service is entered: those whose parent is of another service, or not among the spans.

    Adds `caller`, null where the parent is not known. Spans have trace_id, span_id, parent_span_id and service.
    """
    import polars as pl

    parent = spans.select("trace_id", pl.col("span_id").alias("parent_span_id"), pl.col("service").alias("caller"))
    joined = spans.join(parent.unique(["trace_id", "parent_span_id"]), on=["trace_id", "parent_span_id"], how="left")
    return joined.filter(pl.col("caller").is_null() | (pl.col("caller") != pl.col("service")))


def measured(entered: "pl.DataFrame", step_s: int) -> "pl.DataFrame":
    """Return calls, mean latency and error ratio of each service by step: ts, entity, calls, latency, errors."""
    import polars as pl

    bucket = (pl.col("ts").dt.epoch("s") // step_s * step_s).cast(pl.Int64)
    rows = entered.drop_nulls(["ts", "service"]).with_columns(pl.from_epoch(bucket).cast(pl.Datetime("us")).alias("ts"))
    return (
        rows.group_by("ts", pl.col("service").alias("entity"), maintain_order=True)
        .agg(
            pl.len().alias("calls"),
            pl.col("duration_s").mean().alias("latency"),
            pl.col("status").eq_missing(pl.lit("error")).mean().alias("errors"),
        )
        .sort("ts", "entity")
    )


def causes(
    measures: "pl.DataFrame", calls: "pl.DataFrame", target: str, times: Times, worse: Literal["up", "down"] = "up"
) -> list[Cause]:
    """Rank the services at which was added what the target suffers. `measures`: ts, entity, value, calls."""
    amounts: Mapping[str, float] = added(measures, times.incident, times.before, times.eve, worse)
    return root_causes(calls, amounts, target)


def callers(entered: "pl.DataFrame", target: str, times: Times) -> list[Cause]:
    """Rank the callers of the target by how many more calls came from each than are usual for so long a time.

    Nothing unless the target has a tenth more calls than usual; a caller that is not known is no candidate.
    """
    import polars as pl

    def count(window: Window) -> dict[str | None, int]:
        start, end = (at.replace(tzinfo=None) for at in (window.start, window.end))
        inside = entered.filter((pl.col("service") == target) & (pl.col("ts") >= start) & (pl.col("ts") < end))
        return dict(inside.group_by("caller").len().iter_rows())

    during, calm = count(times.incident), count(times.before)
    scale = times.incident.span / times.before.span
    more = {caller: n - scale * calm.get(caller, 0) for caller, n in during.items()}
    whole = sum(amount for amount in more.values() if amount > 0)
    if whole <= 0 or sum(more.values()) < 0.1 * max(scale * sum(calm.values()), 1.0):
        return []
    ranked = sorted(((name, n) for name, n in more.items() if name), key=lambda one: (-one[1], one[0]))
    return [Cause(name, n, n / whole, (name, target)) for name, n in ranked if n >= MATTERS * whole]
