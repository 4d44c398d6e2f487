"""From frames to the answer of `analyze ab`: arms, comparisons, verdicts, signals, findings and notes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from analytics import frames
from analytics.ab import ATTAINMENT, EXCESS, FRAMES, LEAST_TAIL, P_LIVE, WORSE, AbParams
from analytics.ab.arms import VARIANT, Arm, arms, block_size, labelled, names, suggestion, words_of
from analytics.ab.compare import CALIBRATION, Comparison, Live, difference_rows, live, quantile_rows, variant_row
from analytics.ab.verdicts import adjust, live_row, overall
from analytics.analysis import Inputs
from analytics.result import Finding, Result, Status
from store.window import Window, format_time


@dataclass(frozen=True, slots=True)
class Found:
    """A variant against the baseline, within one group."""

    labels: dict[str, str]
    of: Comparison
    rows: list[dict[str, Any]]
    live: Live | None
    examples: tuple[str, ...]


def answer(inputs: Inputs, params: AbParams, window: Window) -> Result:
    """Answer over all groups. Status: empty without requests, refused where there are no two variants."""
    requests = inputs["requests"]
    rows = labelled(requests, params)
    if not rows["_y"].count():
        status, words = Status.EMPTY, f"no successful requests that state {params.target} in {window}"
        return _without(status, words, params, window)
    wanted = names(rows, params)
    pieces = _groups(rows, wanted, params)
    if not pieces:
        return _without(Status.REFUSED, _no_pair(rows, wanted, params), params, window)
    found: list[Found] = []
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in FRAMES}
    for labels, part in pieces:
        size = block_size(part)
        baseline, *others = arms(part, wanted, size)
        pairs = [arm for arm in others if baseline.values.size and arm.values.size]
        found += [_compare(labels, part, baseline, arm, params, tables) for arm in pairs]
    if not found:
        return _without(Status.REFUSED, _no_pair(rows, wanted, params), params, window)
    adjust([row for one in found for row in one.rows], params)
    for one in found:
        live_one = live_row(one.of, one.live, params)
        tables["difference"] += [one.labels | row for row in (*one.rows, live_one)]
    by = list(params.labels) if pieces[0][0] else []
    return Result(
        analysis="ab",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: frames.build(by, FRAMES[name], tables[name]) for name in FRAMES},
        samples=_samples(found, by),
        findings=tuple(made for one in found if (made := _finding(one, params)) is not None),
        notes=_notes(found, requests, rows, params),
    )


def _without(status: Status, words: str, params: AbParams, window: Window) -> Result:
    by = list(params.labels)
    return Result("ab", status, window, asdict(params), frames.empty(by, FRAMES), notes=(words,))


def _groups(rows: pl.DataFrame, wanted: Sequence[str], params: AbParams) -> list[tuple[dict[str, str], pl.DataFrame]]:
    """Return groups that hold the baseline and another variant; all as one where none does (services as variants)."""
    rows = frames.label_columns(rows, params.labels)

    def pairs(part: pl.DataFrame) -> bool:
        here = set(part.drop_nulls("_y")[VARIANT].drop_nulls().unique())
        return len(wanted) > 1 and wanted[0] in here and bool(here & set(wanted[1:]))

    found = [(labels, part) for labels, part in frames.groups(rows, params.labels) if pairs(part)]
    return found or ([({}, rows)] if pairs(rows) else [])


def _compare(
    labels: dict[str, str],
    part: pl.DataFrame,
    baseline: Arm,
    arm: Arm,
    params: AbParams,
    tables: dict[str, list[dict[str, Any]]],
) -> Found:
    of = Comparison(baseline, arm, params)
    shown = (baseline, arm) if not any(r["variant"] == baseline.name and _same(r, labels) for r in tables["variants"]) \
        else (arm,)  # fmt: skip
    tables["variants"] += [labels | variant_row(one, of) for one in shown]
    tables["quantiles"] += [labels | row for row in quantile_rows(of)]
    test = live(of)
    if test is not None:
        tables["looks"] += [
            labels
            | {
                "variant": arm.name, "ts": _time(test.at_us[i]), "n_baseline": int(test.n_a[i]),
                "n_variant": int(test.n_b[i]), "exceeds_baseline": float(test.rate_a[i]),
                "exceeds_variant": float(test.rate_b[i]), "p": float(test.p[i]),
            }
            for i in range(test.p.size)
        ]  # fmt: skip
    slow = part.filter(pl.col(VARIANT) == arm.name).sort("_y", descending=True, nulls_last=True)["trace_id"]
    return Found(labels, of, difference_rows(of), test, tuple(slow.drop_nulls().unique(maintain_order=True).head(3)))


def _same(row: dict[str, Any], labels: dict[str, str]) -> bool:
    return all(row[name] == value for name, value in labels.items())


def _excess(test: Live | None) -> float | None:
    """How much more often the tail is reached, once decided; 0 before; None where the test cannot run."""
    if test is None:
        return None
    if test.stop is None:
        return 0.0
    base, own = float(test.rate_a[-1]), float(test.rate_b[-1])
    return own / base - 1.0 if base > 0 else 1.0 if own > 0 else 0.0


def _samples(found: Sequence[Found], by: list[str]) -> dict[str, pl.DataFrame]:
    labels = [*by, *(["variant"] if "variant" not in by else [])]
    of_sla = [next((r["estimate"] for r in one.rows if r["metric"] == "sla"), None) for one in found]
    values = {
        EXCESS: [_excess(one.live) for one in found],
        P_LIVE: [float(one.live.p[-1]) if one.live is not None else None for one in found],
        ATTAINMENT: of_sla,
    }
    return {
        signal.name: frames.samples(
            labels,
            [one.labels | {"variant": one.of.b.name, "value": v} for one, v in zip(found, numbers, strict=True)],
        )
        for signal, numbers in values.items()
    }


def _finding(one: Found, params: AbParams) -> Finding | None:
    value = _excess(one.live)
    if not WORSE.holds(value) or one.live is None or one.live.stop is None or value is None:
        return None
    at, test = _time(one.live.at_us[one.live.stop]).replace(tzinfo=UTC), one.live
    where = ", ".join(one.labels.values())
    return Finding(
        trigger=WORSE.name,
        severity=WORSE.severity,
        labels=one.labels | {"variant": one.of.b.name},
        value=value,
        expected=(None, WORSE.bound),
        since=at,
        summary=(
            f"{where + ': ' if where else ''}{one.of.b.name} exceeds {test.threshold:.3g} s, the P99 of "
            f"{one.of.a.name}, in {test.rate_b[-1]:.2%} of its requests against {test.rate_a[-1]:.2%}, sure since "
            f"{format_time(at.replace(microsecond=0))} (always-valid p {test.p[-1]:.2g})"
        ),
        evidence={"trace_ids": list(one.examples), "threshold_s": test.threshold, "target": params.target},
    )


def _time(at_us: float) -> datetime:
    return datetime.fromtimestamp(int(at_us) / 1e6, UTC).replace(tzinfo=None)


def _no_pair(rows: pl.DataFrame, wanted: Sequence[str], params: AbParams) -> str:
    what = f"split {params.split}" if params.split else f"variant {params.field}"
    here = rows[VARIANT].drop_nulls().unique().sort().head(8)
    seen = ", ".join(here) or "nothing"
    asked = f" and not all of {', '.join(wanted)} together" if len(wanted) > 1 else ""
    return f"nothing to compare: by {what} these requests have {seen}{asked}; try {suggestion(rows, params)}"


def _notes(found: Sequence[Found], requests: pl.DataFrame, rows: pl.DataFrame, params: AbParams) -> tuple[str, ...]:
    share = float(requests["share_read"][0] or 1.0) if "share_read" in requests.columns else 1.0
    made = [f"{_who(one)}: {overall(one.rows, one.live, params)}" for one in found]
    made.append(words_of(block_size(rows)) + ", since requests close in time share their queue")
    if not params.limit_s:
        made.append("the SLA's limit is the baseline's own P98; --limit-s sets yours")
    if params.labels and not found[0].labels:
        made.append(f"no {' and '.join(params.labels)} has both variants: compared across them, whatever else differs")
    for one in found:
        small = min(one.of.a.values.size, one.of.b.values.size)
        if small < LEAST_TAIL:
            made.append(f"{_who(one)}: no verdict on P99 below {LEAST_TAIL:,} requests per variant (here {small:,})")
        if one.live is None:
            made.append(f"{_who(one)}: the sequential test needs {CALIBRATION + 100:,} requests of the baseline")
    if share < 1:
        made.append(f"read from {share:.1%} of the traces, chosen by their id")
    if params.split:
        made.append("before and after differ in everything that changed at that time, not only in what you changed")
    return tuple(made)


def _who(one: Found) -> str:
    prefix = ", ".join(value or "(none)" for value in one.labels.values())
    return f"{prefix + ': ' if prefix else ''}{one.of.b.name} against {one.of.a.name}"
