"""Yearly cost of both sides with intervals, and what it is sensitive to."""

import math
from decimal import Decimal
from typing import Any

import numpy as np

from analytics.whatif import NUMBERS
from analytics.whatif.scene import OF_TOKENS, Scene
from analytics.whatif.yearly import MODEL, NEEDS, TOTAL, parts, total

STEP = 0.01
TENTH = 0.1


def cents(value: float | None) -> Decimal | None:
    """Amount in whole cents; smaller ones to four digits, so that a cost per request shows."""
    if value is None or not math.isfinite(value):
        return None
    digits = 2 if abs(value) >= 100 or value == 0 else min(3 - math.floor(math.log10(abs(value))), 18)
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits))


def yearly_rows(of: Scene, currency: str) -> list[dict[str, Any]]:
    """Rows of the frame `yearly`. The total is the sum of the parts as they are shown."""
    sides = [parts(of.baseline), parts(of.scenario)]
    drawn = [parts(of.drawn[0]), parts(of.drawn[1])]
    names = [name for name in NEEDS if name in sides[0] or name in sides[1]]
    rows = [
        _row(name, [side.get(name, 0.0) for side in sides], [side.get(name, 0.0) for side in drawn]) for name in names
    ]
    whole = _row(TOTAL, [sum(side.values()) for side in sides], [sum(side.values()) for side in drawn])
    for column in ("baseline", "scenario", "difference"):
        whole[column] = sum((row[column] for row in rows), Decimal(0))
    return [row | {"currency": currency} for row in (*rows, whole)]


def _row(name: str, values: list[float], draws: list[Any]) -> dict[str, Any]:
    before, after = (cents(value) for value in values)
    assert before is not None
    assert after is not None
    row = {
        "part": name, "baseline": before, "scenario": after, "difference": after - before,
        "change": values[1] / values[0] - 1 if values[0] > 0 else None,
    }  # fmt: skip
    for what, side in zip(
        ("baseline", "scenario", "difference"), (*draws, np.subtract(draws[1], draws[0])), strict=True
    ):
        row[f"{what}_low"], row[f"{what}_high"] = (cents(limit) for limit in _limits(side))
    return row


def _limits(draws: Any) -> tuple[float | None, float | None]:
    """95 % limits; none where nothing varies, since nothing was measured with an error."""
    if np.ndim(draws) == 0:
        return None, None
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def sensitivity(of: Scene, currency: str) -> list[dict[str, Any]]:
    """Rows of the frame `sensitivity`, the most sensitive first: a tornado."""
    here = total(of.scenario)
    needed = {name for part in parts(of.scenario) for name in NEEDS[part]}
    names = [name for name in NUMBERS if name in needed and name != "base_cost"]
    if MODEL in parts(of.scenario):
        names += ["token_price", *(n for n in OF_TOKENS if of.scenario[n])] if of.tokens is not None else ["base_cost"]
    rows = []
    for name in names:
        if not of.scenario.get(name) and name != "token_price":
            continue
        up, down, more, less = (total(of.cost_at(name, 1 + step)) for step in (STEP, -STEP, TENTH, -TENTH))
        ends = (math.log(up / down) if up > 0 and down > 0 else None, math.log((1 + STEP) / (1 - STEP)))
        rows.append(
            {"input": name, "elasticity": None if ends[0] is None else ends[0] / ends[1], "currency": currency}
            | {"less": cents(less - here), "more": cents(more - here)}
        )
    return sorted(rows, key=lambda row: -max(abs(row["less"] or 0), abs(row["more"] or 0)))
