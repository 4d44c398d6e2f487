"""From counts to the answer of `analyze slo`: budgets, burn rates, findings, and a suggestion where there is no SLO."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.result import Finding, Result, Status
from analytics.slo import BURN, FRAMES, LEAST_LONG, LEAST_SLICES, LEFT, RULES, Rule, SloParams, beside, counters
from analytics.slo.counts import STEP, Counts, burn, burn_low, counted, groups
from analytics.slo.objective import Slo, parse
from analytics.stats.proportion import wilson
from analytics.stats.smoothed import Array
from store.window import Window, format_duration, format_time

MOST_POINTS = 500
ROUND_LIMITS = (
    0.05,
    0.1,
    0.2,
    0.3,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    7.5,
    10.0,
    15.0,
    20.0,
    30.0,
    60.0,
    120.0,
    300.0,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """One objective in one group."""

    slo: Slo
    labels: dict[str, str]
    counts: Counts
    rates: dict[str, float | None]
    since: dict[str, datetime]


def answer(inputs: Inputs, params: SloParams, window: Window) -> Result:
    """Answer for every objective. Status: empty without objectives or requests."""
    by = list(params.labels)
    if not params.slos:
        return Result("slo", Status.EMPTY, window, asdict(params), frames.empty(by, FRAMES), notes=_suggest(inputs))
    kept, silent = [], []
    for slo in map(parse, params.slos):
        found = groups(_counts(slo, inputs, by), by, window.end)
        kept += [_examine(slo, labels, counts) for labels, counts in found]
        if not found:
            silent.append(f"SLO {slo.name}: {_nothing(slo, inputs[slo.name])} ({slo.indicator}) in {window}")
    if not kept:
        return Result("slo", Status.EMPTY, window, asdict(params), frames.empty(by, FRAMES), notes=tuple(silent))
    rows = [_row(one, window) for one in kept]
    return Result(
        analysis="slo",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={
            "slos": frames.build(by, FRAMES["slos"], rows),
            "timeline": frames.build(by, FRAMES["timeline"], [row for one in kept for row in _timeline(one)]),
        },
        samples=_samples(kept, rows, by),
        findings=tuple(_finding(one, rule) for one in kept for rule in RULES if rule.trigger.holds(_rate(one, rule))),
        notes=(*silent, *_notes(kept, rows, inputs, params)),
    )


def _counts(slo: Slo, inputs: Inputs, by: Sequence[str]) -> pl.DataFrame:
    frame, requests = inputs[slo.name], inputs.get(beside(slo))
    if not frame.height and (requests is None or not requests.height):
        return pl.DataFrame(schema={"bucket": pl.Datetime("us"), "n": pl.Float64, "bad": pl.Float64})
    return counted(frame, slo, requests if requests is not None and requests.height else None, by)


def _nothing(slo: Slo, frame: pl.DataFrame) -> str:
    if slo.counters is None:
        return "no requests that count"
    return counters.unknown(frame, slo.counters) or "no counter that rose"


def _least(slo: Slo) -> int:
    return LEAST_SLICES if slo.slices else LEAST_LONG


def _examine(slo: Slo, labels: dict[str, str], counts: Counts) -> Kept:
    rates: dict[str, float | None] = {}
    since: dict[str, datetime] = {}
    for rule in RULES:
        both = _both(counts, rule, slo)
        latest = float(both[-1])
        rates[rule.signal.name] = latest if np.isfinite(latest) else None
        calm = np.flatnonzero(~(both > rule.trigger.bound))
        since[rule.signal.name] = counts.start + STEP * (int(calm[-1]) + 1 if calm.size else 0)
    return Kept(slo, labels, counts, rates, since)


def _both(counts: Counts, rule: Rule, slo: Slo) -> Array:
    """Burn rate that long and short window both show, at the end of each bucket; nan with too few requests.

    Of the long window the lower limit counts, so that chance does not alert; the short one only says that it goes on.
    """
    n, bad = counts.rolling(rule.long)
    long = np.where(n >= _least(slo), burn_low(n, bad, slo.allowed), np.nan)
    return np.asarray(np.minimum(long, burn(*counts.rolling(rule.short), slo.allowed)))


def _rate(one: Kept, rule: Rule) -> float | None:
    return one.rates[rule.signal.name]


def _row(one: Kept, window: Window) -> dict[str, Any]:
    slo, counts = one.slo, one.counts
    n, bad = counts.last(slo.over)
    low, high = (float(x) for x in wilson(n - bad, n))
    left = 1.0 - bad / (slo.allowed * n) if n else None
    rates = {name: _rate_over(counts, span, slo.allowed) for name, span in BURN.items()}
    covered = min(window.end - max(window.start, counts.start), slo.over)
    pace = rates["burn_6h"]
    spare = left * slo.over.total_seconds() / pace if left is not None and left > 0 and pace else None
    return one.labels | rates | {
        "slo": slo.name, "objective": slo.objective, "sli": (n - bad) / n if n else None, "sli_low": low,
        "sli_high": high, "budget_left": left, "bad": round(bad), "n": round(n), "indicator": slo.indicator,
        "exhausted_in_s": spare if pace is not None and pace > 1 else None, "over_s": slo.over.total_seconds(),
        "covered_s": covered.total_seconds(), "state": _state(one, n, left),
    }  # fmt: skip


def _rate_over(counts: Counts, span: timedelta, allowed: float) -> float | None:
    n, bad = counts.last(span)
    return bad / n / allowed if n else None


def _state(one: Kept, n: float, left: float | None) -> str:
    if any(rule.trigger.holds(_rate(one, rule)) for rule in RULES):
        return "burning"
    if n < _least(one.slo):
        return f"no verdict below {_least(one.slo)} {one.slo.counted}"
    return "overspent" if left is not None and left < 0 else "ok"


def _timeline(one: Kept) -> list[dict[str, Any]]:
    """Return at most 500 points; longer spans are shown in wider steps."""
    counts, allowed = one.counts, one.slo.allowed
    wide = -(-counts.buckets // MOST_POINTS)
    hour = burn(*counts.rolling(timedelta(hours=1)), allowed)
    total, lost = counts.rolling(one.slo.over)
    left = 1.0 - burn(total, lost, allowed)
    ends = np.unique(np.append(np.arange(wide, counts.buckets + 1, wide), counts.buckets))
    begins = np.concatenate([[0], ends[:-1]])
    return [
        one.labels
        | {
            "slo": one.slo.name, "ts": (counts.start + STEP * int(a)).replace(tzinfo=None),
            "n": int(counts.n[b] - counts.n[a]), "bad": int(counts.bad[b] - counts.bad[a]),
            "burn_1h": float(hour[b - 1]), "budget_left": float(left[b - 1]),
        }
        for a, b in zip(begins, ends, strict=True)
    ]  # fmt: skip


def _samples(kept: Sequence[Kept], rows: Sequence[dict[str, Any]], by: list[str]) -> dict[str, pl.DataFrame]:
    labels = [*by, "slo"]
    left: list[dict[str, Any]] = [
        one.labels | {"slo": one.slo.name, "value": row["budget_left"]} for one, row in zip(kept, rows, strict=True)
    ]
    made = {LEFT.name: frames.samples(labels, left)}
    for rule in RULES:
        values: list[dict[str, Any]] = [one.labels | {"slo": one.slo.name, "value": _rate(one, rule)} for one in kept]
        made[rule.signal.name] = frames.samples(labels, values)
    return made


def _finding(one: Kept, rule: Rule) -> Finding:
    slo, since = one.slo, one.since[rule.signal.name]
    n, bad = one.counts.last(rule.long)
    spent = bad / (slo.allowed * one.counts.last(slo.over)[0])
    where = f" ({', '.join(one.labels.values())})" if one.labels else ""
    return Finding(
        trigger=rule.trigger.name,
        severity=rule.trigger.severity,
        labels=one.labels | {"slo": slo.name},
        value=_rate(one, rule),
        expected=(0.0, rule.trigger.bound),
        since=since,
        summary=(
            f"SLO {slo.name}{where}: {bad:,.0f} of {n:,.0f} {slo.counted} in {format_duration(rule.long)} were "
            f"{_broken(slo)}, since {format_time(since)}; {slo.allowed:.3g} is "
            f"allowed, this is at least {_rate(one, rule):.1f} times as much"
        ),
        evidence={
            "indicator": slo.indicator, "objective": slo.objective, "budget_spent_ratio": spent,
            "where": dict(slo.where), "next": "infractl analyze p99, infractl analyze errors",
        },
    )  # fmt: skip


def _broken(slo: Slo) -> str:
    if slo.counters is not None or slo.slices is not None:
        return f"bad ({slo.indicator})"
    return f"not {slo.indicator}" if slo.limits else "not free of errors"


def _notes(kept: Sequence[Kept], rows: Sequence[dict[str, Any]], inputs: Inputs, params: SloParams) -> tuple[str, ...]:
    made = []
    for one, row in zip(kept, rows, strict=True):
        who = ", ".join([one.slo.name, *one.labels.values()])
        if row["covered_s"] < 0.95 * row["over_s"]:
            covered = format_duration(timedelta(seconds=round(row["covered_s"])))
            made.append(f"{who}: the budget is for {format_duration(one.slo.over)}, requests are known for {covered}")
        if one.slo.counters is not None and (gone := counters.unknown(inputs[one.slo.name], one.slo.counters)):
            made.append(f"{who}: {gone}; a counter appears with its first event, so none was bad")
        if one.counts.last(timedelta(hours=1))[0] < _least(one.slo):
            made.append(f"{who}: no fast alert below {_least(one.slo)} {one.slo.counted} in 1h")
        share = inputs[one.slo.name]
        if "share_read" in share.columns and float(share["share_read"].min() or 1.0) < 1:  # type: ignore[arg-type]
            made.append(f"{who}: counted in {float(share['share_read'].min()):.1%} of the traces")  # type: ignore[arg-type]
    by_request = [one.slo for one in kept if one.slo.counters is None]
    if any(not slo.limits or "ts" in inputs[slo.name].columns for slo in by_request):
        made.append("a request that failed is bad")
    rolled = dict.fromkeys(slo for slo in by_request if slo.limits and "ts" not in inputs[slo.name].columns)
    if rolled:
        made.append("of one limit, requests count that state the measure; limits are exact within 1 % (rollups)")
    for slo in rolled:
        made += _stating_none(slo, inputs)
    dropped = [name for name in params.by if name not in params.labels]
    if dropped:
        made.append(f"budgets cannot be kept by {', '.join(dropped)}: rollups do not know it")
    made.append("windows are whole buckets of 5m and reach up to 5m further back")
    return tuple(made)


def _stating_none(slo: Slo, inputs: Inputs) -> list[str]:
    """How many requests state no latency, and what became of them."""
    requests = inputs.get(beside(slo))
    if requests is None or not requests.height:
        return []
    found = counted(inputs[slo.name], replace(slo, slices=None), requests)
    failed, silent = (int(found[name].sum()) for name in ("failed", "silent"))
    if not failed + silent:
        return []
    none = f"{slo.name}: {failed + silent:,} requests state no {slo.measures[0]}"
    return [f"{none}: {failed:,} of them failed and are bad, {silent:,} do not count"]


def _suggest(inputs: Inputs) -> tuple[str, ...]:
    """How to add an SLO, with one that the stored requests would keep."""
    how = (
        "no SLOs: add a section slos to infractl.yaml (docs/configuration.md), or "
        "--slos 'NAME: ttft_s<=2 @0.99 over 30d'"
    )
    rows = inputs["suggest"].filter(pl.col("n") >= LEAST_LONG).sort("n", descending=True)
    made = [how]
    for row in rows.head(3).iter_rows(named=True):
        limit = next((x for x in ROUND_LIMITS if row["p95"] is not None and x >= row["p95"]), None)
        if limit is not None:
            service = row["service"] or "(none)"
            slo = Slo(f"{service}-{row['measure'].removesuffix('_s')}", ((row["measure"], limit),), 0.95,
                      where=(("service", service),) if row["service"] else ())  # fmt: skip
            made.append(
                f"{row['n']:,} requests here have P95 {row['p95']:.3g} s, and would keep: --slos '{slo.text()}'"
            )
    if len(made) == 1:
        made.append("too few requests here to suggest one")
    return tuple(made)
