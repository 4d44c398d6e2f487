"""What a person says is no anomaly: known incidents, hours of maintenance, series; one text each.

Words of a text narrow it: `A..B` a time, `sat 02:00..04:00` hours of days, `until 2027-01-01` points before it,
`label=value`, and what is left the name of a series. `requests_waiting service=chat-api mon-fri 02:00..04:00`.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from store.errors import UsageError
from store.window import Window, parse_time

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_GROUPS = {"daily": frozenset(range(7)), "weekdays": frozenset(range(5)), "weekends": frozenset({5, 6})}
_DAY = "|".join(DAYS)
_DAYS = re.compile(rf"(?:{_DAY})(?:[-+](?:{_DAY}))*")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\.\.([01]\d|2[0-3]|24):([0-5]\d)")
HINT = "such as 2026-11-30T02:00:00Z..2026-11-30T04:00:00Z, or: requests_waiting service=a sat 02:00..04:00"
DAY_MINUTES = 1440


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Points left out: those of the series (all where neither name nor labels) at the times (always where none)."""

    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    span: Window | None = None
    days: frozenset[int] = field(default_factory=frozenset)
    hours: tuple[int, int] | None = None
    until: datetime | None = None

    @property
    def everywhere(self) -> bool:
        """Whether it holds for every series."""
        return not self.name and not self.labels

    @property
    def always(self) -> bool:
        """Whether it holds at every time."""
        return self.span is None and self.hours is None and not self.days and self.until is None


def parse(text: str) -> Exclusion:
    """Read one text. Raises UsageError where it says nothing, or what it says is no time."""
    words, name = text.split(), []
    labels: list[tuple[str, str]] = []
    span, hours, until, days = None, None, None, frozenset[int]()
    while words:
        word = words.pop(0)
        if word == "until" and words:
            until = parse_time(words.pop(0))
        elif found := _HOURS.fullmatch(word):
            start, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
            if start == end or end > DAY_MINUTES:
                raise UsageError(f"{word!r} of the exclusion {text!r} is no span of hours", HINT)
            hours = (start, end)
        elif ".." in word:
            span = Window.parse(word, datetime(1970, 1, 1, tzinfo=UTC))
        elif word in _GROUPS or _DAYS.fullmatch(word):
            days |= _GROUPS[word] if word in _GROUPS else _days(word)
        elif "=" in word:
            key, _, value = word.partition("=")
            labels.append((key, value))
        else:
            name.append(word)
    made = Exclusion(" ".join(name), tuple(labels), span, days, hours, until)
    if made.everywhere and span is None and hours is None and not days:
        raise UsageError(f"the exclusion {text!r} says neither a series nor a time", HINT)
    return made


def _days(word: str) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split("+"):
        ends = [DAYS.index(day) for day in part.split("-")]
        found |= {day % 7 for day in range(ends[0], ends[-1] + (7 if ends[-1] < ends[0] else 0) + 1)}
    return frozenset(found)
