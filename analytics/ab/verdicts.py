"""Verdicts in words: a difference must be sure and worth it, and the tail is judged beside the body."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analytics.ab import LEAST_TAIL, AbParams
from analytics.ab.compare import ALPHA, Comparison, Live

NOT_FINAL = "not final"
_UP = {"sla": ("more within the limit", "fewer within the limit"), "error_ratio": ("more errors", "fewer errors")}


def adjust(rows: Sequence[dict[str, Any]], params: AbParams) -> None:
    """Add adjusted p-values (Benjamini & Hochberg 1995) over all comparisons, and verdicts."""
    from scipy.stats import false_discovery_control

    tested = [row for row in rows if row.get("p") is not None]
    if tested:
        for row, p in zip(tested, false_discovery_control([row["p"] for row in tested]), strict=True):
            row["p_adj"] = float(p)
    for row in rows:
        row["verdict"] = verdict(row, params)


def verdict(row: dict[str, Any], params: AbParams) -> str:
    """Say what one comparison shows. Sure: adjusted p at most .05; worth it: at least the minimum effect."""
    if row.get("p_adj") is None:
        return f"no verdict: fewer than {LEAST_TAIL:,} requests per variant" if row["metric"] == "p99_s" else (
            "no verdict: too few requests")  # fmt: skip
    if params.mode == "live":
        return f"{NOT_FINAL}: the sequential test decides while the experiment runs"
    # A share is compared in points: 5 % of an attainment of .98 would be five points
    share = row["metric"] in _UP
    scale = 1.0 - row["_base"] if row["metric"] == "sla" else row["_base"]
    least = params.min_effect * abs(scale)
    up, down = _UP.get(row["metric"], ("slower", "faster"))
    if row["p_adj"] <= ALPHA:
        size = f"{row['estimate'] * 100:+.2f} points" if share else f"{row['relative'] or 0:+.1%}"
        if abs(row["estimate"]) >= least:
            return f"{up if row['estimate'] > 0 else down} ({size})"
        return f"differs by less than the minimum effect ({size})"
    if least > 0 and -least < row["ci_low"] and row["ci_high"] < least:
        return f"alike within {params.min_effect:.0%}"
    seen = row.get("detectable")
    if not seen:
        return "no difference shown"
    return (
        f"no difference shown; {seen:.0%} would be"
        if seen < 1
        else "no difference shown; not even a twofold one would be"
    )


def live_row(of: Comparison, test: Live | None, params: AbParams) -> dict[str, Any]:
    """Row tail_live of frame `difference`."""
    row: dict[str, Any] = {"variant": of.b.name, "metric": "tail_live"}
    if test is None:
        return row | {"verdict": "no verdict: too few requests for the sequential test"}
    a, b = float(test.rate_a[-1]), float(test.rate_b[-1])
    if not (np.isfinite(a) and np.isfinite(b)):
        return row | {"verdict": "no verdict: an arm has no requests after the threshold was set"}
    row |= {"estimate": b - a, "relative": (b - a) / a if a else None, "p": float(test.p[-1])}
    if test.stop is None:
        return row | {"verdict": "undecided: look again, as often as you like"}
    size = (b - a) / a if a else float("inf")
    if abs(size) < params.min_effect:
        return row | {"verdict": "decided: differs by less than the minimum effect"}
    return row | {"verdict": f"decided: tail {'worse' if b > a else 'better'} ({b:.2%} against {a:.2%} beyond it)"}


def overall(rows: Sequence[dict[str, Any]], test: Live | None, params: AbParams) -> str:
    """One sentence for a pair: body and tail together, since a test of the body misses what only the tail shows."""
    if params.mode == "live":
        decided = test is not None and test.stop is not None
        return "the sequential test has decided" if decided else "undecided while it runs"
    by_name = {row["metric"]: row["verdict"] for row in rows}
    return "; ".join(
        f"{words} {by_name[name]}"
        for name, words in (("p50_s", "median"), ("p99_s", "P99"), ("sla", "SLA:"), ("error_ratio", "errors:"))
        if name in by_name
    )
