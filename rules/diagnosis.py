"""What a finding's evidence says, in one short text: what a person woken by an alert would look up first.

The parts, in order of use: the band that was expected, what drives it, what else moved, and traces to open.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from analytics.result import Finding

MOST = 499
"""Characters; longer texts are cut by pagers and chats."""
FEW, TRACES = 3, 3
SHOWN = 60
"""Of one name."""

Evidence = Mapping[str, Any]


def diagnosis(analysis: str, finding: Finding, dashboard_url: str) -> str:
    """Return the text; where it would be too long, whole parts are left out, those of least use first."""
    text = f"Ask why with: infractl analyze {analysis}"
    parts = [f"{part}." for part in _parts(finding, dashboard_url)]
    kept: list[str] = []
    for part in parts:
        if len(" ".join((*kept, part, text))) <= MOST:
            kept.append(part)
    return " ".join((*kept, text))


def _parts(finding: Finding, dashboard_url: str) -> Iterator[str]:
    evidence = finding.evidence
    yield from _expected(finding)
    yield from (part for part in (_driven(evidence), _spent(evidence), _moved(evidence), _codes(evidence)) if part)
    given = evidence.get("trace_ids")
    traces = [one for one in (given if isinstance(given, list | tuple) else ()) if one and isinstance(one, str)][
        :TRACES
    ]
    if traces:
        base = dashboard_url.rstrip("/")
        yield "Traces: " + " ".join(f"{base}/trace/{quote(one, safe='')}" for one in traces)


def _expected(finding: Finding) -> Iterator[str]:
    series = _rows(finding.evidence.get("series"))
    for one in series[:2]:
        name, band = _cut(str(one.get("series"))), _band(one.get("low"), one.get("high"))
        if band and _number(one.get("value")):
            yield f"{name} is {_number(one.get('value'))}, expected {band}"
    value, band = _number(finding.value), _band(*finding.expected)
    if not series and value and band:
        yield f"Value {value}, expected {band}"


def _driven(evidence: Evidence) -> str:
    """Name the drivers with the largest shares of what is explained: associated, not proven causes."""
    for rows, name in (("drivers", "driver"), ("causes", "cause")):
        shares = [
            (float(one["share"]), one.get(name)) for one in _rows(evidence.get(rows)) if _number(one.get("share"))
        ]
        first = sorted((pair for pair in shares if pair[0] > 0), key=lambda pair: -pair[0])[:FEW]
        if first:
            return f"Associated with: {', '.join(f'{_cut(str(who))} {share:.0%}' for share, who in first)}"
    return ""


def _spent(evidence: Evidence) -> str:
    rows = _rows(evidence.get("explained")) or _rows(evidence.get("most_spent_on"))
    said = [f"{_cut(str(one.get('item')))} {one.get('total', one.get('cost'))}" for one in rows[:FEW]]
    return f"Most on: {', '.join(said)}" if said else ""


def _moved(evidence: Evidence) -> str:
    most, moved = evidence.get("moved_most"), evidence.get("moved")
    if isinstance(most, Mapping) and most.get("driver"):
        inside, outside = (_number(most.get(name)) for name in ("driver_inside", "driver_outside"))
        change = f" ({outside} to {inside})" if inside and outside else ""
        return f"Moved most: {_cut(str(most['driver']))}{change}"
    names = list(map(str, moved)) if isinstance(moved, Mapping) else [str(one.get("name")) for one in _rows(moved)]
    return f"Also moved: {', '.join(map(_cut, names[:FEW]))}" if names else ""


def _codes(evidence: Evidence) -> str:
    codes = [(str(one.get("error_code") or "no code"), one.get("n")) for one in _rows(evidence.get("error_codes"))]
    return f"Errors: {', '.join(f'{_cut(code)} ({n})' for code, n in codes[:FEW])}" if codes else ""


def _rows(value: object) -> Sequence[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else ()


def _band(low: object, high: object) -> str:
    first, last = _number(low), _number(high)
    if first and last:
        return first if first == last else f"{first} to {last}"
    return f"at least {first}" if first else f"at most {last}" if last else ""


def _number(value: object) -> str:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return f"{value:.4g}" if known else ""


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
