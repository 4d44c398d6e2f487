"""Findings of `analyze anomalies`: one per group and trigger that holds, one per past incident that paged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics.anomalies import ANOMALOUS, BEYOND, DRIFT, DRIFTING, LEVEL, SHIFTED
from analytics.anomalies.causes import MEASURES, Calls, moved_at, shown, times_of
from analytics.anomalies.series import Grid, at
from analytics.anomalies.values import Usual
from analytics.anomalies.words import sentence
from analytics.detect.episodes import Episode
from analytics.result import Finding, Trigger
from analytics.root_cause import moved
from store.window import Window, format_time

EXPLAINED = 5
"""Findings that look for what else moved and where it began; the search reads every series."""
MOVED = 5

Rows = list[dict[str, Any]]


@dataclass
class Told:
    """What the findings of one run share: the points, what is usual, the calls, and the causes found so far."""

    found: Grid
    usual: Usual
    calls: Calls | None
    explained: int = 0
    causes: Rows = field(default_factory=list)


def findings(
    episodes: Sequence[Episode], recurring: Mapping[int, str], found: Grid, now: int, usual: Usual,
    calls: Calls | None,
) -> tuple[list[Finding], dict[str, Rows], Rows]:  # fmt: skip
    """Return findings, samples by signal, and the rows of the frame of causes."""
    by_group: dict[tuple[tuple[str, str], ...], list[Episode]] = {}
    for series in found.series:
        by_group.setdefault(tuple(series.by.items()), [])
    for i, episode in enumerate(episodes):
        if i not in recurring:
            by_group[tuple(found.series[episode.column].by.items())].append(episode)
    told, out = Told(found, usual, calls), []
    samples: dict[str, Rows] = {ANOMALOUS.name: [], SHIFTED.name: [], DRIFTING.name: []}
    for key, some in sorted(by_group.items()):
        chosen = {BEYOND: [e for e in some if e.page]}
        chosen |= {LEVEL: [e for e in some if e.kind == "level"], DRIFT: [e for e in some if e.kind == "drift"]}
        for trigger, of_trigger in chosen.items():
            lasting = [e for e in of_trigger if e.last >= now]
            count = float(len({e.column for e in lasting}))
            samples[trigger.signal.name].append({**dict(key), "value": count})
            if trigger.holds(count):
                out.append(_finding(trigger, dict(key), lasting, told, lasts=True))
        past = [e for e in chosen[BEYOND] if e.last < now]
        out += [_finding(BEYOND, dict(key), one, told, lasts=False) for one in _incidents(past)]
    return out, samples, told.causes


def _incidents(episodes: Sequence[Episode], apart: int = 6) -> list[list[Episode]]:
    """Episodes that overlap or follow within a few points, as one incident."""
    out: list[list[Episode]] = []
    end = -1
    for episode in sorted(episodes, key=lambda e: e.first):
        if out and episode.first <= end + apart:
            out[-1].append(episode)
        else:
            out.append([episode])
        end = max(end, episode.last) if len(out[-1]) > 1 else episode.last
    return out


def _finding(trigger: Trigger, labels: dict[str, str], some: list[Episode], told: Told, *, lasts: bool) -> Finding:
    found = told.found
    worst = min(some, key=lambda e: (e.p, -e.score))
    series = found.series[worst.column]
    since, end = _clock(found, min(e.first for e in some)), _clock(found, max(e.last for e in some))
    incident = Window(since, end + timedelta(seconds=found.step))
    also, causes = _explained(trigger, labels, some, incident, told)
    names = sorted({found.series[e.column].name for e in some} - {series.name})
    what, why = sentence(series, worst, found.step, _who(labels, series.entity), told.usual, lasts=lasts)
    parts = [
        what,
        f"since {format_time(since)}" if lasts else f"{format_time(since)} to {format_time(incident.end)}",
        why,
        _listed("with it: ", names),
        _led(causes),
        _listed("also moved: ", [one["name"] for one in also]),
    ]
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=labels,
        value=float(len({e.column for e in some})),
        expected=(0.0, 0.0),
        since=since,
        until=None if lasts else incident.end,
        summary="; ".join(part for part in parts if part),
        evidence={
            "series": [_evidence(e, found) for e in some[:20]],
            "moved": also,
            "causes": [{key: value for key, value in one.items() if key != "start"} for one in causes],
            "exclude": f"{_narrowed(series.name, json.loads(series.labels))} {incident}",
        },
    )


def _explained(
    trigger: Trigger, labels: dict[str, str], some: list[Episode], incident: Window, told: Told
) -> tuple[Rows, Rows]:
    """Find what else moved, and where along the calls it was added; for the first few findings."""
    if trigger is not BEYOND or told.explained >= EXPLAINED:
        return [], []
    told.explained += 1
    names = {told.found.series[e.column].name for e in some}
    causes = _caused(labels.get("service", ""), names, incident, told)
    told.causes += causes
    return _also(told.found, incident, names), causes


def _caused(service: str, names: set[str], incident: Window, told: Told) -> Rows:
    measures = list(dict.fromkeys(MEASURES[name] for name in sorted(names) if name in MEASURES))
    if told.calls is None or not service or not measures:
        return []
    begin = _clock(told.found, 0)
    times = times_of(incident, Window(begin, max(incident.end, begin + timedelta(seconds=1))), told.found.step)
    rows = _long(told.found, times.before.start, incident.end).with_columns(
        pl.col("labels").str.json_path_match("$.service").alias("owner")
    )
    out: Rows = []
    for measure in measures:
        found = told.calls.ranked(service, measure, times)
        out += shown(service, measure, times, found, [moved_at(rows, cause.entity, times) for cause in found])
    return out


def _also(found: Grid, incident: Window, names: set[str]) -> Rows:
    """Series of other names that moved with the incident, against the day before it."""
    start = incident.start - max(timedelta(days=1), timedelta(seconds=60 * found.step))
    rows = _long(found, start, incident.end).filter(~pl.col("name").is_in(sorted(names)))
    others = moved(rows.select("ts", "entity", "name", "value"), incident, Window(start, incident.start), MOVED)
    fields = ("entity", "name", "score", "direction", "before", "during")
    return [
        {f: row[f] for f in fields} | {"since": format_time(row["since"]) if row["since"] else None}
        for row in others.iter_rows(named=True)
    ]


def _long(found: Grid, start: datetime, end: datetime) -> pl.DataFrame:
    rows = found.rows.filter(pl.col("s") >= start.timestamp(), pl.col("s") < end.timestamp())
    return rows.select(pl.from_epoch("s").cast(pl.Datetime("us")).alias("ts"), "entity", "name", "value", "labels")


def _clock(found: Grid, row: int) -> datetime:
    return at(int(found.seconds[row])).replace(tzinfo=UTC)


def _who(labels: Mapping[str, str], entity: str) -> str:
    return ", ".join(value for value in labels.values() if value) or entity


def _listed(start: str, names: Sequence[str]) -> str:
    """Write names without doubles; those that would make it too long are counted."""
    names = list(dict.fromkeys(names))
    rest = f" and {len(names) - MOVED} more" if len(names) > MOVED else ""
    return f"{start}{', '.join(names[:MOVED])}{rest}" if names else ""


def _led(causes: Rows) -> str:
    """Say of the first candidate how much of what was added lies there; not that it is why."""
    if not causes:
        return ""
    first = causes[0]
    what = {"latency": "of the time added", "errors": "of the failures added", "load": "of the calls added"}
    return f"{first['share']:.0%} {what[first['measure']]} at {first['cause']} ({first['path']})"


def _narrowed(name: str, labels: Mapping[str, str]) -> str:
    """Write the exclusion of one series, as far as its labels can be written in one."""
    said = [f"{key}={value}" for key, value in labels.items() if value and not set(" ,=") & set(value)]
    return " ".join([name, *said])


def _evidence(e: Episode, found: Grid) -> dict[str, Any]:
    series = found.series[e.column]
    known = {"kind": e.kind, "value": e.value, "low": e.low, "high": e.high, "p": e.p if e.p < 1 else None}
    return {"series": series.name, "labels": json.loads(series.labels), **known}
