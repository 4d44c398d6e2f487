"""A service level objective as one line of text: `chat-ttft: ttft_s<=2 @0.99 over 30d where service=chat`.

With slices, time counts instead of requests: `ttft_s<=2 in 95% of requests per 5m @0.99`: in 99 % of the five minutes
95 % of the requests are good; `ttft_s<=2 per 5m @0.99`: the mean over five minutes of their shares of good ones.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from analytics.slo.counters import Ratio, ratio
from store.errors import UsageError
from store.query import Where
from store.window import format_duration, parse_duration

MEASURES = ("ttft_s", "e2e_s", "tpot_s", "queue_s", "gap_s")
GRAMMAR = (
    "NAME: INDICATOR [[in SHARE of requests] per DURATION] @OBJECTIVE [over DURATION] [where K=V [and K=V]]; "
    "INDICATOR: errors, ttft_s<=2 & tpot_s<=0.1, or bad COUNTER{…} / COUNTER"
)
_LINE = re.compile(
    r"(?P<name>[^:]+):\s*(?P<sli>[^@]+?)\s*@\s*(?P<objective>\S+)(?:\s+over\s+(?P<over>\S+))?"
    r"(?:\s+where\s+(?P<where>.+))?\s*"
)
_LIMIT = re.compile(r"(?P<measure>\w+)\s*<=?\s*(?P<limit>[0-9.eE+-]+)\s*(?P<unit>ms|s)?")
_SAME = {"itl_s": "tpot_s", "latency_s": "e2e_s", "duration_s": "e2e_s"}
_SLICES = re.compile(r"(?P<sli>.+?)(?:\s+in\s+(?P<share>\S+)\s+of\s+requests)?\s+per\s+(?P<width>\d+[mh])")
MONTH = timedelta(days=30)
BUCKET = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Slices:
    """Time counts instead of requests: a slice of `width` is good where `share` of its requests are.

    Without a share, a slice counts by its own share of good requests.
    """

    width: timedelta
    share: float | None = None

    def text(self) -> str:
        """Write what `slices` reads."""
        inside = "" if self.share is None else f" in {self.share!r} of requests"
        return f"{inside} per {format_duration(self.width)}"


@dataclass(frozen=True, slots=True)
class Slo:
    """An objective. `limits` are (measure, seconds) that a good request keeps, all of them; none: it did not fail."""

    name: str
    limits: tuple[tuple[str, float], ...]
    objective: float
    over: timedelta = MONTH
    where: Where = ()
    counters: Ratio | None = None
    slices: Slices | None = None

    @property
    def measures(self) -> tuple[str, ...]:
        """Span columns the limits are about."""
        return tuple(measure for measure, _ in self.limits)

    @property
    def allowed(self) -> float:
        """Share that may be bad."""
        return 1.0 - self.objective

    @property
    def indicator(self) -> str:
        """What makes a request good, in the words of `parse`."""
        good = " & ".join(f"{m}<={limit:g}" for m, limit in self.limits) or "errors"
        good = self.counters.text() if self.counters else good
        return good + (self.slices.text() if self.slices else "")

    @property
    def counted(self) -> str:
        """What is counted: requests or slices of time."""
        return "slices of time" if self.slices else "requests"

    def text(self) -> str:
        """Write the line that `parse` reads."""
        where = " and ".join(f"{k}={v}" for k, v in self.where)
        tail = f" where {where}" if where else ""
        return f"{self.name}: {self.indicator} @{self.objective!r} over {format_duration(self.over)}{tail}"


def parse(text: str) -> Slo:
    """Read one objective. Raises UsageError that names what is wrong."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"SLO {text!r} cannot be read", GRAMMAR)
    over = parse_duration(found["over"]) if found["over"] else MONTH
    if over < timedelta(hours=1):
        raise UsageError(f"SLO {found['name']!r}: over cannot be {found['over']!r}", "at least 1h")
    return of_parts(found["name"].strip(), found["sli"], objective(found["objective"]), over, _where(found["where"]))


def of_parts(name: str, sli: str, target: float, over: timedelta, where: Where) -> Slo:
    """Make an objective of an indicator as text. Raises UsageError that names what is wrong."""
    sli, by_time = slices(sli)
    of = ratio(sli)
    if of is not None and where and not all(key in ("service", "instance", "job") for key, _ in where):
        raise UsageError(f"SLO {name!r}: counters are chosen by their selectors", "move the labels from where into {}")
    return Slo(name, () if of else indicator(sli), target, over, where, of, by_time)


def slices(text: str) -> tuple[str, Slices | None]:
    """Split an indicator from the slices of time it is judged in."""
    found = _SLICES.fullmatch(text.strip())
    if found is None:
        return text, None
    width = parse_duration(found["width"])
    if width < BUCKET or width % BUCKET:
        raise UsageError(f"slices cannot be {found['width']}", "requests are counted in 5m: give a multiple of that")
    return found["sli"], Slices(width, objective(found["share"]) if found["share"] else None)


def objective(text: str) -> float:
    """Read a target between 0 and 1, or a percentage such as 99.5%."""
    try:
        value = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise UsageError(f"objective cannot be {text!r}", "a share below 1 such as 0.99, or 99%")
    return value


def indicator(text: str) -> tuple[tuple[str, float], ...]:
    """Read what makes a request good: no limits for errors."""
    text = text.strip().removeprefix("goodput").lstrip(" :")
    if text in ("errors", "availability"):
        return ()
    limits = []
    for part in text.split("&"):
        found = _LIMIT.fullmatch(part.strip())
        measure = _SAME.get(found["measure"], found["measure"]) if found else ""
        try:
            limit = float(found["limit"]) if found else 0.0
        except ValueError:
            limit = 0.0
        if found is None or measure not in MEASURES or not limit > 0:
            raise UsageError(
                f"indicator {part.strip()!r} cannot be read", f"errors, or one of {', '.join(MEASURES)} <= s"
            )
        limits.append((measure, limit / 1000 if found["unit"] == "ms" else limit))
    if len(limits) > 1 and any(measure == "gap_s" for measure, _ in limits):
        raise UsageError("gap_s is of tokens, not of requests", "give it an SLO of its own, or use tpot_s")
    return tuple(limits)


def _where(text: str | None) -> Where:
    pairs = [part.partition("=") for part in re.split(r"\s+and\s+", text.strip())] if text else []
    if not all(sign and key.strip() for key, sign, _ in pairs):
        raise UsageError(f"where {text!r} cannot be read", "write K=V and K=V")
    return tuple((key.strip(), value.strip()) for key, _, value in pairs)
