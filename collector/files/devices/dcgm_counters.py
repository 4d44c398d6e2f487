"""The counters file of dcgm-exporter (-f FILE): which fields it exports, as which type."""

from typing import NamedTuple

from store.errors import SourceError

_TYPES = frozenset({"gauge", "counter", "label", "histogram", "summary"})


class Counter(NamedTuple):
    """One line of the file: DCGM field, Prometheus type, help text, and the line it stands at."""

    field: str
    kind: str
    help: str
    line: int


def read_counters(text: str) -> list[Counter]:
    """Return the counters of a file, in its order; a line that begins with # is none.

    Raises SourceError, beginning with the line, for a line without field and type or with an unknown type.
    """
    found = []
    for number, part in enumerate(text.split("\n"), 1):
        if not part.strip() or part.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in part.split(",", 2)]
        if len(cells) < 2 or not cells[0] or cells[1].lower() not in _TYPES:
            raise SourceError(
                f"{number}: no counter of dcgm-exporter: {part.strip()[:80]!r}",
                "write it like DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).",
            )
        found.append(Counter(cells[0], cells[1].lower(), cells[2] if len(cells) > 2 else "", number))
    return found
