"""One sentence per episode: what is unusual, against what, by how much."""

from analytics.anomalies.series import Series
from analytics.detect.episodes import Episode
from analytics.p99.words import quantity

RARE_P = 1e-3
"""Probability from which on it is worth a word."""
YEARS = 520


def reason(series: Series, episode: Episode, step_s: int) -> str:
    """Say why an episode is one."""
    return _REASONS[episode.kind](series, episode, step_s)


def amount(value: float | None, unit: str) -> str:
    """Write a value with its unit; counts without."""
    if value is None:
        return "unknown"
    if unit in ("s", "bytes", "bytes/s"):
        return quantity(value, unit)
    if unit == "ratio":
        return f"{value:.1%}"
    return f"{value:.4g} {unit}".strip()


def often(p: float, step_s: int) -> str:
    """Say how often a series would do so by itself, from the probability per point."""
    weeks = step_s / max(p, 1e-12) / 604800
    if weeks >= 2:
        return f"less than once in {weeks:.0f} weeks" if weeks < YEARS else "less than once in ten years"
    days = 7 * weeks
    return f"about once in {days:.0f} days" if days >= 1 else f"about once in {max(24 * days, step_s / 3600):.2g} h"


def _nearest(e: Episode) -> float | None:
    known = [v for v in (e.low, e.high) if v is not None and e.value is not None]
    return min(known, key=lambda v: abs(v - (e.value or 0.0)), default=None)


def _value(s: Series, e: Episode, step_s: int) -> str:
    nearest = amount(_nearest(e), s.unit)
    if e.score >= 1:
        text = f"{amount(e.value, s.unit)} is far beyond every value seen so far (the nearest: {nearest})"
    else:
        text = f"{amount(e.value, s.unit)} is {_range(e)} away from the nearest value ever seen ({nearest})"
    return f"{text}; by its own past the series is as far out {often(e.p, step_s)}" if e.p <= RARE_P else text


def _range(e: Episode) -> str:
    return f"{100 * e.score:.2g} % of the range seen so far"


def _hour(s: Series, e: Episode, step_s: int) -> str:
    del step_s
    return (
        f"{amount(e.value, s.unit)} is {_range(e)} away from the nearest value ever seen at "
        f"this hour of the day ({amount(_nearest(e), s.unit)}); at other hours it is usual"
    )


def _season(s: Series, e: Episode, step_s: int) -> str:
    text = (
        f"{amount(e.value, s.unit)} is {e.score:.3g} usual spreads from what is expected at this hour "
        f"({amount(e.low, s.unit)} to {amount(e.high, s.unit)})"
    )
    return f"{text}; by its own past the series is as far out {often(e.p, step_s)}" if e.p <= RARE_P else text


def _level(s: Series, e: Episode, step_s: int) -> str:
    del step_s
    return (
        f"the level went to {amount(e.value, s.unit)}, {e.score:.3g} usual spreads from before "
        f"({amount(e.low, s.unit)} to {amount(e.high, s.unit)}), and stayed"
    )


def _flat(s: Series, e: Episode, step_s: int) -> str:
    return (
        f"stands still at {amount(e.value, s.unit)} for over {_span(e, step_s)}; it moved at nearly every point before"
    )


def _missing(s: Series, e: Episode, step_s: int) -> str:
    del s
    return f"no values for over {_span(e, step_s)}, three times as long as any gap before"


def _span(e: Episode, step_s: int) -> str:
    seconds = e.score * step_s
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


_REASONS = {
    "value": _value, "hour": _hour, "season": _season, "level": _level, "flat": _flat, "missing": _missing,
}  # fmt: skip
