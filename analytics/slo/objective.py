"""A service level objective as one line of text: `chat-ttft: ttft_s<=2 @0.99 over 30d where service=chat`."""

import re
from dataclasses import dataclass
from datetime import timedelta

from store.errors import UsageError
from store.query import Where
from store.window import format_duration, parse_duration

MEASURES = ("ttft_s", "e2e_s", "tpot_s", "queue_s", "gap_s")
GRAMMAR = (
    "NAME: INDICATOR @OBJECTIVE [over DURATION] [where K=V [and K=V]]; INDICATOR: errors, or ttft_s<=2 & tpot_s<=0.1"
)
_LINE = re.compile(
    r"(?P<name>[^:]+):\s*(?P<sli>[^@]+?)\s*@\s*(?P<objective>\S+)(?:\s+over\s+(?P<over>\S+))?"
    r"(?:\s+where\s+(?P<where>.+))?\s*"
)
_LIMIT = re.compile(r"(?P<measure>\w+)\s*<=?\s*(?P<limit>[0-9.eE+-]+)\s*(?P<unit>ms|s)?")
_SAME = {"itl_s": "tpot_s", "latency_s": "e2e_s", "duration_s": "e2e_s"}
MONTH = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Slo:
    """An objective. `limits` are (measure, seconds) that a good request keeps, all of them; none: it did not fail."""

    name: str
    limits: tuple[tuple[str, float], ...]
    objective: float
    over: timedelta = MONTH
    where: Where = ()

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
        return " & ".join(f"{m}<={limit:g}" for m, limit in self.limits) or "errors"

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
    return Slo(
        found["name"].strip(), indicator(found["sli"]), objective(found["objective"]), over, _where(found["where"])
    )


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
