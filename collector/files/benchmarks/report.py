"""`Report`: the runs and requests that one artefact states, as its reader hands them over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: the metric under our name, which statistic of it, its value in base units and their name."""

    metric: str
    statistic: str
    value: float
    unit: str


@dataclass(slots=True)
class Run:
    """One run, or one stage of it. `ts_us` is its start in microseconds since 1970, None where nothing states it."""

    name: str
    tool: str
    stage: str = ""
    ts_us: int | None = None
    engine: str | None = None
    model: str | None = None
    concurrency: float | None = None
    request_rate: float | None = None
    labels: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)

    def add(self, metric: str, statistic: str, value: Any, unit: str, scale: float = 1.0) -> None:
        """Add a figure, unless its value is no finite number."""
        number = finite(value)
        if number is not None:
            self.figures.append(Figure(metric, statistic, times(number, scale), unit))


@dataclass(slots=True)
class Request:
    """One request of a run. `key` is what makes it one: its id, else its place; `offsets_us` its token arrivals."""

    run: Run
    key: str
    ts_us: int | None
    operation: str = "inference"
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    request_id: str | None = None
    error_code: str | None = None
    message: str | None = None
    offsets_us: list[int] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """What was read, what was refused (reason → count and place of the first), and remarks."""

    runs: list[Run] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str, where: str) -> None:
        """Count something refused."""
        count, first = self.refused.get(reason, (0, where))
        self.refused[reason] = (count + 1, first)


def finite(value: Any) -> float | None:
    """Return a number, also one written as text; None for anything else, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def positive(value: Any, scale: float = 1.0) -> float | None:
    """Return a time or size above zero; None for zero, which a failed request leaves where it measured nothing."""
    number = finite(value)
    return None if number is None or number <= 0 else times(number, scale)


def whole(value: Any) -> int | None:
    """Return a count that is not negative; None for anything else. A whole number keeps all its digits."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else finite(value)
    return round(number) if number is not None and 0 <= number < 2**62 else None


def times(number: float, scale: float) -> float:
    """Multiply, or divide where that is exact: 12.3 ms are 0.0123 s, but 12.3 x 0.001 is 0.012300000000000002."""
    return number * scale if scale >= 1 else number / round(1 / scale)


def section(document: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one where there is none."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}
