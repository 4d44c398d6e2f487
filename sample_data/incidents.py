"""`Incident`: what went wrong when, with which service; the truth that findings are held against."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.window import format_time, parse_time


@dataclass(frozen=True, slots=True)
class Incident:
    """One labelled incident; times are UTC.

    `start` and `end` bound the cause, `settled` is when its effect had gone (a queue needs time to drain). `driver` is
    the canonical metric that moves with it, None for errors and costs. `text` is what a person should be told.
    `seen_by` names further services that see the effect: the clients of `service`.
    """

    id: str
    kind: str
    service: str
    start: datetime
    end: datetime
    settled: datetime
    driver: str | None
    text: str
    seen_by: tuple[str, ...] = ()

    @property
    def nature(self) -> str:
        """Where it shows: in "errors", "cost", "connections" or "latency"."""
        return {"error": "errors", "cost": "cost", "connection": "connections"}.get(
            self.kind.partition("_")[0], "latency"
        )


def to_json(incidents: Iterable[Incident]) -> bytes:
    """Write a truth file: a JSON list, times RFC 3339."""
    import orjson

    rows = [{field: _plain(getattr(item, field)) for field in Incident.__slots__} for item in incidents]
    return orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n"


def from_json(text: bytes) -> list[Incident]:
    """Read a truth file back."""
    import orjson

    return [_read(row) for row in orjson.loads(text)]


def _plain(value: Any) -> Any:
    return format_time(value) if isinstance(value, datetime) else value


def _read(row: dict[str, Any]) -> Incident:
    times = {name: parse_time(row[name]) for name in ("start", "end", "settled")}
    return Incident(**{**row, **times, "seen_by": tuple(row["seen_by"])})
