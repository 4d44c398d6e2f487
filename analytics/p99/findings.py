"""Findings of a group: what lasts in the latest window, and the episodes that are over."""

from datetime import UTC, datetime
from typing import Any

import polars as pl

from analytics.drivers import unit_of
from analytics.p99 import ABOVE, FAR_ABOVE, P99Params
from analytics.p99.group import Group
from analytics.p99.windows import BAND, Episode, episodes
from analytics.p99.words import labels, name_of_target, quantile, quantity, share, unit_of_target
from analytics.result import Finding, Trigger
from store.window import format_time

EXAMPLES = 5


def of(group: Group, params: P99Params) -> list[Finding]:
    """One finding per trigger that holds in the latest window, then one per past episode at its worst trigger."""
    found = [
        _finding(group, params, trigger, episode)
        for trigger in (FAR_ABOVE, ABOVE)
        for episode in episodes(group.table, trigger, group.size)
        if episode.lasting
    ]
    for episode in episodes(group.table, ABOVE, group.size):
        if not episode.lasting:
            worst = FAR_ABOVE if FAR_ABOVE.holds(episode.ratio) else ABOVE
            found.append(_finding(group, params, worst, episode))
    return found


def _finding(group: Group, params: P99Params, trigger: Trigger, episode: Episode) -> Finding:
    value = group.table["ratio"][-1] if episode.lasting else episode.ratio
    moved = group.moves.get(episode.since)
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=group.labels | {"target": params.target},
        value=float(value),
        expected=(1.0 / BAND, BAND),
        since=_aware(episode.since),
        until=None if episode.lasting else _aware(episode.until),
        summary=_summary(group, params, episode, moved),
        evidence={
            "trace_ids": _examples(group, episode),
            "drivers": [
                {"driver": s.driver, "share": s.share, "ci_low": s.low, "ci_high": s.high}
                for s in (group.model.shares if group.model else ())
            ],
            "moved_most": moved,
            "p99": episode.p99,
            "baseline": episode.baseline,
        },
    )


def _summary(group: Group, params: P99Params, episode: Episode, moved: dict[str, Any] | None) -> str:
    unit = unit_of_target(params.target)
    who = labels(list(group.labels.values()))
    since, until = (format_time(at.replace(microsecond=0)) for at in (episode.since, episode.until))
    when = f"since {since}" if episode.lasting else f"from {since} to {until}"
    text = (
        f"{quantile(params.tau)} {name_of_target(params.target)} of {who} reached {quantity(episode.p99, unit)}, "
        f"{episode.p99 / episode.baseline:.3g}x its baseline {quantity(episode.baseline, unit)}, {when}"
    )
    leading = group.model.leading if group.model else None
    if group.model is None or leading is None:
        return f"{text}; no driver identified"
    doubt = "" if group.model.verdict == "ok" else f" ({group.model.verdict})"
    text += f"; associated with {share(leading)} of the {group.model.r1:.0%} explained{doubt}"
    if moved is not None and moved["moved"] > 0:
        inside, outside = (
            quantity(moved[at], _unit(moved["driver"], group)) for at in ("driver_inside", "driver_outside")
        )
        text += f"; in this episode {moved['driver']} moved it most ({outside} outside, {inside} inside)"
    return text


def _unit(driver: str, group: Group) -> str:
    """Choose the unit to write after a driver's value; a ratio or a count of requests says so by its name."""
    unit = unit_of(driver, group.units)
    return unit if unit in ("s", "bytes", "bytes/s") else ""


def _examples(group: Group, episode: Episode) -> list[str]:
    ts = pl.col("ts")
    inside = group.rows.filter((ts >= episode.since) & (ts < episode.until)).drop_nulls("trace_id")
    return [str(trace) for trace in inside.top_k(EXAMPLES, by="y").sort("y", descending=True)["trace_id"]]


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)
