"""Budgets held against their lines: spent, forecast, the day they run out, and what a person should know of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from analytics import frames
from analytics.cost.budgets import AT_RISK, MOST_GROUPS, NEARLY, SIGNALS, SPENT, TRIGGERS, Budget, Watched
from analytics.cost.changes import Change, restarts
from analytics.cost.forecast import row
from analytics.cost.items import named
from analytics.cost.outlook import Outlook, outlook
from analytics.cost.periods import period
from analytics.result import Finding, Trigger
from analytics.tiers.schedule import Schedule
from store.money import amount_text
from store.window import Window, format_time
from store.zone import zone as named_zone


@dataclass(frozen=True, slots=True)
class _Kept:
    budget: Budget
    group: Mapping[str, str]
    lines: pl.DataFrame
    seen: Outlook
    row: dict[str, Any]

    @property
    def labels(self) -> dict[str, str]:
        return {name: self.row[name] for name in ("budget", "group", "currency")}

    @property
    def ratios(self) -> dict[str, float | None]:
        """Return the values of the three signals."""
        spent, low = self.row["spent_share"], self.row["low"]
        return {
            SPENT.name: spent,
            NEARLY.name: spent / self.budget.alert,
            AT_RISK.name: None if low is None else float(low / self.budget.amount),
        }


def watch(
    inputs: Mapping[str, pl.DataFrame],
    budgets: Sequence[Budget],
    window: Window,
    now: datetime,
    zone: str,
    planned: Sequence[Change],
    schedules: Mapping[str, Schedule] | None,
) -> Watched:
    """See `analytics.cost.budgets.watched`."""
    where, kept, notes = named_zone(zone), list[_Kept](), list[str]()
    for budget in budgets:
        lines = inputs[budget.input]
        own = lines.filter(pl.col("currency") == budget.currency)
        found = [
            _held(budget, group, part, now, where, restarts(planned, dict(budget.where) | group), schedules)
            for group, part in frames.groups(frames.label_columns(own, budget.by), budget.by)
        ]
        found.sort(key=lambda one: (-one.row["spent"], one.row["group"]))
        notes += _notes(budget, lines, found, window)
        kept += found[:MOST_GROUPS]
    samples = {
        signal.name: frames.samples(signal.labels, [one.labels | {"value": one.ratios[signal.name]} for one in kept])
        for signal in SIGNALS
    }
    findings = tuple(
        _finding(one, trigger) for one in kept for trigger in TRIGGERS if trigger.holds(one.ratios[trigger.signal.name])
    )
    return Watched([one.row for one in kept], samples, findings, tuple(notes))


def _held(
    budget: Budget,
    group: dict[str, str],
    lines: pl.DataFrame,
    now: datetime,
    where: ZoneInfo,
    anew: Sequence[datetime],
    schedules: Mapping[str, Schedule] | None,
) -> _Kept:
    span = period(budget.period, now, where)
    seen = outlook(lines, span, now, where, anew, schedules)
    spent, elapsed = float(seen.spent / budget.amount), (now - span.start) / span.span
    made = row(seen) | {
        "budget": budget.name,
        "group": ", ".join(f"{key}={value}" for key, value in group.items()),
        "currency": budget.currency,
        "period": budget.period,
        "amount": budget.amount,
        "spent_share": spent,
        "elapsed_share": elapsed,
        "burn": spent / elapsed if elapsed > 0 else None,
    }
    spare = seen.spent <= budget.amount
    for name, share in (("runs_out", 0.5), ("runs_out_low", 0.025), ("runs_out_high", 0.975)):
        made[name] = _naive(seen.reached(budget.amount, share, where)) if spare else None
    return _Kept(budget, group, lines, seen, made | {"state": _state(budget, seen)})


def _state(budget: Budget, seen: Outlook) -> str:
    low, high = seen.total(0.025), seen.total(0.975)
    if seen.spent > budget.amount:
        return "spent"
    if low is None or high is None:
        return "no forecast"
    return "at risk" if low > budget.amount else "may not last" if high > budget.amount else "lasts"


def _naive(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC).replace(tzinfo=None)


def _finding(one: _Kept, trigger: Trigger) -> Finding:
    budget, made, where = one.budget, one.row, f" ({one.row['group']})" if one.row["group"] else ""
    of = f"{_amount(made['spent'], budget)} of {_amount(budget.amount, budget)} per {budget.period}"
    head = f"budget {budget.name}{where}: {of} is spent ({made['spent_share']:.0%})"
    after = {AT_RISK: _told, NEARLY: _alerts}.get(trigger.signal)
    since = _since(one, budget.amount * Decimal(repr(budget.alert if trigger.signal is NEARLY else 1.0)))
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=one.labels,
        value=one.ratios[trigger.signal.name],
        expected=(0.0, 1.0),
        since=one.seen.now if trigger.signal is AT_RISK else since,
        summary=f"{head}, with {made['elapsed_share']:.0%} of the {budget.period} over" + (after(one) if after else ""),
        evidence={
            "where": dict(budget.where), "most_spent_on": _most(one), "burn": made["burn"],
            "next": "infractl analyze cost, infractl analyze tokens",
        },
    )  # fmt: skip


def _told(one: _Kept) -> str:
    low, high, out = (one.row.get(name) for name in ("low", "high", "runs_out"))
    when = f", and run out on {format_time(out)}" if out is not None else ""
    return f"; it will be {_amount(low, one.budget)} to {_amount(high, one.budget)} at the end (95 %){when}"


def _alerts(one: _Kept) -> str:
    return f"; it alerts at {one.budget.alert:.0%}"


def _amount(value: Decimal | None, budget: Budget) -> str:
    return "?" if value is None else amount_text(value.quantize(Decimal("0.01")), budget.currency)


def _since(one: _Kept, limit: Decimal) -> datetime:
    """Return the start of the bucket in which the period's cost came to exceed the limit for the last time."""
    start = one.seen.period.start.replace(tzinfo=None)
    own = one.lines.filter((pl.col("bucket") >= start) & (pl.col("bucket") < _naive(one.seen.now)))
    sums = own.group_by("bucket").agg(pl.col("cost").sum()).sort("bucket")
    below = sums.with_columns(pl.col("cost").cum_sum().alias("sum")).filter(pl.col("sum") <= limit)["bucket"].max()
    after = sums.filter(pl.col("bucket") > below)["bucket"] if below is not None else sums["bucket"]
    first = after.min()
    return first.replace(tzinfo=UTC) if isinstance(first, datetime) else one.seen.now


