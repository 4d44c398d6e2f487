"""What the numbers rest on, and what could not be told, in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from analytics.analysis import Inputs
from analytics.latency.segments import LEAST_FOR_P99, LEAST_FOR_SHARES
from analytics.latency.units import Units
from store.window import Window

_DOUBTS = {
    "orphans": "spans name a parent that is not among the rows",
    "adopted": "of them lie within the root of their trace and count below it",
    "skewed": "spans were moved into their parent: the clocks of two services disagree",
    "open": "spans without an end are left out; their children count below the next span up",
    "circles": "spans have parents in a circle and count as roots",
    "deep": "spans lie deeper than any service nests and are left out",
}


def notes(
    inputs: Inputs,
    units: Units,
    doubts: Counter[str],
    outlived: int,
    groups: Sequence[tuple[Mapping[str, str], pl.DataFrame, Any]],
    made: Mapping[str, pl.DataFrame],
    window: Window,
) -> tuple[str, ...]:
    """Say all of it; a window without anything says so first."""
    found = []
    if not units.rows.height:
        found.append(f"no finished requests with a time in {window}")
    found += _left_out(units)
    found += [f"{doubts[name]} {text}" for name, text in _DOUBTS.items() if doubts[name]]
    if outlived:
        found.append(f"{outlived} spans outlive their parent, so nobody waited for them: not on the critical path")
    found += _shares(inputs)
    found += _groups(groups)
    if not made["engine_stages"].height and not units.rows.height:
        found.append("no histograms of engine stages either")
    return tuple(found)


def _left_out(units: Units) -> list[str]:
    made = [f"{units.failed} failed requests are left out of the segments"] if units.failed else []
    return [*made, *([f"{units.untimed} requests without an end-to-end time are left out"] if units.untimed else [])]


def _shares(inputs: Inputs) -> list[str]:
    share = share_read(inputs)
    return [f"{share:.2%} of the traces were read (--at-most), chosen at random"] if share < 1 else []


def share_read(inputs: Inputs) -> float:
    """Return which share of the traces was read with all that is known of them."""
    shares = [inputs[name]["share_read"].min() for name in ("requests", "spans") if inputs[name].height]
    return min([share for share in shares if isinstance(share, float)], default=1.0)


def _groups(groups: Sequence[tuple[Mapping[str, str], pl.DataFrame, Any]]) -> list[str]:
    made = []
    for labels, rows, tail in groups:
        who = ", ".join(value or "(none)" for value in labels.values()) or "all"
        if float(rows["other"].sum()) >= 0.999 * float(rows["e2e_s"].sum()) > 0:
            made.append(f"{who}: nothing says how its requests spend their time (no engine spans, stages or probes)")
        if tail is None:
            made.append(f"{who}: {rows.height} requests; shares of the tail need {LEAST_FOR_SHARES}")
        elif rows.height < LEAST_FOR_P99:
            made.append(f"{who}: {rows.height} requests; a P99 needs {LEAST_FOR_P99}, the tail is the slowest {tail.n}")
        unlike = rows.filter(pl.col("queue").is_null() & pl.col("prefill").is_null()).height
        if unlike and unlike < rows.height:
            made.append(f"{who}: {unlike} of {rows.height} requests have no engine's view: first_token is undivided")
        over = rows.filter(_sum() > pl.col("e2e_s") * 1.01 + 0.001).height
        if over:
            made.append(f"{who}: in {over} requests the segments exceed the whole by over 1 %: shrunk for the shares")
    return made


def _sum() -> pl.Expr:
    from analytics.latency.names import SEGMENTS

    return pl.sum_horizontal(pl.col(s).fill_null(0.0) for s in SEGMENTS)
