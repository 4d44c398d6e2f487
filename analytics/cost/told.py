"""Samples and findings of drifts: one finding per drift, however many hours it has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics import frames
from analytics.cost import DRIFT, NEW, PEAK, SPIKE, STOPPED, TRIGGERS, episodes
from analytics.cost.episodes import Drift
from analytics.cost.judge import Verdict, name_of
from analytics.result import Finding, Signal, Trigger
from store.money import amount_text, minor_places
from store.window import format_time

RECENT = timedelta(days=7)
"""Drifts that ended earlier are in the frame alone."""
MOST_SERIES = 200
"""Groups that publish a sample each; of more, those of the largest cost and those that drift."""
_WORDS = {
    episodes.SPIKE: "a spike", episodes.LEVEL: "a new level", episodes.TREND: "a trend",
    episodes.NEW: "new spend", episodes.STOPPED: "no spend any more",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A drift with what a row of it says: the amounts, the explanation, the planned change that covers it."""

    verdict: Verdict
    drift: Drift
    row: dict[str, Any]
    explained: Sequence[Mapping[str, Any]]

    @property
    def planned(self) -> bool:
        """Whether it begins in a planned change."""
        return bool(self.row["planned"])


def value_of(signal: Signal, one: Drift) -> float:
    """Return what a lasting drift publishes for a signal; 0 where the signal is about something else."""
    if signal is NEW:
        return one.impact / (one.last - one.first + 1) if one.kind == episodes.NEW else 0.0
    if signal is STOPPED:
        return one.expected if one.kind == episodes.STOPPED else 0.0
    if one.impact <= 0 or one.kind == episodes.NEW:
        return 0.0
    if signal is PEAK:
        return one.peak or 0.0
    lasting = one.kind in (episodes.LEVEL, episodes.TREND)
    return (one.ratio or 0.0) if lasting == (signal is DRIFT) else 0.0


