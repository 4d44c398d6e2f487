"""A log format as nginx (`log_format`) or Apache (`LogFormat`) write it → what reads its lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from collector.files.access.entry import Term
from collector.files.access.vocabulary import APACHE, NGINX
from store.errors import UsageError

_NGINX = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_APACHE = re.compile(r"%[<>!\d,]*((?:\{[^}]*\})?(?:\^t[io]|[A-Za-z]))")
_MOST = 60  # fields of a line; the longest format of nginx's documentation has 20
_SHAPES = {"combined": (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Reads the lines of one format: its expression, the field of each group, and what those fields mean."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    terms: Mapping[str, Term]

    def fields(self, line: str) -> dict[str, str] | None:
        """Return the fields of a line by name; None for a line of another format."""
        found = self.pattern.match(line)
        return None if found is None else dict(zip(self.names, found.groups(), strict=True))


def line_format(text: str) -> LineFormat:
    """Compile a format. Raises UsageError where it names no time, no request, or two fields with nothing between."""
    text = _SHAPES.get(text, text).replace('\\"', '"')
    apache = "%" in text and "$" not in text
    parts = [*(_APACHE if apache else _NGINX).finditer(text)]
    names = tuple(("%" + part[1]) if apache else (part[1] or part[2]) for part in parts)
    terms = APACHE if apache else NGINX
    targets = {terms[name].target for name in names if name in terms}
    if not targets & {"start_us", "end_us"} or not targets & {"request", "target"} or len(names) > _MOST:
        raise UsageError(
            "--map log_format names no time or no request" if len(names) <= _MOST else "--map log_format is too long",
            "write the format of the server: nginx's log_format or Apache's LogFormat",
        )
    return LineFormat(re.compile(_expression(text, parts, names)), names, terms)


def _expression(text: str, parts: list[re.Match[str]], names: tuple[str, ...]) -> str:
    pieces, at = [], 0
    for part, following, name in zip(parts, [*parts[1:], None], names, strict=True):
        literal = text[at : part.start()]
        if at and not literal:
            raise UsageError(f"--map log_format: nothing stands between {name} and the field before it")
        after = text[part.end() : following.start() if following else len(text)]
        if name == "%t" and not literal.endswith("["):  # Apache writes the brackets itself
            pieces += [re.escape(literal), r"(\[[^\]]*\]|\S+)"]
        else:
            pieces += [re.escape(literal), f"({_value(name, after[:1])})"]
        at = part.end()
    return "^" + "".join(pieces) + re.escape(text[at:].rstrip()) + r"\s*$"


def _value(name: str, end: str) -> str:
    """Expression of a value: up to what follows it. nginx lists a value for each upstream tried ('a, b : c')."""
    if end == '"':
        return r'(?:[^"\\]|\\.)*'
    if end == " " and name.startswith("upstream_"):
        return r"[^ ]*(?:(?:(?<=,) | : )[^ ]+)*"
    return f"[^{re.escape(end)}]*" if end else ".*"
