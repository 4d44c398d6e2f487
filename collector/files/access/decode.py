"""An access log → its batch; and how such a log is told from all other files."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from collector.files.access.alb import ALB_TERMS, alb_fields, connection_fields, is_alb, is_connection
from collector.files.access.entry import Entry, Term, read_entry
from collector.files.access.lines import combined_fields, envoy_fields, is_combined, is_envoy, json_terms
from collector.files.access.logformat import LineFormat, line_format
from collector.files.access.spans import spans_of
from collector.files.access.vocabulary import ALB_CONNECTION, ENVOY, NGINX
from collector.files.content import Content, Format
from collector.files.dialects import MEASURED, recognise
from collector.files.intake import Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.refusals import Refusal
from store.batch import Batch
from store.errors import UsageError

_LOG_FORMAT = "log_format"
_LOOKED_AT = 20  # lines: one access line among the first is enough, since some begin with a malformed request
_LATENCIES = MEASURED - {"e2e_s"}  # fields that say a JSON line is a model request, not an access line
_TOLD = (is_alb, is_combined, is_envoy, is_connection)
Read = tuple[dict[str, Any], Mapping[str, Term], str]
Refused = dict[str, Refusal]


def _told(content: Content) -> FileKind | None:
    if content.format is Format.PARQUET:
        return None
    lines = (line for line in content.head.split("\n") if line.strip() and not line.startswith("#"))
    return FileKind.ACCESS_LOG if any(_is_access(line.rstrip("\r")) for line in islice(lines, _LOOKED_AT)) else None


def _is_access(line: str) -> bool:
    return _is_document(line) if line.startswith("{") else any(told(line) for told in _TOLD)


def _is_document(line: str) -> bool:
    document = _object(line)
    return document is not None and json_terms(document) is not None and _LATENCIES.isdisjoint(recognise(document))


def _object(line: str) -> dict[str, Any] | None:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def decode_access_log(
    content: Content, _kind: FileKind, options: ImportOptions, source: str
) -> tuple[Batch, Refused, tuple[str, ...]]:
    """Return the spans of a log, the lines refused, and remarks. Each line is told by itself.

    Raises UsageError for a --map other than log_format, and for a format that cannot be read.
    """
    form = _form(options)
    entries: list[tuple[Entry, str]] = []
    refused: Refused = {}
    more, zone = 0, options.zone
    unknown: dict[str, None] = {}
    for number, line in _lines(content):
        found = _read(line, form)
        try:
            entry = _entry(found, zone)
        except ValueError as error:
            _refuse(refused, str(error), f"{content.path}:{number}")
            continue
        more += bool(found and found[2])
        unknown |= dict.fromkeys(entry.unknown)
        entries.append((entry, line))
    frames = {"spans": spans_of(entries, options, _service(content, options, entries))} if entries else {}
    drops = {reason: refusal.count for reason, refusal in refused.items()}
    return Batch(source, frames, drops), refused, _notes(more, unknown, options)


def _lines(content: Content) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(content.text().split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip("\r")


def _form(options: ImportOptions) -> LineFormat | None:
    for name in options.mapping:
        if name != _LOG_FORMAT:
            raise UsageError(
                f"--map: an access log has no column {name!r}", "its only --map is log_format, the server's log format"
            )
    return line_format(options.mapping[_LOG_FORMAT]) if _LOG_FORMAT in options.mapping else None


def _read(line: str, form: LineFormat | None) -> Read | None:
    """Return the fields of a line, what they mean, and what of the line was not understood."""
    if form is not None and (found := form.fields(line)) is not None:
        return found, form.terms, ""
    if line.startswith("{"):
        document = _object(line)
        terms = None if document is None else json_terms(document)
        return None if document is None or terms is None else (document, terms, "")
    if (found := alb_fields(line)) is not None:
        return found, ALB_TERMS, ""
    if (found := connection_fields(line)) is not None:
        return found, ALB_CONNECTION, ""
    if (found := envoy_fields(line)) is not None:
        return found, ENVOY, ""
    if (combined := combined_fields(line)) is not None:
        return combined[0], NGINX, combined[1]
    return None


def _entry(found: Read | None, zone: ZoneInfo) -> Entry:
    """Read a line as an entry. Raises ValueError with the reason to refuse it."""
    if found is None:
        raise ValueError("no line of an access log")
    entry = read_entry(found[0], found[1], zone)
    if entry.start_us is None and entry.end_us is None:
        raise ValueError("no time")
    return entry


def _refuse(refused: Refused, reason: str, where: str) -> None:
    before = refused.get(reason)
    refused[reason] = Refusal(1, where) if before is None else Refusal(before.count + 1, before.first)


def _service(content: Content, options: ImportOptions, entries: list[tuple[Entry, str]]) -> str:
    """Return the service: the label, else the load balancer's name, else the file's."""
    balancer = str(entries[0][0].attributes.get("load_balancer.name", "")).split("/")
    return options.labels.get("service") or (balancer[1] if len(balancer) > 1 else balancer[0]) or content.stem


def _notes(more: int, unknown: Mapping[str, None], options: ImportOptions) -> tuple[str, ...]:
    notes = []
    if more:
        notes.append(f"{more} lines hold more than is understood: name the format with --map log_format='...'")
    if unknown and not options.content.store_content:
        names = ", ".join(islice(unknown, 10))
        notes.append(f"fields that are not known stay in the file: {names}")
    return tuple(notes)


INTAKE = Intake(frozenset({FileKind.ACCESS_LOG}), _told, decode_access_log, maps=True)
