"""A run of scrapes kept small: the full text where its lines change, else only the values that changed.

Exact: what `unpack` gives is what `pack` was given, line by line, every value as the exporter wrote it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

Scrape = tuple[int, str]
"""Time in Unix milliseconds, exposition text."""


def pack(scrapes: Iterable[Scrape]) -> Iterator[bytes]:
    """Write one JSON line per scrape."""
    import orjson

    before: list[tuple[str, str]] = []
    for ts_ms, text in scrapes:
        lines = [_split(line) for line in text.splitlines()]
        row: dict[str, Any] = {"ts_ms": ts_ms}
        if [key for key, _ in lines] == [key for key, _ in before]:
            pairs = enumerate(zip(lines, before, strict=True))
            row["changed"] = {str(i): new for i, ((_, new), (_, old)) in pairs if new != old}
        else:
            row["text"] = text
        before = lines
        yield orjson.dumps(row) + b"\n"


def unpack(rows: Iterable[bytes]) -> Iterator[Scrape]:
    """Read the JSON lines back; every text ends with a line feed."""
    import orjson

    lines: list[tuple[str, str]] = []
    for line in rows:
        row = orjson.loads(line)
        if "text" in row:
            lines = [_split(text) for text in row["text"].splitlines()]
        for i, value in row.get("changed", {}).items():
            lines[int(i)] = (lines[int(i)][0], value)
        yield row["ts_ms"], "".join(f"{key}{value}\n" for key, value in lines)


def _split(line: str) -> tuple[str, str]:
    """Split a sample line into (series and space, value), a comment into (comment, empty)."""
    if line.startswith("#"):
        return line, ""
    key, space, value = line.rpartition(" ")
    return key + space, value
