"""AWS Application Load Balancer access logs: one line → its fields."""

import re

from collector.files.access.entry import Term
from collector.files.access.vocabulary import ALB, ALB_CONNECTION

ALB_TERMS = {**ALB, "request_time": Term("duration_s", "s")}
"""Fields of a line, and the sum of its three times."""

_CONNECTION = re.compile(
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z [0-9a-f.:]+ \d{1,5} \d{1,5} (?:TLSv1(?:\.\d)?|-) \S+ (?:\d+\.\d+|-) "
)
_NAMES = tuple(ALB)
_FEWEST = 12 + 1  # up to the request line; later fields were added over the years
_LINE = re.compile(
    r"^(?:https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z \S+ \S+:\d+ \S+ "
    r"(?:-1|\d+\.\d+) (?:-1|\d+\.\d+) (?:-1|\d+\.\d+) "
)
_PARTS = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_TIMES = ("request_processing_time", "target_processing_time", "response_processing_time")
_URLS = ("redirect_url", "transformed_uri")  # hold queries, which belong to the person who sent them


def is_alb(line: str) -> bool:
    """Tell whether a line is one of an ALB access log."""
    return _LINE.match(line) is not None


def alb_fields(line: str) -> dict[str, str] | None:
    """Return the fields of a line by name, with `request_time` where all times were measured; None for another line.

    -1 is no time: the load balancer could not send the request, or the target closed the connection.
    """
    if not is_alb(line):
        return None
    parts = [found[1] if found[2] is None else found[2] for found in _PARTS.finditer(line)]
    if len(parts) < _FEWEST:
        return None
    fields = dict(zip(_NAMES, parts, strict=False))
    for name in _URLS:
        if name in fields:
            fields[name] = fields[name].partition("?")[0]
    times = [fields[name] for name in _TIMES]
    if all(not time.startswith("-") for time in times):
        fields["request_time"] = " ".join(times)
    return fields


def is_connection(line: str) -> bool:
    """Tell whether a line is one of an ALB connection log."""
    return _CONNECTION.match(line) is not None


def connection_fields(line: str) -> dict[str, str] | None:
    """Return the fields of a line of a connection log by name; None for another line."""
    if not is_connection(line):
        return None
    parts = [found[1] if found[2] is None else found[2] for found in _PARTS.finditer(line)]
    return dict(zip(ALB_CONNECTION, parts, strict=False))
