"""One line of exposition text (Prometheus text 0.0.4 and 1.0.0, OpenMetrics 1.0), read by one regular expression.

Lenient where the meaning is plain: blanks, CRLF, a trailing comma, no blank after `}`, an exemplar in plain text.
"""

import math
import re
from typing import NamedTuple

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER = r"[^\s#{}\"]++"
_BARE = rf"[a-zA-Z_]\w*+\s*+=\s*+{_STRING}"
_ANY = rf"(?:[a-zA-Z_]\w*+|{_STRING})\s*+=\s*+{_STRING}|{_STRING}"
_EXEMPLAR = rf"\s++\#\s*+\{{(?:[^\"}}]++|{_STRING})*+\}}\s*+{_NUMBER}(?:\s++{_NUMBER})?+"


def _line(pair: str) -> re.Pattern[str]:
    labels = rf"\{{\s*+((?:(?:{pair})\s*+(?:,\s*+(?:{pair})\s*+)*+,?+)?+)\s*+\}}"
    return re.compile(
        rf"\s*+([a-zA-Z_:][\w:]*+)?+(?:\s*+{labels}\s*+|\s++)"
        rf"({_NUMBER})(?:\s++({_NUMBER}))?+({_EXEMPLAR})?+\s*+",
        re.ASCII,
    )


_PLAIN, _QUOTED = _line(_BARE), _line(_ANY)
_TAIL = re.compile(rf"\s*+({_NUMBER}(?:\s++{_NUMBER})?+)(?:{_EXEMPLAR})?+\s*+", re.ASCII)
_PAIR = re.compile(r'(\w+)\s*+=\s*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.ASCII)
_QUOTED_PAIR = re.compile(rf"(?:([a-zA-Z_]\w*+)|({_STRING}))(?:\s*+=\s*+({_STRING}))?+", re.ASCII)
_ESCAPE = re.compile(r"\\([\\\"n])")
_TYPE = re.compile(rf"\s*+\#\s*+TYPE\s++(?:([a-zA-Z_:][\w:.]*+)|({_STRING}))\s++(\w++)\s*+", re.ASCII)
_METADATA = re.compile(rf"\s*+\#\s*+(HELP|TYPE|UNIT)\s++(?:([a-zA-Z_:][\w:.]*+)|({_STRING}))(?:\s++(.*+))?+", re.ASCII)
KINDS = frozenset(
    {"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram"}
)


class Line(NamedTuple):
    """A sample line. `value` and `time` are texts, unread; the value begins at character `begin` of the line."""

    name: str
    labels: dict[str, str]
    value: str
    time: str | None
    begin: int
    exemplar: str | None


def read_line(text: str) -> Line | None:
    """Read a sample line; None where it is none, or names a label twice."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return _read_quoted(text)
    name, labels, value, time, exemplar = match.groups()
    if name is None:
        return None
    pairs = _PAIR.findall(labels) if labels else []
    found = dict(pairs)
    if len(found) != len(pairs) or "__name__" in found:
        return None
    if labels and "\\" in labels:
        found = {key: unescape(raw) for key, raw in pairs}
    return Line(name, found, value, time, match.start(3), exemplar)


def _read_quoted(text: str) -> Line | None:
    """Read a line with quoted label names, or with its metric name quoted inside the braces."""
    match = _QUOTED.fullmatch(text)
    if match is None:
        return None
    name, labels, value, time, exemplar = match.groups()
    names = [name] if name else []
    found: dict[str, str] = {}
    for pair in _QUOTED_PAIR.finditer(labels or ""):
        bare, quoted, raw = pair.groups()
        key = bare or unescape(quoted[1:-1])
        if raw is None:
            names.append(key)
        elif key in found or key == "__name__":
            return None
        else:
            found[key] = unescape(raw[1:-1])
    if len(names) != 1 or not names[0]:
        return None
    return Line(names[0], found, value, time, match.start(3), exemplar)


def read_type(text: str) -> tuple[str, str] | None:
    """Read a `# TYPE` line as (family, type); None where it is none or the type does not exist."""
    match = _TYPE.fullmatch(text)
    if match is None or match[3].lower() not in KINDS:
        return None
    return match[1] or unescape(match[2][1:-1]), match[3].lower()


def read_metadata(text: str) -> tuple[str, str, str] | None:
    """Read HELP, TYPE or UNIT as (keyword, family, text); None for any other line."""
    match = _METADATA.fullmatch(text)
    if match is None:
        return None
    return match[1], match[2] or unescape(match[3][1:-1]), (match[4] or "").rstrip()


def without_exemplar(tail: bytes) -> bytes:
    """Return value and time of the end of a line without the exemplar after them. Raises ValueError."""
    match = _TAIL.fullmatch(tail.decode())
    if match is None:
        raise ValueError("no exemplar follows the value")
    return match[1].encode()


def read_tail(tail: bytes, openmetrics: bool) -> tuple[float, int | None]:
    """Read all that follows name and labels: value, time in ms, exemplar (skipped). Raises ValueError."""
    parts = (without_exemplar(tail) if b"#" in tail else tail).split()
    if len(parts) == 1:
        return number(parts[0]), None
    value, when = parts
    return number(value), time_ms(when, openmetrics)


def unescape(raw: str) -> str:
    r"""Resolve `\\`, `\"` and `\n`; any other backslash stands for itself."""
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], raw) if "\\" in raw else raw


def number(text: bytes) -> float:
    """Read a value: decimal, exponent, NaN, ±Inf. Raises ValueError for anything else (`1_000` too, `0x10` too)."""
    if b"_" in text:
        raise ValueError("underscore in a number")
    return float(text)


def time_ms(text: bytes, openmetrics: bool) -> int:
    """Read a time stamp: whole milliseconds, in OpenMetrics seconds. Raises ValueError."""
    if b"_" in text:
        raise ValueError("underscore in a number")
    if not openmetrics:
        return int(text)
    milliseconds = float(text) * 1000
    if not math.isfinite(milliseconds):
        raise ValueError("no finite time")
    return round(milliseconds)
