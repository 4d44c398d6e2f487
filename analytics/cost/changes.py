"""Planned changes as one line of text each: `2026-12-01T00:00Z..2026-12-03T00:00Z service=chat "migration"`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from store.errors import UsageError
from store.query import Where
from store.window import format_time, parse_time
from store.zone import DEFAULT, utc_window, zone

GRAMMAR = 'START..END [K=V and K=V] ["WHAT IT IS"] [level], such as 2026-12-01..2026-12-03 service=chat "migration"'
_LINE = re.compile(
    r"(?P<start>\S+?)\.\.(?P<end>\S+)(?:\s+(?P<where>[^\s\"=]+=[^\"]*?))?"
    r"(?:\s*\"(?P<note>[^\"]*)\")?(?:\s+(?P<level>level))?\s*"
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was planned: a drift that begins in [start, end) of what `where` names is no surprise.

    With `level` the cost is expected to stay where it is afterwards, so the baseline begins anew at `end`.
    """

    start: datetime
    end: datetime
    where: Where = ()
    note: str = ""
    level: bool = False

    @property
    def name(self) -> str:
        """What it is called where it is spoken of."""
        return self.note or f"{format_time(self.start)}..{format_time(self.end)}"

    def text(self) -> str:
        """Write the line that `parse` reads."""
        where = " and ".join(f"{k}={v}" for k, v in self.where)
        parts = (where, f'"{self.note}"' if self.note else "", "level" if self.level else "")
        return " ".join([f"{format_time(self.start)}..{format_time(self.end)}", *filter(None, parts)])

    def concerns(self, labels: Mapping[str, str]) -> bool:
        """Say whether it is about what has these labels; a key that they lack is not known to be met."""
        wanted: dict[str, set[str]] = {}
        for key, value in self.where:
            wanted.setdefault(key, set()).add(value)
        return all(labels.get(key) in values for key, values in wanted.items())


def parse(text: str, within: str = DEFAULT.key) -> Change:
    """Read one change; times without an offset are of the zone `within`. Raises UsageError that names what is wrong."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"planned change {text!r} cannot be read", GRAMMAR)
    first, _, last = utc_window(f"{found['start']}..{found['end']}", zone(within)).partition("..")
    start, end = parse_time(first), parse_time(last)
    if end <= start:
        raise UsageError(f"planned change {text!r} ends before it starts", "write it as EARLIER..LATER")
    pairs = [part.partition("=") for part in re.split(r"\s+and\s+", (found["where"] or "").strip()) if part]
    if not all(key.strip() and sign and value.strip() for key, sign, value in pairs):
        raise UsageError(f"planned change {text!r}: where cannot be read", "write K=V and K=V")
    where = tuple((key.strip(), value.strip()) for key, _, value in pairs)
    return Change(start, end, where, found["note"] or "", found["level"] is not None)


def covering(changes: Iterable[Change], at: datetime, labels: Mapping[str, str]) -> Change | None:
    """Return the planned change in which a drift of these labels that begins `at` begins; the first given counts."""
    return next((one for one in changes if one.start <= at < one.end and one.concerns(labels)), None)


def restarts(changes: Iterable[Change], labels: Mapping[str, str]) -> list[datetime]:
    """Return the ends of the planned level changes of these labels, in order: a baseline begins anew at each."""
    return sorted({one.end for one in changes if one.level and one.concerns(labels)})
