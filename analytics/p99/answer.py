"""From frames to the answer of `analyze p99`: groups, their frames, signals, findings and notes."""

from dataclasses import asdict, replace

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.p99 import BASELINE, FRAMES, LATENCY, RATIO, SHARE, P99Params, findings, report
from analytics.p99.gather import Gathered, gather
from analytics.p99.group import Group, examine
from analytics.p99.moved import compared, of_episodes
from analytics.result import Result, Status
from store.window import Window

FITTED_GROUPS = 25
"""Groups that get a fit, the largest first; windows and signals are for all."""


def answer(inputs: Inputs, params: P99Params, window: Window) -> Result:
    """Answer over all groups. Status: empty without requests, refused where no group could be fitted."""
    gathered = gather(inputs, params)
    if not gathered.rows.height:
        notes = (*gathered.notes, f"no requests with {params.target} in {window}")
        return Result("p99", Status.EMPTY, window, asdict(params), frames.empty(params.by, FRAMES), notes=notes)
    groups = _groups(gathered, params, window)
    signals = (LATENCY, BASELINE, RATIO, SHARE)
    return Result(
        analysis="p99",
        status=Status.OK if any(group.model for group in groups) else Status.REFUSED,
        window=window,
        params=asdict(params),
        frames={name: _frame(name, groups, params, gathered) for name in FRAMES},
        samples={
            s.name: frames.samples((*params.by, *s.labels[1:]), report.samples(s, groups, params)) for s in signals
        },
        findings=tuple(finding for group in groups for finding in findings.of(group, params)),
        notes=_notes(groups, gathered),
    )


def _groups(gathered: Gathered, params: P99Params, window: Window) -> list[Group]:
    parts = frames.groups(gathered.rows, params.by)
    sizes = sorted((rows.height for _, rows in parts), reverse=True)
    least = sizes[min(FITTED_GROUPS, len(sizes)) - 1]
    found = []
    for labels, rows in parts:
        fit = not gathered.refusal and rows.height >= least
        group = examine(labels, rows, gathered.drivers, gathered.covariates, params, window, fit=fit)
        split, notes = compared(group, params, window)
        moves = of_episodes(group)
        found.append(replace(group, units=gathered.units, moves=moves, split=split, notes=(*group.notes, *notes)))
    return found


def _frame(name: str, groups: list[Group], params: P99Params, gathered: Gathered) -> pl.DataFrame:
    rows = report.ROWS[name]
    made = [group.labels | row for group in groups for row in rows(group, params, gathered.dropped)]
    return frames.build(params.by, FRAMES[name], made)


def _notes(groups: list[Group], gathered: Gathered) -> tuple[str, ...]:
    notes = [*gathered.notes, *([gathered.refusal] if gathered.refusal else [])]
    for group in groups:
        who = ", ".join(value or "(none)" for value in group.labels.values()) if len(groups) > 1 else ""
        notes += [f"{who}: {note}" if who else note for note in group.notes]
    if len(groups) > FITTED_GROUPS:
        notes.append(f"only the largest {FITTED_GROUPS} of {len(groups)} groups are fitted; narrow with --where")
    return tuple(dict.fromkeys(notes))
