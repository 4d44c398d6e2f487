"""From points to the answer of `analyze anomalies`: episodes, those that page, values to draw, findings, causes."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.anomalies import AUTO, FRAMES, AnomaliesParams
from analytics.anomalies.causes import Calls
from analytics.anomalies.findings import findings
from analytics.anomalies.learnt import learnt
from analytics.anomalies.paging import paged
from analytics.anomalies.series import LEAST_POINTS, Grid, at, grid, named
from analytics.anomalies.values import Usual, values
from analytics.anomalies.words import reason
from analytics.detect.episodes import Episode, find
from analytics.result import Result, Status
from store.window import Window
from store.zone import zone

ROWS = 500
"""Most rows of the frame of anomalies, those that page first."""
_GROWS = re.compile("uptime|start_time|timestamp|boot_time|_time_seconds$|_age_")
"""Series that go up by their nature: their drift is no news."""


@dataclass(frozen=True)
class Judged:
    """Episodes by order of telling, and by place in it what recurs."""

    episodes: list[Episode]
    usual: Mapping[int, str]


def answer(inputs: Inputs, params: AnomaliesParams, window: Window) -> Result:
    """Answer over all series. Status: empty without any, refused where all are too short."""
    found = grid(inputs, params, window)
    made = asdict(params)
    if not found.series:
        status = Status.REFUSED if found.skipped else Status.EMPTY
        shown = {name: frames.build((), columns, ()) for name, columns in FRAMES.items()}
        shown["coverage"] = frames.build((), FRAMES["coverage"], _coverage(found, Judged([], {})))
        return Result("anomalies", status, window, made, shown, notes=tuple(_notes(found, params, window)))
    judged = judge(found, params)
    now = _now(found, window)
    ordered = sorted(
        range(len(judged.episodes)),
        key=lambda i: (judged.episodes[i].page, judged.episodes[i].last >= now, judged.episodes[i].first),
        reverse=True,
    )
    calls = Calls.of(inputs.get("calls"), found.step)
    usual = Usual(found, judged.episodes)
    told, samples, causes = findings(judged.episodes, judged.usual, found, now, usual, calls)
    rows = {
        "anomalies": _rows(judged, ordered[:ROWS], found, now),
        "coverage": _coverage(found, judged),
        "values": values([judged.episodes[i] for i in ordered], found, usual),
        "causes": causes,
    }
    return Result(
        analysis="anomalies",
        status=Status.OK,
        window=window,
        params=made,
        frames={name: frames.build((), FRAMES[name], some) for name, some in rows.items()},
        samples={name: frames.samples(params.by, some) for name, some in samples.items()},
        findings=tuple(told),
        notes=(*_notes(found, params, window), *_left_out(judged), *_called(calls)),
    )


def judge(found: Grid, params: AnomaliesParams) -> Judged:
    """Find all episodes but those that an exclusion made, and say which page and which recur."""
    told = [e for e in find(found.values, found.seconds) if not _made_by_exclusion(e, found)]
    told = [e for e in told if e.kind != "drift" or not _GROWS.search(found.series[e.column].name)]
    usual = learnt(found.values, found.seconds, told, zone(params.zone))
    weighed = paged([replace(e, page=False, p=1.0) if i in usual else e for i, e in enumerate(told)], found)
    return Judged([replace(e, p=told[i].p) for i, e in enumerate(weighed)], usual)


def _made_by_exclusion(episode: Episode, found: Grid) -> bool:
    """Whether a gap is of points that were left out."""
    inside = found.withheld[episode.first : episode.last + 1, episode.column]
    return episode.kind == "missing" and bool(inside.any())


def _left_out(judged: Judged) -> list[str]:
    rest, recurs = len(judged.episodes) - ROWS, len(judged.usual)
    notes = [f"{rest} older episodes that do not page are left out; narrow with --where"] if rest > 0 else []
    if recurs:
        notes.append(
            f"{recurs} episodes recur at the same hour with a similar level and so do not page (level usual; the rules "
            "are in coverage, column learnt)"
        )
    return notes


def _called(calls: Calls | None) -> list[str]:
    if calls is None or calls.share >= 1:
        return []
    return [f"calls between services are read from {calls.share:.1%} of the traces, the same ones each time"]


def _now(found: Grid, window: Window) -> int:
    """Return the row from which on an episode lasts; beyond the last one where the data end before the window."""
    stale = window.end.timestamp() - found.seconds[-1] > 4 * found.step
    return len(found.seconds) + 1 if stale else len(found.seconds) - 2


def _rows(judged: Judged, chosen: Sequence[int], found: Grid, now: int) -> list[dict[str, Any]]:
    return [_row(judged.episodes[i], judged.usual.get(i), found, now) for i in chosen]


def _row(e: Episode, usual: str | None, found: Grid, now: int) -> dict[str, Any]:
    series = found.series[e.column]
    why = reason(series, e, found.step)
    return {
        "series": series.name,
        "labels": series.labels,
        "start": at(int(found.seconds[e.first])),
        "end": None if e.last >= now else at(int(found.seconds[e.last])) + timedelta(seconds=found.step),
        "kind": e.kind,
        "level": "page" if e.page else "usual" if usual else "notice",
        "score": e.score,
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "p": e.p if e.p < 1 else None,
        "reason": f"{why}; it recurs, {usual}" if usual else why,
    }


def _coverage(found: Grid, judged: Judged) -> list[dict[str, Any]]:
    points = pl.DataFrame(found.values).with_columns(pl.all().is_finite()).sum().row(0) if found.series else ()
    rules: dict[int, Counter[str]] = {}
    for i, rule in judged.usual.items():
        rules.setdefault(judged.episodes[i].column, Counter())[rule] += 1
    learnt_of = {column: "; ".join(rule for rule, _ in some.most_common(3)) for column, some in rules.items()}
    rows = [
        {"series": s.name, "labels": s.labels, "points": int(n), "skipped_reason": None, "learnt": learnt_of.get(i)}
        for i, (s, n) in enumerate(zip(found.series, points, strict=True))
    ]
    return rows + [
        {"series": s.name, "labels": s.labels, "points": n, "skipped_reason": why} for s, n, why in found.skipped
    ]


def _notes(found: Grid, params: AnomaliesParams, window: Window) -> list[str]:
    judged, skipped = len(found.series), len(found.skipped)
    notes = []
    if not judged and not skipped:
        notes.append(f"no metrics and no requests in {window}")
    elif not judged:
        notes.append(
            f"all {skipped} series are too short or constant: {LEAST_POINTS} points of {named(found.step)} are needed "
            "before the first judgement; a longer --since, or a finer --step for a short recording"
        )
    elif skipped:
        notes.append(f"{judged} series judged, {skipped} not (see coverage)")
    if params.step == AUTO and (judged or skipped):
        how = "five-minute rollups" if found.step == 300 else "hourly rollups" if found.step > 300 else "rows"
        notes.append(
            f"points of {named(found.step)} from {how}, chosen by the window and the data; --step says otherwise"
        )
    if params.exclude:
        notes.append(f"{len(params.exclude)} exclusions as given; {found.taken} points of single series left out")
    if judged and found.step >= 300 and len(found.seconds) * found.step < 3 * 86400:
        notes.append("less than three days of history: no season yet, only what was never seen, levels and gaps")
    return notes
