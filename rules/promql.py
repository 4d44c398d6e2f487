"""A reader of PromQL: which metrics an expression names and needs, which labels it keeps, what it divides and measures.

promtool judges the syntax; this reads what promtool accepts.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from store.errors import UsageError

Known = Mapping[str, frozenset[str]]
"""Labels of metrics that are known; the labels of any other metric are unknown (None)."""

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[a-z0-9]*)
    |(?P<name>[a-zA-Z_:][\w:]*)
    |(?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],@:])""",
    re.VERBOSE,
)
_LEVELS = {
    "or": 1, "and": 2, "unless": 2, "==": 3, "!=": 3, ">": 3, "<": 3, ">=": 3, "<=": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6,
}  # fmt: skip
_AGGREGATIONS = frozenset(
    ("sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "count_values", "bottomk", "topk", "quantile")
)
_COMPARISONS = frozenset(("==", "!=", ">", "<", ">=", "<="))
_SPAN = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_SCALARS = frozenset(("time", "pi", "scalar"))


Needs = frozenset[frozenset[str]]
"""Sets of metrics; a result needs all of one of them. `~` begins a pattern of names."""
ALWAYS: Needs = frozenset((frozenset(),))


@dataclass(frozen=True, slots=True)
class Vector:
    """A result's labels: a set, or None where they depend on a metric that is not known; `equal`: set by ="value".

    `needs`: what must be there for a result; `guarded`: a comparison holds, so it may be divided by; `quantile`: of
    a histogram.
    """

    labels: frozenset[str] | None
    equal: frozenset[str] = frozenset()
    needs: Needs = ALWAYS
    guarded: bool = False
    quantile: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """What an expression names, keeps and needs. `labels` is None where that depends on a metric that is not known.

    `buckets` are (metric or ~pattern of names, le) of selectors of one bucket, `measured` (metric, bound) of quantiles
    and a number. `unguarded` is how many divisions may be by zero.
    """

    metrics: frozenset[str]
    labels: frozenset[str] | None
    needs: Needs = ALWAYS
    buckets: tuple[tuple[str, str], ...] = ()
    measured: tuple[tuple[str, float], ...] = ()
    unguarded: int = 0

    def missing(self, there: Collection[str]) -> frozenset[str]:
        """Return the fewest metrics, in addition to those there, with which it can have a result."""
        return min((frozenset(n for n in need if not _is_there(n, there)) for need in self.needs), key=_few)


def _is_there(name: str, there: Collection[str]) -> bool:
    if not name.startswith("~"):
        return name in there
    pattern = re.compile(name[1:])
    return any(pattern.fullmatch(other) for other in there)


def _few(names: frozenset[str]) -> tuple[int, list[str]]:
    return len(names), sorted(names)


def read(text: str, known: Known | None = None) -> Expression:
    """Read an expression. Raises UsageError where it cannot."""
    reader = _Reader(text, known or {})
    result = reader.binary(1)
    if reader.peek():
        raise reader.error()
    labels, needs = (result.labels, result.needs) if result else (frozenset(), ALWAYS)
    measured = tuple(reader.measured)
    return Expression(frozenset(reader.metrics), labels, needs, tuple(reader.buckets), measured, reader.unguarded)


def words(text: str) -> tuple[str, ...]:
    """Return an expression word by word, numbers as values, matchers in order: equal for what Prometheus prints alike.

    Raises UsageError where it cannot be read.
    """
    found: list[str] = []
    start = 0
    for word in map(_plain, _Reader(text, {}).tokens):
        if word == "{":
            start = len(found) + 1
        if word == "}":
            found[start:] = sorted(" ".join(found[start:]).split(" , "))
        found.append(word)
    return tuple(found)


def _plain(word: str) -> str:
    with suppress(ValueError):
        return repr(float(word))
    if re.fullmatch(f"({_SPAN.pattern})+", word):  # Prometheus writes 7d as 1w
        return f"{sum(float(n) * _SECONDS[unit] for n, unit in _SPAN.findall(word)):.15g}s"
    return word


class _Reader:
    """Recursive descent over the tokens; a method returns a Vector, or None for a scalar or text."""

    def __init__(self, text: str, known: Known) -> None:
        self.text, self.known = text, known
        self.metrics: set[str] = set()
        self.buckets: list[tuple[str, str]] = []
        self.measured: list[tuple[str, float]] = []
        self.unguarded = 0
        self.tokens = self._split()
        self.at = 0

    def _split(self) -> list[str]:
        tokens, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise UsageError(f"cannot read {self.text[at:]!r} in the expression {self.text!r}")
            at = match.end()
            if match.lastgroup != "skip":
                tokens.append(match.group())
        return tokens

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if not token or (wanted and token not in wanted):
            raise self.error()
        self.at += 1
        return token

    def accept(self, *wanted: str) -> str:
        return self.take() if self.peek().lower() in wanted else ""

    def error(self) -> UsageError:
        return UsageError(f"cannot read {self.peek() or 'the end'!r} in the expression {self.text!r}")

    def binary(self, level: int) -> Vector | None:
        left = self.unary()
        while (found := _LEVELS.get(self.peek().lower(), 0)) >= level:
            op = self.take().lower()
            self.accept("bool")
            match, names = self._matching()
            side, extra = self._grouping()
            # ^ binds to the right, all others to the left
            start = self.at
            right = self.binary(found if op == "^" else found + 1)
            self._note(op, left, right, self.tokens[start : self.at])
            left = _combine(op, left, right, (match, names), (side, extra))
        return left

    def _note(self, op: str, left: Vector | None, right: Vector | None, words: list[str]) -> None:
        """Note a division by what may be zero, and a quantile that is held against a number."""
        if op == "/" and right is not None and not right.guarded:
            self.unguarded += 1
        if op in (">", ">=") and left is not None and left.quantile and right is None and len(words) == 1:
            with suppress(ValueError):
                self.measured += [(name, float(words[0])) for need in left.needs for name in sorted(need)]

    def unary(self) -> Vector | None:
        self.accept("-", "+")
        value = self.primary()
        while self.peek() in ("[", "@") or self.peek().lower() == "offset":
            self._modifier()
        return value

    def primary(self) -> Vector | None:
        if self.accept("("):
            value = self.binary(1)
            self.take(")")
            return value
        if self.peek() == "{":
            return self._selector("")
        token = self.take()
        if token[0].isdigit() or token[0] in ".\"'`" or token.lower() in ("inf", "nan"):
            return None
        if not re.match(r"[a-zA-Z_:]", token):
            self.at -= 1
            raise self.error()
        if token.lower() in _AGGREGATIONS and self.peek().lower() in ("(", "by", "without"):
            return self._aggregation(token.lower())
        return self._call(token) if self.peek() == "(" else self._selector(token)

    def _modifier(self) -> None:
        if self.accept("["):
            while not self.accept("]"):
                self.take()
        elif self.accept("offset"):
            self.accept("-")
            self.take()
        else:
            self.take("@")
            self.accept("-")
            if self.take() in ("start", "end"):
                self.take("(")
                self.take(")")

    def _selector(self, name: str) -> Vector:
        equal, names, patterns = set(), {name} - {""}, set()
        if self.accept("{"):
            while not self.accept("}"):
                label = self.take()
                op = self.accept("=", "!=", "=~", "!~")
                value = _unquote(self.take()) if op else ""
                if not op or (label == "__name__" and op == "="):
                    names.add(value or _unquote(label))
                elif label == "__name__" and op == "=~":
                    patterns.add("~" + value.replace("\\\\", "\\"))
                elif label == "le" and op in ("=", "=~"):
                    equal |= {label} if op == "=" else set()
                    self.buckets += [(metric, _bound(value)) for metric in (*names, *patterns)]
                elif op == "=" and value:
                    equal.add(label)
                self.accept(",")
        self.metrics |= names
        labels = self.known.get(next(iter(names), ""))
        return Vector(labels, frozenset(equal), frozenset((frozenset(names | patterns),)))

    def _arguments(self) -> tuple[list[Vector], list[str]]:
        vectors, texts = [], []
        self.take("(")
        while not self.accept(")"):
            if self.peek()[:1] in "\"'`":
                texts.append(_unquote(self.peek()))
            value = self.binary(1)
            if value is not None:
                vectors.append(value)
            self.accept(",")
        return vectors, texts

    def _call(self, name: str) -> Vector | None:
        vectors, texts = self._arguments()
        if name in _SCALARS or not vectors:
            return None if name in _SCALARS else Vector(frozenset())
        labels, needs = vectors[-1].labels, vectors[-1].needs
        if name in ("absent", "absent_over_time"):
            return Vector(vectors[-1].equal)
        if name == "histogram_quantile":
            return Vector(_without(labels, {"le"}), needs=needs, quantile=True)
        if name in ("label_replace", "label_join") and labels is not None:
            return Vector(labels | set(texts[:1]), needs=needs)
        return Vector(labels, vectors[-1].equal if name == "last_over_time" else frozenset(), needs)

    def _aggregation(self, name: str) -> Vector:
        how = self.accept("by", "without")
        names = self._names() if how else []
        vectors, texts = self._arguments()
        if not how and (how := self.accept("by", "without")):
            names = self._names()
        labels, needs = (vectors[-1].labels, vectors[-1].needs) if vectors else (None, ALWAYS)
        if name in ("topk", "bottomk"):
            return Vector(labels, needs=needs)
        more = frozenset(texts[:1]) if name == "count_values" else frozenset()
        if how.lower() == "without":
            kept = _without(labels, set(names))
            return Vector(None if kept is None else kept | more, needs=needs)
        return Vector(frozenset(names) | more, needs=needs)

    def _names(self) -> list[str]:
        names = []
        self.take("(")
        while not self.accept(")"):
            names.append(self.take())
            self.accept(",")
        return names

    def _matching(self) -> tuple[str, frozenset[str]]:
        how = self.accept("on", "ignoring").lower()
        return how, frozenset(self._names()) if how else frozenset()

    def _grouping(self) -> tuple[str, frozenset[str]]:
        side = self.accept("group_left", "group_right").lower()
        return side, frozenset(self._names()) if side and self.peek() == "(" else frozenset()


def _combine(
    op: str,
    left: Vector | None,
    right: Vector | None,
    matching: tuple[str, frozenset[str]],
    grouping: tuple[str, frozenset[str]],
) -> Vector | None:
    """Labels of a binary operation are those of its `many` side, or of the match; it needs both sides, or either."""
    compares = op in _COMPARISONS
    if left is None or right is None:
        one = right if left is None else left
        return one if one is None or not compares else replace(one, guarded=True)
    if op == "or":  # a label is certain only where both sides have it
        labels = right.labels if left.labels is None else _both(left.labels, right.labels)
        return Vector(labels, needs=left.needs | right.needs, guarded=left.guarded and right.guarded)
    if op == "unless":
        return Vector(left.labels, needs=left.needs, guarded=left.guarded)
    needs = frozenset(one | other for one in left.needs for other in right.needs)
    if op == "and":
        return Vector(left.labels, needs=needs)
    (how, names), (side, extra) = matching, grouping
    if side:
        many = left if side == "group_left" else right
        return Vector(None if many.labels is None else many.labels | extra, needs=needs)
    if how == "on":
        return Vector(names, needs=needs)
    return Vector(_without(left.labels, names) if how == "ignoring" else left.labels, needs=needs)


def _both(left: frozenset[str], right: frozenset[str] | None) -> frozenset[str]:
    return left if right is None else left & right


def _without(labels: frozenset[str] | None, names: set[str] | frozenset[str]) -> frozenset[str] | None:
    return None if labels is None else labels - names


def _bound(text: str) -> str:
    """Return the bound of a bucket; of several spellings the first."""
    return text.partition("|")[0].replace("\\", "")


def _unquote(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"', "`") else text
