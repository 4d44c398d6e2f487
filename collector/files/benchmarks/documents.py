"""The JSON of an artefact: one document, or one a line."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson

from collector.files.content import Content
from store.errors import SourceError

_YEAR_10000_US = 253_402_300_800_000_000
_TAKEN = frozenset({"profile_export", "profile_export_aiperf", "benchmarks", "results", "result", "summary", "output"})


def documents(content: Content) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield objects with the line they start at. Raises SourceError, naming the line, for broken JSON."""
    text = content.text()
    try:
        whole = parse(text)
    except ValueError as error:
        first = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        yield from _lines(content, text, first)
        return
    for item in whole if isinstance(whole, list) else [whole]:
        if isinstance(item, dict):
            yield 1, item


def _lines(content: Content, text: str, first: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read an object a line; where the first line is none, the whole text is one broken document."""
    parts = [(number, part) for number, part in enumerate(text.split("\n"), 1) if part.strip()]
    for index, (number, part) in enumerate(parts):
        try:
            item = parse(part)
        except ValueError as error:
            line = first if index == 0 else number
            raise SourceError(
                f"{content.path}:{line}: broken JSON ({str(error)[:100]})", "fetch the file again; nothing was imported"
            ) from None
        if isinstance(item, dict):
            yield number, item


def parse(text: str) -> Any:
    """Parse JSON, also with the NaN and Infinity that Python's writer leaves (→ null). Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        document = json.loads(text, parse_constant=lambda _: None)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair") from None
    return document


def run_name(content: Content) -> str:
    """Return the name of a run: the file's, or its folder's where the tool always writes the same file name."""
    stem = content.stem
    return content.path.parent.name or stem if stem in _TAKEN else stem


def epoch_us(value: Any) -> int | None:
    """Microseconds of seconds since 1970; None for what is no such time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e8 < value < 1e11:
        return None
    return round(value * 1e6)


def calendar_us(value: float) -> int | None:
    """Return whole microseconds since 1970; None outside the years 1970 to 9999."""
    return round(value) if 0 <= value < _YEAR_10000_US else None


def moment_us(text: Any, zone: tzinfo) -> int | None:
    """Microseconds since 1970 of a time of ISO 8601, or of '20261130-120000'; None for anything else."""
    if not isinstance(text, str):
        return None
    compact = re.fullmatch(r"(\d{8})-(\d{6})", text)
    try:
        moment = datetime.strptime(text, "%Y%m%d-%H%M%S") if compact else datetime.fromisoformat(text)  # noqa: DTZ007
        moment = moment.replace(tzinfo=moment.tzinfo or zone)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    except (ValueError, OverflowError):
        return None
