"""A Result as JSON and back, exactly: times RFC 3339 UTC, undefined numbers null, never NaN or Infinity.

Decimals and whole numbers beyond 64 bits are numbers with all their digits. Read back, a declared column has its kind;
elsewhere a fraction is a float where that has the same digits, else a Decimal.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analytics.result import Finding, Frames, Result, Severity, Status
from store.columns import Column, Kind
from store.money import money_text
from store.window import Window, format_time, parse_time

if TYPE_CHECKING:
    import polars as pl

_64_BITS = 2**63


def to_dict(result: Result) -> dict[str, Any]:
    """Plain values for orjson in the shape of docs/cli.md ("Result as JSON")."""
    return {
        "analysis": result.analysis,
        "status": str(result.status),
        "window": {"start": format_time(result.window.start), "end": format_time(result.window.end)},
        "params": {k: plain(v) for k, v in result.params.items()},
        "samples": {name: rows(frame) for name, frame in result.samples.items()},
        "frames": {name: rows(frame) for name, frame in result.frames.items()},
        "findings": [_finding(f) for f in result.findings],
        "notes": list(result.notes),
    }


def to_json(result: Result) -> bytes:
    """UTF-8 JSON text of a Result."""
    import orjson

    return orjson.dumps(to_dict(result))


def rows(frame: "pl.DataFrame") -> list[dict[str, Any]]:
    """Rows as plain JSON values: NaN and infinities become null, times RFC 3339."""
    return [{k: plain(v) for k, v in row.items()} for row in whole(frame).iter_rows(named=True)]


def whole(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Return sums of integers, which DuckDB gives as decimals of 38 digits, as integers: those may have 39."""
    import polars as pl

    sums = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Decimal) and kind.scale == 0]
    return frame.with_columns(pl.col(name).cast(pl.Int128) for name in sums)


def from_json(text: bytes, frames: Frames) -> Result:
    """Read a Result back; `frames` are the analysis' declared frames, which give the columns their types."""
    data = json.loads(text, parse_float=_fraction)
    return Result(
        analysis=data["analysis"],
        status=Status(data["status"]),
        window=Window(parse_time(data["window"]["start"]), parse_time(data["window"]["end"])),
        params=data["params"],
        samples={name: _frame(items, (Column("value", Kind.FLOAT, ""),)) for name, items in data["samples"].items()},
        frames={name: _frame(items, frames.get(name, ())) for name, items in data["frames"].items()},
        findings=tuple(_read_finding(item) for item in data["findings"]),
        notes=tuple(data["notes"]),
    )


def plain(value: Any) -> Any:
    """Value as orjson takes it: NaN and infinities null, times RFC 3339, tuples as lists, every digit of a number."""
    if isinstance(value, Decimal):
        return _digits(money_text(value)) if value.is_finite() else None
    if isinstance(value, int) and not -_64_BITS <= value < _64_BITS:
        return _digits(str(value))
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinities differ from themselves
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def _digits(text: str) -> Any:
    """Return a number that orjson writes digit for digit: it has no decimals and no integers beyond 64 bits."""
    import orjson

    return orjson.Fragment(text)


def _fraction(text: str) -> float | Decimal:
    """Read a fraction: a float where it has the very digits, else a decimal."""
    exact, near = Decimal(text), float(text)
    return near if Decimal(repr(near)) == exact else exact


def _finding(item: Finding) -> dict[str, Any]:
    return {
        "trigger": item.trigger,
        "severity": str(item.severity),
        "labels": dict(item.labels),
        "value": plain(item.value),
        "expected": plain(item.expected),
        "since": format_time(item.since),
        "until": None if item.until is None else format_time(item.until),
        "summary": item.summary,
        "evidence": plain(dict(item.evidence)),
    }


def _read_finding(item: dict[str, Any]) -> Finding:
    return Finding(
        trigger=item["trigger"],
        severity=Severity(item["severity"]),
        labels=item["labels"],
        value=item["value"],
        expected=(item["expected"][0], item["expected"][1]),
        since=parse_time(item["since"]),
        until=None if item["until"] is None else parse_time(item["until"]),
        summary=item["summary"],
        evidence=item["evidence"],
    )


def _frame(items: list[dict[str, Any]], columns: tuple[Column, ...]) -> "pl.DataFrame":
    """Rows to a frame; a column that is not declared is a text label."""
    import polars as pl

    kinds = {c.name: c.kind for c in columns}
    names = list(items[0]) if items else [c.name for c in columns]
    data = {}
    for name in names:
        kind = kinds.get(name, Kind.TEXT)
        values = [item[name] for item in items]
        if kind is Kind.TIME:
            values = [None if v is None else _naive(v) for v in values]
        elif kind is Kind.FLOAT:
            values = [None if v is None else float(v) for v in values]
        elif kind is Kind.MONEY:
            values = [None if v is None else Decimal(str(v)) for v in values]
        large = kind is Kind.INT and any(v is not None and not -_64_BITS <= v < _64_BITS for v in values)
        data[name] = pl.Series(name, values, dtype=pl.Int128() if large else kind.polars())
    return pl.DataFrame(data)


def _naive(text: str) -> datetime:
    return parse_time(text).astimezone(UTC).replace(tzinfo=None)
