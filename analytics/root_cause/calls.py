"""Where along the calls between services an incident began: follow what was added until nobody below explains it.

A service that waits for a slow callee is slow itself, so a score per service cannot tell the root from its callers.
Amounts can: seconds added (mean latency x calls) or failures added flow from callee to caller, and the root is where
more is added than its callees account for. That is self time over an incident instead of a trace. The other way, the
sum of scores along a path of services out of line (traversal, Hardt et al. 2024), is what the benchmark compares with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from store.window import Window

if TYPE_CHECKING:
    import polars as pl

MATTERS = 0.02
"""Least share of what is explained for a candidate to be listed."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A candidate: the service, what it added itself, its share of all that is explained, and the calls to it."""

    entity: str
    added: float
    share: float
    path: tuple[str, ...]


def calls_of_spans(spans: "pl.DataFrame") -> "pl.DataFrame":
    """Count calls between services (caller, callee, calls) from parent spans.

    Spans have trace_id, span_id, parent_span_id and service; a span whose parent is not among them adds nothing.
    """
    import polars as pl

    parent = spans.select("trace_id", pl.col("span_id").alias("parent_span_id"), pl.col("service").alias("caller"))
    joined = spans.join(parent.unique(["trace_id", "parent_span_id"]), on=["trace_id", "parent_span_id"])
    between = joined.filter(pl.col("caller") != pl.col("service"))
    return between.group_by("caller", pl.col("service").alias("callee")).len("calls").sort("caller", "callee")


def added(
    measures: "pl.DataFrame",
    incident: Window,
    before: Window,
    eve: Window | None = None,
    worse: Literal["up", "down"] = "up",
) -> dict[str, float]:
    """Sum up what an incident added to each entity: sum of (value - usual) x calls, positive where it got worse.

    `measures` has ts, entity, value (a mean latency, an error ratio, an availability) and calls, the number of calls
    that the mean is over; null values are left out. Usual is the median in `before`, or the median on the `eve` of the
    incident where that was worse already: what was so before did not begin with it. Entities without a value in
    `before` are left out: nothing says what is usual for them.
    """
    import polars as pl

    sign = 1.0 if worse == "up" else -1.0
    value = pl.col("value").cast(pl.Float64).fill_nan(None) * sign
    rows = measures.select("ts", "entity", value.alias("value"), pl.col("calls").cast(pl.Float64)).drop_nulls("value")
    usual = rows.filter(_within(before)).group_by("entity").agg(pl.col("value").median().alias("usual"))
    if eve is not None:
        late = rows.filter(_within(eve)).group_by("entity").agg(pl.col("value").median().alias("late"))
        usual = usual.join(late, on="entity", how="left").with_columns(pl.max_horizontal("usual", "late"))
    inside = rows.filter(_within(incident)).join(usual, on="entity")
    total = ((pl.col("value") - pl.col("usual")) * pl.col("calls")).sum()
    return dict(inside.group_by("entity").agg(total.alias("added")).sort("entity").iter_rows())


def root_causes(calls: "pl.DataFrame", amounts: Mapping[str, float], target: str, top: int = 10) -> list[Cause]:
    """Rank the services at which what the `target` suffers was added.

    `calls` has caller and callee; `amounts` are those of `added`. What reaches a caller through a callee is at most
    what the callee added and at most what the caller passes on, so that a callee that the target hardly waits for
    cannot explain it. The target itself is listed only where no callee explains anything.
    """
    callees: dict[str, list[str]] = {}
    for caller, callee in sorted(set(calls.select("caller", "callee").iter_rows())):
        callees.setdefault(caller, []).append(callee)
    flow, path = _flows(callees, amounts, target)
    own = {
        entity: passed - sum(min(amounts[c], passed) for c in callees.get(entity, ()) if c in flow and c != target)
        for entity, passed in flow.items()
        if entity != target
    }
    whole = sum(amount for amount in own.values() if amount > 0)
    if whole <= 0:
        return [Cause(target, amounts[target], 1.0, (target,))] if amounts.get(target, 0.0) > 0 else []
    ranked = sorted(own.items(), key=lambda one: (-one[1], one[0]))
    found = [Cause(entity, amount, amount / whole, path[entity]) for entity, amount in ranked]
    return [cause for cause in found if cause.share >= MATTERS][:top]


def _flows(
    callees: Mapping[str, list[str]], amounts: Mapping[str, float], target: str
) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """Widest way from the target to each service below it: the least amount along it, and the services on it."""
    flow: dict[str, float] = {target: inf}
    path: dict[str, tuple[str, ...]] = {target: (target,)}
    open_ends = [target]
    while open_ends:
        caller = max(open_ends, key=lambda entity: (flow[entity], entity))
        open_ends.remove(caller)
        for callee in callees.get(caller, ()):
            passed = min(flow[caller], amounts.get(callee, 0.0))
            if passed > flow.get(callee, 0.0):
                flow[callee], path[callee] = passed, (*path[caller], callee)
                open_ends.append(callee)
    return flow, path


def _within(window: Window) -> "pl.Expr":
    import polars as pl

    return (pl.col("ts") >= window.start.replace(tzinfo=None)) & (pl.col("ts") < window.end.replace(tzinfo=None))
