"""The spans of one trace as a tree: order, depth, place on the time axis, and which were on the critical path."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

SEGMENTS = (("queue_s", "queue"), ("prefill_s", "prefill"), ("decode_s", "decode"))
"""Parts of a model request in the order they happen; engines report them as fields of one span."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a waterfall. Times in seconds from the start of the trace; `end_s` is None for an open span."""

    span: dict[str, Any]
    depth: int
    start_s: float
    end_s: float | None
    critical: bool
    orphan: bool

    @property
    def segments(self) -> list[tuple[str, float]]:
        """Names and lengths (s) of the parts that the span reports, in order of time."""
        return [(name, self.span[key]) for key, name in SEGMENTS if (self.span.get(key) or 0) > 0]


def rows(spans: "pl.DataFrame") -> list[Row]:
    """Lay the spans of a trace out: parents before children, brothers by start. A lost parent makes an orphan."""
    items = spans.sort("ts", "span_id").to_dicts()
    known = {item["span_id"] for item in items}
    children: dict[str | None, list[dict[str, Any]]] = {}
    for item in items:
        parent = item["parent_span_id"]
        children.setdefault(parent if parent in known and parent != item["span_id"] else None, []).append(item)
    if not items:
        return []
    first, critical = items[0]["ts"], critical_path(children)
    out: list[Row] = []
    seen: set[str] = set()
    # Behind the roots stand all spans again: those in a ring of parents are reached from nowhere else.
    stack = [(item, 0) for item in reversed([*children.get(None, []), *items])]
    while stack:
        item, depth = stack.pop()
        if item["span_id"] in seen:
            continue
        seen.add(item["span_id"])
        start = (item["ts"] - first).total_seconds()
        end = None if item["duration_s"] is None else start + item["duration_s"]
        orphan = item["parent_span_id"] is not None and item["parent_span_id"] not in known
        out.append(Row(item, depth, start, end, item["span_id"] in critical, orphan))
        stack += [(child, depth + 1) for child in reversed(children.get(item["span_id"], []))]
    return out


def critical_path(children: dict[str | None, list[dict[str, Any]]]) -> frozenset[str]:
    """Return the spans that the end of the longest root waited for: going back in time, the child that ended last."""
    roots = children.get(None, [])
    if not roots:
        return frozenset()
    path: set[str] = set()
    todo = [max(roots, key=lambda item: item["duration_s"] or 0.0)]
    while todo:
        item = todo.pop()
        path.add(item["span_id"])
        until = _end(item)
        for child in sorted(children.get(item["span_id"], []), key=_end, reverse=True):
            if min(_end(child), _end(item)) <= until and child["ts"] < until:
                todo.append(child)
                until = child["ts"]
    return frozenset(path)


def _end(item: dict[str, Any]) -> datetime:
    at: datetime = item["ts"]
    return at + timedelta(seconds=item["duration_s"] or 0.0)
