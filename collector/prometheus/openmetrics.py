"""Grammar of a line of OpenMetrics 1.0, to the blank: what a strict reader refuses though its meaning may be plain.

Metric and label names may also be quoted, as `escaping=allow-utf-8` has them.
"""

import re

from collector.prometheus.line import KINDS, read_line, unescape

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REAL = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_NUMBER = rf"(?:{_REAL}|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])"
_PAIR = rf"(?:[a-zA-Z_]\w*+|{_STRING})={_STRING}"
_LABELS = rf"\{{(?:{_PAIR}(?:,{_PAIR})*+)?\}}"
_QUOTED = rf"\{{{_STRING}(?:,{_PAIR})*+\}}"
_NAME = r"[a-zA-Z_:][\w:]*+"
_SAMPLE = re.compile(
    rf"(?:{_NAME}(?:{_LABELS})?|{_QUOTED}) {_NUMBER}(?: {_REAL})?(?: \# ({_LABELS}) {_NUMBER}(?: {_REAL})?)?",
    re.ASCII,
)
_COMMENT = re.compile(
    rf"\# (?:HELP (?:{_NAME}|{_STRING}) .*|TYPE (?:{_NAME}|{_STRING}) (.*)|UNIT (?:{_NAME}|{_STRING}) \w*)", re.ASCII
)
_EXEMPLAR_PAIR = re.compile(rf"([^,{{]+)=({_STRING})")
_MOST_CHARACTERS = 128  # of the label names and values of an exemplar


def grammar_fault(text: str) -> str | None:
    """Return why OpenMetrics refuses a line on its own; None where it does not."""
    if not text:
        return "a blank line"
    if text == "# EOF":
        return None
    if text.startswith("#"):
        return _comment_fault(text)
    match = _SAMPLE.fullmatch(text)
    if match is None:
        return (
            "its blanks, commas, quotes or numbers are not as OpenMetrics has them"
            if read_line(text)
            else "it cannot be read"
        )
    if read_line(text) is None:
        return "a label is named twice"
    if match[1] and _characters(match[1]) > _MOST_CHARACTERS:
        return f"the labels of its exemplar have more than {_MOST_CHARACTERS} characters"
    return None


def _comment_fault(text: str) -> str | None:
    match = _COMMENT.fullmatch(text)
    if match is None:
        return "a comment is # HELP, # TYPE or # UNIT, a name and a text, with one blank between, or # EOF"
    if match[1] is not None and (match[1] not in KINDS or match[1] == "untyped"):
        return f"{match[1]!r} is no type of OpenMetrics"
    return None


def _characters(labels: str) -> int:
    return sum(len(name) + len(unescape(value[1:-1])) for name, value in _EXEMPLAR_PAIR.findall(labels))
