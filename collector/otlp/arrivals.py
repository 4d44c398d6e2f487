"""When the parts of a streamed answer arrived: from span events that are one chunk each, or from arrays of times.

Names of arrays: one of `STEMS`, a dot, `offsets` or `arrival_offsets` (after the start of the span) or `timestamps` or
`arrival_times` (Unix), `_` and the unit s, ms, us or ns. `<stem>.counts` says how many tokens each event carried.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from collector.otlp.values import count

Event = tuple[str, int, dict[str, Any]]
"""Name, Unix time in ns, attributes."""

CHUNK_EVENTS = frozenset({"gen_ai.content.completion.chunk", "llm.content.completion.chunk", "gen_ai.content.chunk"})
"""Span events of which there is one for every chunk."""

FIRST_EVENTS = frozenset({"ai.stream.firstChunk", "First Token Stream Event", "first_token", "llm.first_token"})
"""Span events that mark the first token only: they give ttft_s, and no arrivals."""

STEMS = (
    "infractl.token", "infractl.chunk", "gen_ai.token", "gen_ai.chunk", "gen_ai.response.token",
    "gen_ai.response.chunk", "gen_ai.server.token", "llm.token", "llm.chunk",
)  # fmt: skip
_AFTER_START, _UNIX = ("offsets", "arrival_offsets"), ("timestamps", "arrival_times")
_NANOS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_TOKENS = ("tokens", "token_count", "gen_ai.chunk.tokens", "llm.chunk.tokens")

BEFORE_START, OUT_OF_ORDER, UNEQUAL = "token_before_start", "token_out_of_order", "token_counts_do_not_match"
REASONS = frozenset({BEFORE_START, OUT_OF_ORDER, UNEQUAL})
"""What is counted of arrivals: their spans are stored all the same."""
_MAX_NS = 2**63


class Times(NamedTuple):
    """Times in ns as a span states them, after its start or Unix."""

    after_start: bool
    at_ns: list[int]


class Arrivals(NamedTuple):
    """Arrivals of one span: µs after its start, in order; tokens of each (None: each is one); and what was wrong.

    `paints_us` are the frames of a browser that showed new text.
    """

    offsets_us: list[int]
    tokens: list[int] | None
    doubts: Mapping[str, int]
    paints_us: list[int] | None = None


def times(value: Any, *, after_start: bool, nanos: int) -> Times | None:
    """Return an array of numbers (or its JSON text) as times; None for anything else."""
    items = _array(value)
    if items is None or not all(_is_number(item) for item in items):
        return None
    at_ns = [item * nanos if isinstance(item, int) else round(item * nanos) for item in items]
    return Times(after_start, at_ns) if all(abs(at) < _MAX_NS for at in at_ns) else None


def counts(value: Any) -> list[int] | None:
    """Return an array of whole numbers (or its JSON text) that are not negative; None for anything else."""
    found = [count(item) for item in _array(value) or ()]
    return [n for n in found if n is not None] if found and None not in found else None


ARRIVAL_NAMES: dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "arrivals": tuple(
        (f"{stem}.{word}_{unit}", partial(times, after_start=word in _AFTER_START, nanos=nanos))
        for stem in STEMS
        for word in (*_AFTER_START, *_UNIX)
        for unit, nanos in _NANOS.items()
    ),
    "arrival_tokens": tuple((f"{stem}.counts", counts) for stem in STEMS),
    "paints": (("infractl.paint.offsets_us", partial(times, after_start=True, nanos=1000)),),
}
"""Names of arrays, as in the reader table."""


def stated(given: Times, tokens: list[int] | None, start_ns: int) -> Arrivals:
    """Return the arrivals that an array states."""
    shift = 0 if given.after_start else start_ns
    doubts = {}
    if tokens is not None and len(tokens) != len(given.at_ns):
        doubts[UNEQUAL], tokens = 1, None
    return _ordered([at - shift for at in given.at_ns], tokens, doubts)


def seen(events: Sequence[Event], start_ns: int) -> Arrivals | None:
    """Return the arrivals that chunk events tell; None where there is no such event. A chunk of no tokens is none."""
    chunks = [(at - start_ns, _tokens_of(attributes)) for name, at, attributes in events if name in CHUNK_EVENTS]
    if not chunks:
        return None
    told = any(tokens is not None for _, tokens in chunks)
    tokens = [1 if tokens is None else tokens for _, tokens in chunks]
    return _ordered([offset for offset, _ in chunks], tokens if told else None, {})


def first_token_ns(events: Sequence[Event]) -> int:
    """Time of the earliest event that marks a token, -1 where there is none."""
    marks = (at for name, at, attributes in events if _marks_token(name, attributes))
    return min(marks, default=-1)


def _marks_token(name: str, attributes: Mapping[str, Any]) -> bool:
    return name in FIRST_EVENTS or (name in CHUNK_EVENTS and _tokens_of(attributes) != 0)


def _tokens_of(attributes: Mapping[str, Any]) -> int | None:
    """Tokens of a chunk, where an attribute says so."""
    return next((n for key in _TOKENS if (n := count(attributes.get(key))) is not None), None)


def _ordered(offsets_ns: list[int], tokens: list[int] | None, doubts: dict[str, int]) -> Arrivals:
    """Sort by time, leave out what lies before the start or carries no token, and count."""
    pairs = [(at, n) for at, n in zip(offsets_ns, tokens or [1] * len(offsets_ns), strict=True) if n]
    after = [pair for pair in pairs if pair[0] >= 0]
    if len(after) < len(pairs):
        doubts[BEFORE_START] = len(pairs) - len(after)
    late = sum(one[0] > two[0] for one, two in pairwise(after))
    if late:
        doubts[OUT_OF_ORDER] = late
        after.sort(key=lambda pair: pair[0])
    plain = all(n == 1 for _, n in after)
    return Arrivals([at // 1000 for at, _ in after], None if plain else [n for _, n in after], doubts)


def _array(value: Any) -> list[Any] | None:
    if isinstance(value, str) and value[:1] == "[":
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, list) and value else None


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool) and math.isfinite(item)
