"""Differences between engines, with intervals, or in words why two groups are no comparison.

The interval of a difference comes from the limits of both values (MOVER: Zou & Donner 2008; for shares that is Newcombe
1998), the limits of a quantile from the order of the values, with the design effect of blocks of time. No bootstrap: a
million requests need only be sorted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from analytics.engines import EnginesParams
from analytics.engines.measured import FOR_MEDIAN, FOR_P99, clustering, error_share, limits

Estimate = tuple[float, float, float]
"""Value, lower and upper 95 % limit."""
COMPARED = {
    "ttft_p50_s": ("ttft_s", 0.5), "ttft_p99_s": ("ttft_s", 0.99), "tpot_p50_s": ("tpot_s", 0.5),
    "tpot_p99_s": ("tpot_s", 0.99), "e2e_p50_s": ("e2e_s", 0.5), "e2e_p99_s": ("e2e_s", 0.99),
}  # fmt: skip
LEVEL = 0.05


def differences(
    groups: Sequence[tuple[dict[str, str], pl.DataFrame, dict[str, Any]]], params: EnginesParams
) -> list[dict[str, Any]]:
    """Hold every group (labels, requests, row of `engines`) against the baseline; nothing for fewer than two."""
    if len(groups) < 2:
        return []
    base = next((g for g in groups if params.baseline and named(g[0]) == params.baseline), None)
    base = base or max(groups, key=lambda g: g[1].height)
    rows = [row for other in groups if other is not base for row in _against(base, other, params)]
    return _adjusted(rows)


def named(labels: Mapping[str, str]) -> str:
    """Name of a group: its label values."""
    return ",".join(value or "(none)" for value in labels.values()) or "all"


def _against(base: Any, other: Any, params: EnginesParams) -> list[dict[str, Any]]:
    who = {"baseline": named(base[0]), "group": named(other[0])}
    refused = unlike(base[2], other[2], params)
    sources = base[2]["ttft_source"], other[2]["ttft_source"]
    made = []
    for measure, (column, q) in COMPARED.items():
        reason = refused
        if reason is None and column == "ttft_s" and sources[0] != sources[1]:
            reason = f"no comparison: TTFT is measured by {sources[0] or 'nobody'} and by {sources[1] or 'nobody'}"
        pair = [_quantile(g[1], column, q) for g in (base, other)]
        if any(value is not None for value, _ in pair):
            made.append(who | {"measure": measure} | _difference(pair[0], pair[1], reason))
    shares = [_share(g[1]) for g in (base, other)]
    # A refused request has no length: shares of errors need only alike load.
    shares = [_share(g[1]) for g in (base, other)]
    reason = _load_unlike(base[2], other[2], params)
    return [*made, who | {"measure": "error_ratio"} | _difference(shares[0], shares[1], reason)]


def unlike(base: Mapping[str, Any], other: Mapping[str, Any], params: EnginesParams) -> str | None:
    """Say why the traffic of two groups is too different to compare their latencies; None where it is alike."""
    if base["models"] and other["models"] and base["models"] != other["models"]:
        return f"no comparison: the models are {base['models']} and {other['models']}"
    lengths = (("input_tokens", "tokens a prompt"), ("output_tokens", "tokens an answer"))
    found = [_apart(base, other, column, what, params.tokens_differ) for column, what in lengths]
    return next((reason for reason in (*found, _load_unlike(base, other, params)) if reason), None)


def _load_unlike(base: Mapping[str, Any], other: Mapping[str, Any], params: EnginesParams) -> str | None:
    return _apart(base, other, "sent_per_second", "requests sent per second", params.load_differ)


def _apart(base: Mapping[str, Any], other: Mapping[str, Any], column: str, what: str, limit: float) -> str | None:
    a, b = base[column], other[column]
    apart = a and b and max(a, b) / min(a, b) - 1 > limit
    return f"no comparison: {a:.4g} and {b:.4g} {what}" if apart else None


def _quantile(rows: pl.DataFrame, column: str, q: float) -> tuple[float | None, Estimate | None]:
    values = rows[column].drop_nulls().to_numpy()
    if values.size < (FOR_MEDIAN if q == 0.5 else FOR_P99):
        return None, None
    value, (low, high) = float(np.quantile(values, q)), limits(rows, column, q)
    return value, None if low is None or high is None else (value, low, high)


def _share(rows: pl.DataFrame) -> tuple[float | None, Estimate | None]:
    effect = clustering(rows["failed"], rows["_block"])
    found = error_share(int(rows["failed"].sum()), rows.height, effect)
    value, low, high = found["error_ratio"], found["error_low"], found["error_high"]
    return value, None if value is None or low is None or high is None else (value, low, high)


def _difference(base: Any, other: Any, reason: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {"baseline_value": base[0], "value": other[0], "verdict": reason}
    if reason is not None:
        return made
    if base[1] is None or other[1] is None:
        return made | {"verdict": "too few requests for limits of it"}
    estimate, low, high = mover(base[1], other[1])
    return made | {"estimate": estimate, "ci_low": low, "ci_high": high, "_p": p_of(estimate, low, high)}


def mover(base: Estimate, other: Estimate) -> Estimate:
    """Difference other - base and its 95 % limits from those of both (Zou & Donner 2008)."""
    (a, a_low, a_high), (b, b_low, b_high) = base, other
    return b - a, b - a - float(np.hypot(b - b_low, a_high - a)), b - a + float(np.hypot(b_high - b, a - a_low))


def p_of(estimate: float, low: float, high: float) -> float:
    """Two-sided p of no difference, from the half of the interval that looks at zero (Altman & Bland 2011)."""
    if estimate == 0:
        return 1.0
    half = estimate - low if estimate > 0 else high - estimate
    return float(2 * stats.norm.sf(abs(estimate) / half * stats.norm.isf(0.025))) if half > 0 else 0.0


def _adjusted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    tested = [row for row in rows if "_p" in row]
    if tested:
        for row, p in zip(tested, stats.false_discovery_control([row["_p"] for row in tested]), strict=True):
            way = "higher" if row["estimate"] > 0 else "lower"
            row |= {"p_adj": float(p), "verdict": way if p < LEVEL else "undecided"}
    return rows
