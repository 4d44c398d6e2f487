"""Formats of text lines that are known without being told: combined and its relatives, ingress-nginx, Envoy."""

import re
from collections.abc import Mapping

from collector.files.access.entry import Term
from collector.files.access.vocabulary import ENVOY, NGINX, SHORT_NAMES

Fields = dict[str, str]

_QUOTED = r'"(?P<{}>(?:[^"\\]|\\.)*)"'
_COMBINED = re.compile(
    r"^(?:(?P<host>[\w.-]+:\d{1,5}) )?(?P<remote_addr>\S+) \S+ (?P<remote_user>[^\[\"]*?) ?\[(?P<time_local>[^\]]+)\] "
    + _QUOTED.format("request")
    + r" (?P<status>\d{3}) (?P<body_bytes_sent>\d+|-)"
    + f"(?: {_QUOTED.format('http_referer')} {_QUOTED.format('http_user_agent')})?(?P<rest>.*)$"
)
_INGRESS = re.compile(
    r"^ (?P<request_length>\d+) (?P<request_time>\d+\.\d+) \[(?P<proxy_upstream_name>[^\]]*)\] \[[^\]]*\] "
    r"(?P<upstream_addr>[^ ]+(?:, [^ ]+)*) (?P<upstream_response_length>[\d-]+(?:, [\d-]+)*) "
    r"(?P<upstream_response_time>[\d.-]+(?:, [\d.-]+)*) (?P<upstream_status>[\d-]+(?:, [\d-]+)*) (?P<req_id>\S+)\s*$"
)
_FORWARDED = re.compile(r'^ "(?P<http_x_forwarded_for>[0-9a-fA-F.:, -]*|unknown)"')
_PAIR = re.compile(r'(?:^|(?<=\s))\$?(\w+)[=:](?:"([^"]*)"|(\S+))')
_ENVOY = re.compile(
    r"^\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]]+Z)\] "
    r'"(?P<method>\S+) (?P<path>\S+) (?P<protocol>[^"]+)" (?P<response_code>\d{1,3}) (?P<response_flags>\S+) '
    r"(?:(?P<response_code_details>\S+) (?P<connection_termination_details>\S+) "
    + _QUOTED.format("upstream_transport_failure_reason")
    + r" )?(?P<bytes_received>\d+) (?P<bytes_sent>\d+) (?P<duration>\d+|-) (?P<upstream_service_time>\d+|-) "
    + " ".join(_QUOTED.format(n) for n in ("x_forwarded_for", "user_agent", "request_id", "authority", "upstream_host"))
    + r"(?: (?P<upstream_cluster>\S+) (?P<upstream_local_address>\S+) \S+ (?P<downstream_remote_address>\S+)"
    r" (?P<requested_server_name>\S+) (?P<route_name>\S+))?\s*$"
)


def is_combined(line: str) -> bool:
    """Tell whether a line is of the common or combined format, with or without more behind it."""
    found = _COMBINED.match(line)
    return found is not None and "/" in found["time_local"]


def is_envoy(line: str) -> bool:
    """Tell whether a line is of Envoy's default format, or of Istio's."""
    return _ENVOY.match(line) is not None


def combined_fields(line: str) -> tuple[Fields, str] | None:
    """Return the fields of a line, and what behind them is not understood; None for a line of another format."""
    found = _COMBINED.match(line)
    if found is None:
        return None
    fields = {name: text for name, text in found.groupdict().items() if text is not None}
    rest = fields.pop("rest", "")
    if more := _INGRESS.match(rest):
        return fields | more.groupdict(), ""
    if more := _FORWARDED.match(rest):
        fields |= more.groupdict()
        rest = rest[more.end() :]
    pairs = {SHORT_NAMES.get(name, name): quoted or plain for name, quoted, plain in _PAIR.findall(rest)}
    known = {name: text for name, text in pairs.items() if name in NGINX and name not in fields}
    return fields | known, "" if known else rest.strip()


def envoy_fields(line: str) -> Fields | None:
    """Return the fields of a line; None for a line of another format."""
    found = _ENVOY.match(line)
    return None if found is None else {name: text for name, text in found.groupdict().items() if text is not None}


def json_terms(names: Mapping[str, object]) -> Mapping[str, Term] | None:
    """Return the vocabulary of a JSON log by the names it uses; None where it is no access log that is known."""
    if "response_code" in names and not {"path", "method", "authority"}.isdisjoint(names) and "duration" in names:
        return ENVOY
    timed = not {"time_local", "time_iso8601", "msec", "time", "timestamp", "@timestamp"}.isdisjoint(names)
    asked = not {"request", "request_uri", "uri"}.isdisjoint(names)
    return NGINX if timed and asked and {"status", "remote_addr"} <= names.keys() else None
