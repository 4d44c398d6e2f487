"""Objectives of a comparison: a figure, and whether less or more of it is better."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from store.errors import UsageError

LESS = ("_s", "error_ratio", "cost_per_1k", "cost_per_request")
MORE = ("per_second",)
HINT = "write two or three, like ttft_p99_s:min,throughput_tokens_per_second:max,cost_per_1k:min"
_NAME = re.compile(r"[A-Za-z][\w.]*")


@dataclass(frozen=True, slots=True)
class Objective:
    """One figure; `sign` makes less of it better: 1, or -1 where more is."""

    name: str
    sign: int

    @property
    def text(self) -> str:
        """How it was asked for."""
        return f"{self.name}:{'min' if self.sign == 1 else 'max'}"


def parse_objectives(texts: Sequence[str]) -> tuple[Objective, ...]:
    """Read 'ttft_p99_s:min'; the direction may be left out where the name says it. Raises UsageError otherwise."""
    found = tuple(_parse(text.strip()) for text in texts)
    names = [one.name for one in found]
    if not 2 <= len(found) <= 3 or len(set(names)) < len(names):
        raise UsageError(f"{', '.join(texts) or 'nothing'}: a front is over two or three objectives", HINT)
    return found


def _parse(text: str) -> Objective:
    name, _, way = text.partition(":")
    if not way:
        way = "max" if name.endswith(MORE) else "min" if name.endswith(LESS) else ""
    if not _NAME.fullmatch(name) or way not in ("min", "max"):
        raise UsageError(f"{text!r} is no objective", HINT)
    return Objective(name, 1 if way == "min" else -1)