def samples(verdicts: Sequence[Verdict], told: Sequence[Told], labels: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Publish 0 for every judged group that does not drift, so that an alert ends when its drift does."""
    names = [*labels, "currency", "basis"]
    made = {}
    for signal in (DRIFT, SPIKE, PEAK, NEW, STOPPED):
        rows = []
        for verdict in verdicts:
            worst = _worst(verdict, told, signal)
            rows += [
                {name: str(verdict.grid.keys[series][name] or "") for name in names}
                | {"value": value_of(signal, worst[series].drift) if series in worst else 0.0}
                for series in _published(verdict, worst)
            ]
        made[signal.name] = frames.samples(names, rows)
    return made


def _published(verdict: Verdict, worst: Mapping[int, Told]) -> Iterable[int]:
    import numpy as np

    sums = np.nansum(verdict.grid.values, axis=0)
    largest = set(np.argsort(-sums, kind="stable")[:MOST_SERIES].tolist()) if verdict.grid.until else set()
    return sorted(largest | set(worst))


def _worst(verdict: Verdict, told: Sequence[Told], signal: Signal) -> dict[int, Told]:
    """Of the drifts of a series that last and are not planned, the one with the largest value."""
    found: dict[int, Told] = {}
    for one in told:
        if one.verdict is not verdict or not one.drift.lasting or one.planned:
            continue
        value = value_of(signal, one.drift)
        known = found.get(one.drift.series)
        if value > 0 and (known is None or value > value_of(signal, known.drift)):
            found[one.drift.series] = one
    return found


def findings(verdicts: Sequence[Verdict], told: Sequence[Told], labels: Sequence[str]) -> list[Finding]:
    """One per trigger that holds, then one per drift that ended within the last week, at its worst trigger."""
    made = []
    for verdict in verdicts:
        for trigger in TRIGGERS:
            worst = _worst(verdict, told, trigger.signal).values()
            holding = [one for one in worst if trigger.holds(value_of(trigger.signal, one.drift))]
            made += [_finding(one, trigger, labels) for one in holding]
        made += [_ended(one, labels) for one in told if one.verdict is verdict and _is_recent(one)]
    return made


def _is_recent(one: Told) -> bool:
    grid, drift = one.verdict.grid, one.drift
    if drift.lasting or one.planned or drift.impact <= 0:
        return False
    ended: datetime = one.row["usual_since"] or one.row["until"]
    return grid.end(grid.until - 1) - ended <= RECENT


def _ended(one: Told, labels: Sequence[str]) -> Finding:
    held = [trigger for trigger in TRIGGERS if trigger.holds(value_of(trigger.signal, one.drift))]
    return _finding(one, held[0], labels)


def _finding(one: Told, trigger: Trigger, labels: Sequence[str]) -> Finding:
    drift, row, key = one.drift, one.row, one.verdict.grid.keys[one.drift.series]
    ended = row["usual_since"] or row["until"]
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels={name: str(key[name] or "") for name in (*labels, "currency", "basis")},
        value=value_of(trigger.signal, drift),
        expected=_band(one, trigger),
        since=_aware(row["since"]),
        until=None if drift.lasting else _aware(ended),
        summary=summary(one),
        evidence={
            "kind": drift.kind,
            "impact": str(row["impact"]),
            "size": row["size"],
            "size_ci": [row["size_low"], row["size_high"]],
            "compared_with": drift.basis,
            "explained": [
                {name: str(part[name]) for name in ("item", "total", "price", "volume", "mix") if part.get(name)}
                for part in one.explained[:3]
            ],
            "next": "infractl analyze cost, frame explained",
        },
    )


def _band(one: Told, trigger: Trigger) -> tuple[float | None, float | None]:
    """Return the expected band in the unit of the value: shares of what is usual, cost over it, cost per hour."""
    if trigger.signal is NEW:
        return 0.0, 0.0
    if trigger.signal is STOPPED:
        return None, 0.0
    expected, high = (values[one.drift.first, one.drift.series] for values in (one.verdict.expected, one.verdict.high))
    ratio = float(high / expected) if expected > 0 and high == high else None
    if ratio is None:
        return None, None
    return (0.0, ratio) if trigger.signal is PEAK else (None, ratio - 1.0)


def summary(one: Told) -> str:
    """Say in one sentence what is wrong, since when, against what, and what it goes with."""
    drift, row, grid = one.drift, one.row, one.verdict.grid
    currency = grid.keys[drift.series]["currency"]
    unit = "hour" if grid.grain == "hour" else "day"
    since = format_time(_aware(row["since"]))
    impact = _money(float(row["impact"]), currency)
    who = name_of(grid, drift.series)
    if drift.kind == episodes.NEW:
        return f"{who}: new spend since {since}, {impact} so far; it cost nothing before (change in percent: n/a)"
    if drift.kind == episodes.STOPPED:
        return f"{who}: costs nothing since {since}; usual is {_money(drift.expected, currency)} per {unit}"
    share = (
        f"{drift.size[0]:.0%} ({drift.size[1]:.0%} to {drift.size[2]:.0%})" if drift.size else f"{drift.ratio or 0:.0%}"
    )
    when = (
        f"since {since}"
        if drift.lasting
        else f"from {since} to {format_time(_aware(row['until'] or row['usual_since']))}"
    )
    costs = "costs" if drift.lasting else "cost"
    text = (
        f"{who} {costs} {share} more than usual ({drift.basis}) {when}, {_WORDS[drift.kind]}: "
        f"{impact} over the {_money(drift.expected, currency)} per {unit} expected"
    )
    return f"{text}; {row['explanation']}" if row["explanation"] else text


def _money(amount: float, currency: str | None) -> str:
    """Round to what the currency has, and two more digits below 1."""
    places = minor_places(currency) + (2 if abs(amount) < 1 else 0)
    return amount_text(Decimal(repr(amount)).quantize(Decimal(1).scaleb(-places)), currency)


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)
