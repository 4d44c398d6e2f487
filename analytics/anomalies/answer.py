"""From points to the answer of `analyze anomalies`: episodes, those that page, what else moved, findings."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, timedelta
from typing import Any

import polars as pl
from scipy.stats import poisson

from analytics import frames
from analytics.analysis import Inputs
from analytics.anomalies import ANOMALOUS, BEYOND, FRAMES, LEVEL, SHIFTED, STEPS, AnomaliesParams
from analytics.anomalies.series import LEAST_POINTS, Grid, at, grid
from analytics.anomalies.words import reason
from analytics.detect.episodes import Episode, find
from analytics.result import Finding, Result, Status, Trigger
from analytics.root_cause import moved
from store.window import Window, format_time

WEAK_P = 3e-4
TOGETHER = 3
"""Series of one entity that, each with a probability of at most WEAK_P within as many points, page together."""
CHANCE = 1e-6
EXPLAINED = 5
"""Findings that look for what else moved; the search reads every series."""
MOVED = 5
FALSE_DISCOVERIES = 1.2e-4
"""Rate among all series at one time: a quarter of a false page a week (2,016 times), however many series there are."""
ROWS = 500
"""Most rows of the frame of anomalies, those that page first."""


def answer(inputs: Inputs, params: AnomaliesParams, window: Window) -> Result:
    """Answer over all series. Status: empty without any, refused where all are too short."""
    found = grid(inputs, params, window)
    made = asdict(params)
    if not found.series:
        status = Status.REFUSED if found.skipped else Status.EMPTY
        shown = {name: frames.build((), columns, ()) for name, columns in FRAMES.items()}
        shown["coverage"] = frames.build((), FRAMES["coverage"], _coverage(found))
        return Result("anomalies", status, window, made, shown, notes=tuple(_notes(found, params, window)))
    episodes = paged(find(found.values, found.seconds), found)
    now = _now(found, params, window)
    findings, samples = _findings(episodes, found, params, now)
    return Result(
        analysis="anomalies",
        status=Status.OK,
        window=window,
        params=made,
        frames={
            "anomalies": frames.build((), FRAMES["anomalies"], _rows(episodes, found, params, now)),
            "coverage": frames.build((), FRAMES["coverage"], _coverage(found)),
        },
        samples={name: frames.samples(params.by, rows) for name, rows in samples.items()},
        findings=tuple(findings),
        notes=(*_notes(found, params, window), *_left_out(episodes)),
    )


def _left_out(episodes: Sequence[Episode]) -> tuple[str, ...]:
    rest = len(episodes) - ROWS
    return (f"{rest} older episodes that do not page are left out; narrow with --where",) if rest > 0 else ()


def _now(found: Grid, params: AnomaliesParams, window: Window) -> int:
    """Return the row from which on an episode lasts; beyond the last one where the data end before the window."""
    stale = window.end.timestamp() - found.seconds[-1] > 4 * STEPS[params.step]
    return len(found.seconds) + 1 if stale else len(found.seconds) - 2


def paged(episodes: Sequence[Episode], found: Grid) -> list[Episode]:
    """Decide which page: alone by the tail, with false discoveries held among all series; or several of an entity."""
    alone = _discovered(episodes, len(found.series))
    together = _together(episodes, found)
    return [replace(e, page=i in alone or i in together) for i, e in enumerate(episodes)]


def _discovered(episodes: Sequence[Episode], series: int) -> set[int]:
    """Benjamini & Hochberg (1995) over all series, among the episodes that begin within a few points of each other."""
    candidates = sorted((e.first, e.p, i) for i, e in enumerate(episodes) if e.page)
    kept: set[int] = set()
    for first, p, i in candidates:
        near = sorted(q for at, q, _ in candidates if abs(at - first) < TOGETHER)
        passing = [q for k, q in enumerate(near, 1) if q <= FALSE_DISCOVERIES * k / series]
        if passing and p <= passing[-1]:
            kept.add(i)
    return kept


def _together(episodes: Sequence[Episode], found: Grid) -> set[int]:
    """Episodes of metrics of one entity that began within a few points: more than chance would bring."""
    size: dict[str, int] = defaultdict(int)
    for series in found.series:
        size[series.entity] += 1
    weak = [(i, e) for i, e in enumerate(episodes) if e.kind == "value" and e.p <= WEAK_P]
    by_entity: dict[str, list[tuple[int, Episode]]] = defaultdict(list)
    for i, episode in weak:
        by_entity[found.series[episode.column].entity].append((i, episode))
    out: set[int] = set()
    for entity, some in by_entity.items():
        for _, one in some:
            near = [(i, e) for i, e in some if one.first <= e.first < one.first + TOGETHER]
            names = {found.series[e.column].name for _, e in near}
            expected = size[entity] * TOGETHER * WEAK_P
            if len(names) >= TOGETHER and poisson.sf(len(names) - 1, expected) < CHANCE:
                out |= {i for i, _ in near}
    return out


def _rows(episodes: Sequence[Episode], found: Grid, params: AnomaliesParams, now: int) -> list[dict[str, Any]]:
    step = timedelta(seconds=STEPS[params.step])
    ordered = sorted(episodes, key=lambda e: (e.page, e.last >= now, e.first), reverse=True)[:ROWS]
    return [
        {
            "series": found.series[e.column].name,
            "labels": found.series[e.column].labels,
            "start": at(int(found.seconds[e.first])),
            "end": None if e.last >= now else at(int(found.seconds[e.last])) + step,
            "kind": e.kind,
            "level": "page" if e.page else "notice",
            "score": e.score,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "p": e.p if e.p < 1 else None,
            "reason": reason(found.series[e.column], e, STEPS[params.step]),
        }
        for e in ordered
    ]


def _coverage(found: Grid) -> list[dict[str, Any]]:
    points = pl.DataFrame(found.values).with_columns(pl.all().is_finite()).sum().row(0) if found.series else ()
    rows = [
        {"series": s.name, "labels": s.labels, "points": int(n), "skipped_reason": None}
        for s, n in zip(found.series, points, strict=True)
    ]
    return rows + [
        {"series": s.name, "labels": s.labels, "points": n, "skipped_reason": why} for s, n, why in found.skipped
    ]


def _findings(
    episodes: Sequence[Episode], found: Grid, params: AnomaliesParams, now: int
) -> tuple[list[Finding], dict[str, list[dict[str, Any]]]]:
    """One finding per group and trigger that holds, one per past incident that paged; and the samples."""
    by_group: dict[tuple[tuple[str, str], ...], list[Episode]] = {}
    for series in found.series:
        by_group.setdefault(tuple(series.by.items()), [])
    for episode in episodes:
        by_group[tuple(found.series[episode.column].by.items())].append(episode)
    findings: list[Finding] = []
    samples: dict[str, list[dict[str, Any]]] = {ANOMALOUS.name: [], SHIFTED.name: []}
    for key, some in sorted(by_group.items()):
        for trigger, chosen in ((BEYOND, [e for e in some if e.page]), (LEVEL, [e for e in some if e.kind == "level"])):
            lasting = [e for e in chosen if e.last >= now]
            count = float(len({e.column for e in lasting}))
            samples[trigger.signal.name].append({**dict(key), "value": count})
            if trigger.holds(count):
                findings.append(_finding(trigger, dict(key), lasting, found, params, lasts=True, what=len(findings)))
            if trigger is BEYOND:
                past = _incidents([e for e in chosen if e.last < now])
                findings += [
                    _finding(trigger, dict(key), one, found, params, lasts=False, what=len(findings) + i)
                    for i, one in enumerate(past)
                ]
    return findings, samples


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


def _finding(
    trigger: Trigger, labels: dict[str, str], some: list[Episode], found: Grid, params: AnomaliesParams, *,
    lasts: bool, what: int,
) -> Finding:  # fmt: skip
    worst = min(some, key=lambda e: (e.p, -e.score))
    series, step = found.series[worst.column], STEPS[params.step]
    first, last = min(e.first for e in some), max(e.last for e in some)
    since, until = (at(int(found.seconds[row])).replace(tzinfo=UTC) for row in (first, last))
    until += timedelta(seconds=step)
    names = sorted({found.series[e.column].name for e in some})
    others = "" if len(names) == 1 else f"; with it {', '.join(n for n in names if n != series.name)}"[:200]
    when = f"since {format_time(since)}" if lasts else f"from {format_time(since)} to {format_time(until)}"
    also = _also(found, Window(since, until), series.name, step) if what < EXPLAINED and trigger is BEYOND else []
    rest = f"; also moved: {', '.join(one['name'] for one in also)}" if also else ""
    who = ", ".join(v for v in labels.values() if v) or series.entity
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=labels,
        value=float(len({e.column for e in some})),
        expected=(0.0, 0.0),
        since=since,
        until=None if lasts else until,
        summary=f"{series.name} of {who} {when}: {reason(series, worst, step)}{others}{rest}",
        evidence={
            "series": [
                {"series": found.series[e.column].name, "labels": json.loads(found.series[e.column].labels),
                 "kind": e.kind, "value": e.value, "low": e.low, "high": e.high,
                 "p": e.p if e.p < 1 else None} for e in some[:20]
            ],
            "moved": also,
        },
    )  # fmt: skip


def _also(found: Grid, incident: Window, name: str, step: int) -> list[dict[str, Any]]:
    """Series that moved with the incident, against the day before it."""
    start = incident.start - max(timedelta(days=1), timedelta(seconds=60 * step))
    rows = found.rows.filter(pl.col("s") >= start.timestamp(), pl.col("s") < incident.end.timestamp())
    long = rows.select(pl.from_epoch("s").cast(pl.Datetime("us")).alias("ts"), "entity", "name", "value")
    others = moved(long.filter(pl.col("name") != name), incident, Window(start, incident.start), MOVED)
    fields = ("entity", "name", "score", "direction", "before", "during")
    return [
        {f: row[f] for f in fields} | {"since": format_time(row["since"]) if row["since"] else None}
        for row in others.iter_rows(named=True)
    ]


def _notes(found: Grid, params: AnomaliesParams, window: Window) -> list[str]:
    judged, skipped = len(found.series), len(found.skipped)
    notes = []
    if not judged and not skipped:
        notes.append(f"no metrics and no requests in {window}")
    elif not judged:
        notes.append(
            f"all {skipped} series are too short or constant: {LEAST_POINTS} points of {params.step} are needed before "
            "the first judgement; a longer --since, or a finer --step for a short recording"
        )
    elif skipped:
        notes.append(f"{judged} series judged, {skipped} not (see coverage)")
    if judged and STEPS[params.step] >= 300 and len(found.seconds) * STEPS[params.step] < 3 * 86400:
        notes.append("less than three days of history: no season yet, only what was never seen, levels and gaps")
    return notes