def _most(one: _Kept) -> list[dict[str, Any]]:
    start = one.seen.period.start.replace(tzinfo=None)
    own = named(one.lines).filter(pl.col("bucket") >= start)
    top = own.group_by("item").agg(pl.col("cost").sum()).sort("cost", "item", descending=[True, False]).head(3)
    return [{"item": name, "cost": cost} for name, cost in top.iter_rows()]


def _notes(budget: Budget, lines: pl.DataFrame, found: Sequence[_Kept], window: Window) -> list[str]:
    made = []
    others = sorted({one or "no stated currency" for one in lines["currency"].unique() if one != budget.currency})
    if others:
        made.append(f"budget {budget.name} is in {budget.currency}: lines in {', '.join(others)} are not in it")
    if not found:
        made.append(f"budget {budget.name}: no lines in {budget.currency} that it is about in {window}")
    elif window.start > (start := found[0].seen.period.start):
        made.append(
            f"budget {budget.name}: its {budget.period} began {format_time(start)}, before the window: spent is at "
            f"least what is shown; look further back (--since {(window.end - start).days + 8}d)"
        )
    if len(found) > MOST_GROUPS:
        made.append(f"budget {budget.name}: the {MOST_GROUPS} groups that spent most of {len(found)} are shown")
    return made
