"""`Entry`: one request as an access log states it, read from the log's fields by a vocabulary."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, NamedTuple

from collector.files.access.clock import microseconds

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
_LONGEST_S = 1e9  # a request of 31 years is a broken number
_NOTHING = frozenset({"", "-", '"-"'})


class Term(NamedTuple):
    """What a field of a log is: the field of `Entry` or the attribute it fills, and how its text is read."""

    target: str
    read: str = "text"


@dataclass(slots=True)
class Entry:
    """One line. `start_us` and `end_us` are microseconds since 1970; which of them a log states depends on its format.

    `client` is the address as logged; it leaves this object only cut or where content is kept.
    """

    start_us: int | None = None
    end_us: int | None = None
    duration_s: float | None = None
    method: str | None = None
    target: str | None = None
    protocol: str | None = None
    request: str | None = None
    status: int | None = None
    client: str | None = None
    client_port: str | None = None
    user: str | None = None
    referrer: str | None = None
    forwarded: str | None = None
    upstream: str | None = None
    connection: str | None = None
    traceparent: str | None = None
    amazon_trace: str | None = None
    request_id: str | None = None
    service: str | None = None
    failure: str | None = None
    handshake: str | None = None
    listener: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


_FIELDS = frozenset(Entry.__dataclass_fields__)


def read_entry(found: Mapping[str, Any], vocabulary: Mapping[str, Term], zone: tzinfo) -> Entry:
    """Read the fields of one line. A value that says nothing ('-') is missing; a negative time is no time.

    Raises ValueError, with the reason to refuse the line, for a time or status that cannot be read.
    """
    entry = Entry()
    for name, value in found.items():
        term, text = vocabulary.get(name), _text(value)
        if text in _NOTHING:
            continue
        if term is None:
            entry.unknown[name] = text
        elif term.read == "time":
            setattr(entry, term.target, _moment(text, zone))
        else:
            _put(entry, term.target, _READERS[term.read](text))
    if entry.request is not None and entry.method is None:
        _split_request(entry)
    return entry


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value).strip()


def _put(entry: Entry, target: str, value: Any) -> None:
    if value is None:
        return
    if target in _FIELDS:
        if getattr(entry, target) is None:
            setattr(entry, target, value)
    else:
        entry.attributes.setdefault(target, value)


def _split_request(entry: Entry) -> None:
    """Take 'GET /path HTTP/1.1' apart; what is no request line leaves the method empty."""
    parts = (entry.request or "").split(" ")
    if len(parts) >= 2 and re.fullmatch(r"[A-Z][A-Z_-]{1,31}", parts[0]) and parts[1] != "-":
        last = parts[-1] if len(parts) > 2 and parts[-1].startswith("HTTP/") else None
        entry.method, entry.target = parts[0], " ".join(parts[1:-1] if last else parts[1:])
        entry.protocol = entry.protocol or last


def _moment(text: str, zone: tzinfo) -> int:
    found = microseconds(text, zone)
    if found is None:
        raise ValueError("unreadable time")
    return found


def _seconds(per_second: float) -> Callable[[str], float | None]:
    """Read a time, or the sum of several: nginx lists one for each upstream tried ('0.001, 0.002 : 0.003')."""

    def read(text: str) -> float | None:
        if (number := _number(text)) is not None:
            return number / per_second if 0 <= number < _LONGEST_S * per_second else None
        parts = [_number(part) for part in re.split(r"[,:\s]+", text) if part != "-"]
        known = [part for part in parts if part is not None and part >= 0]
        whole = known and len(known) == len(parts) and sum(known) < _LONGEST_S * per_second
        return sum(known) / per_second if whole else None

    return read


def _number(text: str) -> float | None:
    if not _NUMBERS.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _whole(text: str) -> int | None:
    number = _number(text)
    return int(number) if number is not None and 0 <= number < 2**63 else None


def _status(text: str) -> int | None:
    number = _whole(text)
    if number is None or not (number == 0 or 100 <= number <= 999):
        raise ValueError("unreadable status")
    return number or None


def _next(text: str) -> int | None:
    """Apache counts the requests that came before on the connection; nginx this one too."""
    number = _whole(text)
    return None if number is None else number + 1


def _flag(text: str) -> bool | None:
    word = text.lower()
    return True if word in ("r", "true", "1", "resumed") else False if word in (".", "false", "0", "initial") else None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "s": _seconds(1),
    "ms": _seconds(1e3),
    "us": _seconds(1e6),
    "int": _whole,
    "status": _status,
    "next": _next,
    "flag": _flag,
}
