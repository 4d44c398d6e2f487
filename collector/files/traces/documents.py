"""The JSON documents of a file: one, one a line, or one after another as a console exporter prints them."""

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from collector.files.content import Content
from collector.files.documents import line_of_break
from store.errors import SourceError

_BETWEEN = re.compile(r"(?<=\n\})\s*\n(?=\{\n)")
"""Where one printed object ends and the next begins: within indented JSON no brace stands at the margin."""


def read_documents(content: Content) -> list[tuple[str, Any]]:
    """Return the documents of a file, each with its place.

    Raises SourceError, naming the line, for text that is no JSON.
    """
    text = content.text()
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        first = orjson.loads(lines[0][1])
    except orjson.JSONDecodeError:
        first = None
    if len(lines) == 1:
        return [(str(content.path), _parse(content, text, 1))]
    parts = lines if isinstance(first, dict | list) else list(_printed(text))
    return [(f"{content.path}:{number}", _parse(content, part, number)) for number, part in parts]


def _printed(text: str) -> Iterator[tuple[int, str]]:
    """Yield the objects of a text, each with its first line."""
    at, line = 0, 1
    for between in [*_BETWEEN.finditer(text), None]:
        part = text[at : between.start() if between else len(text)]
        yield line, part
        if between:
            line += text.count("\n", at, between.end())
            at = between.end()


def _parse(content: Content, text: str, line: int) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        broken = line_of_break(text)
        if broken is None:  # the NaN and Infinity that Python's own writer leaves
            return json.loads(text)
        raise SourceError(
            f"{content.path}:{line + broken - 1}: broken JSON ({error.msg})",
            "repair or fetch the file again; nothing was imported",
        ) from error
