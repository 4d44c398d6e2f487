"""One sentence per episode: what is unusual, against what, by how much."""

from analytics.anomalies.series import Series
from analytics.anomalies.values import Usual
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
        return f"{value:.1%}" if value == 0 or abs(value) >= 0.001 else f"{value:.2%}"
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


def sentence(series: Series, episode: Episode, step_s: int, who: str, usual: Usual, *, lasts: bool) -> tuple[str, str]:
    """Say what a series is or was and what is usual at that hour; and why that is unusual, where not the same."""
    if episode.kind not in _AGAINST:
        colon = ":" if episode.kind in ("level", "missing") else ""
        return f"{series.name} of {who}{colon} {reason(series, episode, step_s)}", ""
    why = _AGAINST[episode.kind](series, episode, step_s)
    now = f"{series.name} of {who} {'is' if lasts else 'was'} {amount(episode.value, series.unit)}"
    band = usual.at(episode)
    if band is None:
        return now, why
    hour = " at this hour" if usual.by_hour(episode) else ""
    return f"{now}, usually {amount(band[0], series.unit)} to {amount(band[1], series.unit)}{hour}", why


def _value(s: Series, e: Episode, step_s: int) -> str:
    return f"{amount(e.value, s.unit)} is {_value_why(s, e, step_s)}"


def _value_why(s: Series, e: Episode, step_s: int) -> str:
    nearest = amount(_nearest(e), s.unit)
    far = "far beyond every value seen so far" if e.score >= 1 else f"{_range(e)} away from every value seen so far"
    return f"{far} (the nearest: {nearest}){_rare(e, step_s)}"


def _rare(e: Episode, step_s: int) -> str:
    return f"; by its own past the series is as far out {often(e.p, step_s)}" if e.p <= RARE_P else ""


def _range(e: Episode) -> str:
    return f"{100 * e.score:.2g} % of the range seen so far"


def _hour(s: Series, e: Episode, step_s: int) -> str:
    return f"{amount(e.value, s.unit)} is {_hour_why(s, e, step_s)}"


def _hour_why(s: Series, e: Episode, step_s: int) -> str:
    del step_s
    return (
        f"{_range(e)} away from the nearest value ever seen at this hour of the day "
        f"({amount(_nearest(e), s.unit)}); at other hours it is usual"
    )


def _season(s: Series, e: Episode, step_s: int) -> str:
    band = f"({amount(e.low, s.unit)} to {amount(e.high, s.unit)})"
    return f"{amount(e.value, s.unit)} is {e.score:.3g} usual spreads from what is expected {band}{_rare(e, step_s)}"


def _season_why(s: Series, e: Episode, step_s: int) -> str:
    del s
    return f"{e.score:.3g} usual spreads from what is expected{_rare(e, step_s)}"


def _drift(s: Series, e: Episode, step_s: int) -> str:
    start = ((e.low or 0.0) + (e.high or 0.0)) / 2
    days = (e.last - e.first + 1) * step_s / 86400
    change = f" ({(e.value - start) / abs(start):+.0%})" if e.value is not None and start else ""
    return (
        f"went from {amount(start, s.unit)} to {amount(e.value, s.unit)}{change} in {days:.1f} days, "
        f"{e.score:.3g} times what the rhythm of the day and chance leave"
    )


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
    "value": _value, "hour": _hour, "season": _season, "level": _level, "drift": _drift, "flat": _flat,
    "missing": _missing,
}  # fmt: skip
_AGAINST = {"value": _value_why, "hour": _hour_why, "season": _season_why}
