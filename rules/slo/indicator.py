"""What an SLO counts, in PromQL over the engines' own metrics, where they can say it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.slo.counters import Ratio, Selector
from analytics.slo.objective import Slo
from rules.pack.recorded import LEVELS, Recorded, bound_matcher

RATE = timedelta(minutes=5)
HISTOGRAMS = {
    "ttft_s": "ttft_seconds", "tpot_s": "tpot_seconds", "e2e_s": "e2e_seconds", "queue_s": "queue_seconds",
    "gap_s": "itl_seconds",
}  # fmt: skip
"""Measures of requests and the engines' histograms of them."""
FINISHED = Recorded("engine", "requests_total", "rate", RATE, by=("outcome",))
FAILED = Recorded("engine", "request_errors_total", "rate", RATE, by=("code",))
"""Engines that count failures apart from successes; an abort is the client's."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Requests per second, all and bad ones, as expressions without labels; `reads` are the recorded series in them."""

    total: str
    bad: str
    reads: tuple[Recorded, ...] = ()


def counted(slo: Slo) -> Counted | None:
    """Return what counts an SLO's requests, None where only infractl can: several limits, slices, other labels."""
    if slo.slices is not None or len(slo.limits) > 1:
        return None
    if slo.counters is not None:
        return _of_counters(slo.counters, dict(slo.where))
    if {label for label, _ in slo.where} - set(LEVELS["engine"]):
        return None
    if not slo.limits:
        return _of_errors(dict(slo.where))
    (measure, limit), *_ = slo.limits
    whole = Recorded("engine", HISTOGRAMS[measure], "rate", RATE, suffix="_count")
    within = Recorded("engine", HISTOGRAMS[measure], "rate", RATE, suffix="_bucket", limit=limit)
    total, good = (f"sum({chosen(one.name, dict(slo.where))})" for one in (whole, within))
    return Counted(total, f"clamp_min({total} - {good}, 0)", (whole, within))


def _of_errors(where: Mapping[str, str]) -> Counted:
    told = f"sum({chosen(FINISHED.name, where)})"
    apart = f"sum({chosen(FAILED.name, where, (('code', '!=', 'abort'),))})"
    bad = f"sum({chosen(FINISHED.name, {**where, 'outcome': 'error'})})"
    none = f"0 * {told}"
    return Counted(f"{told} + ({apart} or {none})", f"({bad} or {none}) + ({apart} or {none})", (FINISHED, FAILED))


def _of_counters(ratio: Ratio, where: Mapping[str, str]) -> Counted:
    """Count by counters: one of failures that is not there has counted none; one of good ones says nothing then."""
    part, total = (f"sum(rate({_selector(one, where)}[5m]))" for one in (ratio.part, ratio.whole))
    if ratio.kind == "good":
        return Counted(total, f"clamp_min({total} - {part}, 0)")
    return Counted(total, f"{part} or 0 * {total}")


def _selector(one: Selector, where: Mapping[str, str]) -> str:
    return chosen(one.name, where, one.matchers)


def chosen(name: str, where: Mapping[str, str], more: tuple[tuple[str, str, str], ...] = ()) -> str:
    """Select series by their labels."""
    matchers = [_matcher(*one) for one in (*((label, "=", value) for label, value in where.items()), *more)]
    return f"{name}{{{', '.join(matchers)}}}" if matchers else name


def _matcher(label: str, sign: str, value: str) -> str:
    if label == "le" and sign == "=" and value != "+Inf":
        return bound_matcher(float(value))
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{label}{sign}"{escaped}"'
