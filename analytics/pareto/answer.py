"""From configurations to the answer of `analyze pareto`: the front, what it dominates, and what rests on noise."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics import frames
from analytics.analysis import Inputs
from analytics.pareto import FRAMES, SHARE, ParetoParams, load_tests, measured
from analytics.pareto.front import Array, contributions, dominators, hypervolume, on_front, worst_by
from analytics.pareto.measured import KNOWN, Configuration
from analytics.pareto.objectives import Objective
from analytics.result import Result, Status
from store.errors import UsageError
from store.window import Window

BEYOND = 0.1
"""Share by which the reference lies beyond the worst value, so that the outermost points count too."""
SURE = 0.95
VOLUMES = 100
"""Draws of which the hypervolume is computed."""
Mask = NDArray[np.bool_]
COLUMNS = ("first", "second", "third")
ON_FRONT, BEATEN, UNSURE, NO_NOISE = (
    "on the front", "beaten", "chance could decide otherwise", "no measure of noise"
)  # fmt: skip


def answer(inputs: Inputs, params: ParetoParams, window: Window) -> Result:
    """Answer. Status: empty without any configuration, refused where none has all objectives and enough requests."""
    objectives = params.asked
    by = [] if params.points else list(params.by)
    found = _found(inputs, params, objectives)
    kept = [one for one in found if None not in one.values and (one.n is None or one.n >= _least(one, params))]
    notes = _left_out(found, kept, params, objectives)
    if not kept:
        status = Status.REFUSED if found else Status.EMPTY
        said = notes or (f"no requests and no load tests in {window}",)
        return Result("pareto", status, window, asdict(params), frames.empty(by, FRAMES), notes=said)
    signs = np.array([one.sign for one in objectives])
    points = np.array([one.values for one in kept], dtype=np.float64) * signs
    front = on_front(points)
    shares = _shares(kept, signs)
    reference = _reference(params, points, signs)
    rows = [_row(one, objectives, share) for one, share in zip(kept, shares, strict=True)]
    return Result(
        analysis="pareto",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={
            "front": frames.build(by, FRAMES["front"], _front_rows(rows, points, front, reference)),
            "dominated": frames.build(by, FRAMES["dominated"], _dominated_rows(rows, kept, points, front)),
            "hypervolume": frames.build(
                [], FRAMES["hypervolume"], [_volume_row(params, kept, points, front, reference, signs)]
            ),
        },
        samples={SHARE.name: frames.samples([*by, *SHARE.labels], _samples(kept, shares))},
        notes=(*notes, *_notes(kept, params)),
    )


def _found(inputs: Inputs, params: ParetoParams, objectives: Sequence[Objective]) -> list[Configuration]:
    names = [one.name for one in objectives]
    if params.points:
        return [_given(text, len(names)) for text in params.points]
    by, found = list(params.by), []
    if "requests" in inputs and inputs["requests"].height:
        found = measured.configurations(inputs["requests"], inputs.get("prices"), by, names, params.draws)
    enough = any(None not in one.values and (one.n or 0) >= params.least for one in found)
    if "benchmarks" in inputs and inputs["benchmarks"].height and not enough:
        found += load_tests.configurations(inputs["benchmarks"], by, names)
    return found


def _given(text: str, size: int) -> Configuration:
    name, *values = text.rsplit(":", size)
    try:
        numbers = tuple(float(value) for value in values)
    except ValueError:
        numbers = ()
    if len(numbers) != size or not name.strip() or not np.isfinite(numbers).all():
        raise UsageError(f"{text!r} is no point", f"write name and {size} values, like a:4.2:187")
    return Configuration({}, name.strip(), "given", None, numbers)


def _least(one: Configuration, params: ParetoParams) -> int:
    return params.least if one.source == "requests" else 0


def _reference(params: ParetoParams, points: Array, signs: Array) -> Array:
    if not params.reference:
        return worst_by(points, BEYOND)
    try:
        numbers = np.array([float(text) for text in params.reference])
    except ValueError:
        numbers = np.empty(0)
    if numbers.size != signs.size or not np.isfinite(numbers).all():
        raise UsageError(f"{','.join(params.reference)!r} is no reference", f"give {signs.size} numbers")
    return np.asarray(numbers * signs)


def _shares(kept: Sequence[Configuration], signs: Array) -> list[float | None]:
    """Return how often each is on the front when all values are drawn anew; None where one has no draws."""
    drawn = [one.draws for one in kept]
    if len(kept) < 2 or any(draw is None for draw in drawn):
        return [None] * len(kept)
    every = np.stack([draw for draw in drawn if draw is not None], axis=1) * signs
    counts = np.sum([on_front(one) for one in every], axis=0)
    return [float(count) / len(every) for count in counts]


def _row(one: Configuration, objectives: Sequence[Objective], share: float | None) -> dict[str, Any]:
    words = ", ".join(f"{o.name} {v:.6g}" for o, v in zip(objectives, one.values, strict=True) if v is not None)
    return {
        **one.labels, **dict(zip(COLUMNS, one.values, strict=False)), "configuration": one.name, "values": words,
        "n": one.n, "source": one.source, "front_share": share,
    }  # fmt: skip


def _front_rows(rows: Sequence[dict[str, Any]], points: Array, front: Mask, reference: Array) -> list[dict[str, Any]]:
    at = np.flatnonzero(front)
    whole = hypervolume(points, reference)
    lost = contributions(points[at], reference)
    made = []
    for i, amount in zip(at.tolist(), lost.tolist(), strict=True):
        same = [rows[j]["configuration"] for j in at.tolist() if j != i and (points[j] == points[i]).all()]
        share = rows[i]["front_share"]
        verdict = NO_NOISE if share is None else ON_FRONT if share >= SURE else UNSURE
        made.append(
            rows[i]
            | {
                "contribution": amount / whole if whole > 0 else None,
                "tied_with": ", ".join(same) or None,
                "verdict": verdict,
            }
        )
    return sorted(made, key=lambda row: row["first"])


def _dominated_rows(
    rows: Sequence[dict[str, Any]], kept: Sequence[Configuration], points: Array, front: Mask
) -> list[dict[str, Any]]:
    made = []
    for i in np.flatnonzero(~front).tolist():
        # Of those that beat it the one that lies on the front itself is worth naming.
        by = next(j for j in dominators(points, i) if front[j])
        share = rows[i]["front_share"]
        verdict = NO_NOISE if share is None else BEATEN if share <= 1 - SURE else UNSURE
        made.append(rows[i] | {"dominated_by": kept[by].name, "verdict": verdict})
    return sorted(made, key=lambda row: row["first"])


def _volume_row(
    params: ParetoParams, kept: Sequence[Configuration], points: Array, front: Mask, reference: Array,
    signs: Array,
) -> dict[str, Any]:  # fmt: skip
    whole = hypervolume(points, reference)
    box = float(np.prod(reference - points.min(axis=0)))
    low = high = None
    draws = [one.draws[:VOLUMES] for one in kept if one.draws is not None]
    if len(draws) == len(kept):
        volumes = [hypervolume(one, reference) for one in np.stack(draws, axis=1) * signs]
        low, high = (float(x) for x in np.quantile(volumes, [0.025, 0.975]))
    return {
        "objectives": ", ".join(one.text for one in params.asked),
        "reference": ", ".join(f"{x:.6g}" for x in (reference * signs).tolist()),
        "reference_is": "given" if params.reference else "the worst value by 10 %",
        "hypervolume": whole, "low": low, "high": high, "share": whole / box if box > 0 else None,
        "on_front": int(front.sum()), "compared": len(kept),
    }  # fmt: skip


def _samples(kept: Sequence[Configuration], shares: Sequence[float | None]) -> list[dict[str, Any]]:
    return [
        {**one.labels, "configuration": one.name, "value": share}
        for one, share in zip(kept, shares, strict=True)
        if share is not None
    ]


def _left_out(
    found: Sequence[Configuration], kept: Sequence[Configuration], params: ParetoParams, objectives: Sequence[Objective]
) -> tuple[str, ...]:
    said = []
    for one in found:
        missing = [o.name for o, value in zip(objectives, one.values, strict=True) if value is None]
        if one in kept:
            continue
        if one.n is not None and one.n < _least(one, params):
            said.append(f"{one.name}: {one.n} of {params.least} requests, left out")
        else:
            said.append(f"{one.name}: no {', no '.join(missing)}, left out")
    for k, objective in enumerate(objectives):
        if found and all(one.values[k] is None for one in found):
            said.append(f"{objective.name} is not measured anywhere; of requests there are {', '.join(KNOWN)}")
    return (*said[:20], *([f"{len(said) - 20} more are left out"] if len(said) > 20 else []))


def _notes(kept: Sequence[Configuration], params: ParetoParams) -> list[str]:
    said = []
    if len(kept) == 1:
        said.append("one configuration: there is nothing to compare it with")
    if any(one.draws is not None for one in kept):
        said.append("draws take requests as independent of each other and objectives as independent of one another")
        if any(name.startswith("throughput_") for name in params.objectives):
            said.append("throughput of requests is what was asked for, not what a configuration could do")
    if {one.source for one in kept} == {"requests", "load test"}:
        said.append("requests and load tests are compared: they saw different loads")
    return said
