"""Which series moved with an incident, and where along the calls between services it began.

Pure functions that analyses share; there is no command of this name. They import polars: import them where a run does.
"""

from analytics.root_cause.calls import Cause, added, calls_of_spans, root_causes
from analytics.root_cause.incident import Times, callers, causes, entries, measured
from analytics.root_cause.moves import moved, scores

__all__ = [
    "Cause", "Times", "added", "callers", "calls_of_spans", "causes", "entries", "measured", "moved", "root_causes",
    "scores",
]  # fmt: skip
