"""`Window`: a half-open stretch of time, UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from store.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")


def parse_duration(text: str) -> timedelta:
    """Read '15s', '1h30m', '7d' (the Prometheus form, fractions allowed). Raises UsageError otherwise."""
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise UsageError(f"{text!r} is not a duration", "write it like 30s, 15m, 24h, 7d or 1h30m")
    return timedelta(seconds=sum(float(n) * _UNITS[u] for n, u in parts))


def format_duration(span: timedelta) -> str:
    """Write a duration the Prometheus way ('1h30m'); `parse_duration` reads it back."""
    left, out = round(span.total_seconds() * 1000), ""
    for unit in ("d", "h", "m", "s", "ms"):
        size = round(_UNITS[unit] * 1000)
        if left >= size:
            out, left = f"{out}{left // size}{unit}", left % size
    return out or "0s"


def parse_time(text: str) -> datetime:
    """Read a RFC 3339 time; without a zone it is UTC. Raises UsageError otherwise."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time", "write it like 2026-11-30 or 2026-11-30T14:05:00Z") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def format_time(at: datetime) -> str:
    """RFC 3339 in UTC with a Z; a naive time is taken as UTC. Fractions only where there are any."""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Window:
    """[start, end), both aware and in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a Window takes aware times")
        if self.end <= self.start:
            raise UsageError(
                f"the window ends at {format_time(self.end)}, not after its start {format_time(self.start)}",
                "write it as EARLIER..LATER",
            )

    @property
    def span(self) -> timedelta:
        """Length of the window."""
        return self.end - self.start

    @classmethod
    def last(cls, span: timedelta, end: datetime) -> "Window":
        """Return the `span` before `end`."""
        return cls(end - span, end)

    @classmethod
    def parse(cls, text: str, now: datetime) -> "Window":
        """Read '24h' (before `now`) or 'A..B' (times or dates)."""
        start, dots, end = text.partition("..")
        return cls(parse_time(start), parse_time(end)) if dots else cls.last(parse_duration(text), now)

    def __str__(self) -> str:
        return f"{format_time(self.start)}..{format_time(self.end)}"
