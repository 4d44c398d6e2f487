"""`queue_s` of an SGLang request from its stage span `prefill_waiting`, where both came in one request.

In disaggregated serving each of the two engines queues: `prefill_waiting` is the one that delays the first token.
"""

from collections.abc import Iterable
from typing import Any

_STAGE = "prefill_waiting"


def queue_from_stages(rows: Iterable[dict[str, Any]]) -> None:
    """Set `queue_s` of the request above a waiting stage, unless it states its own."""
    rows = list(rows)
    waiting = [row for row in rows if row["name"] == _STAGE and row["duration_s"] is not None]
    if not waiting:
        return
    by_id = {(row["trace_id"], row["span_id"]): row for row in rows}
    for stage in waiting:
        request = _request_above(stage, by_id)
        if request is not None and "queue_s" not in request:
            request["queue_s"] = stage["duration_s"]


def _request_above(row: dict[str, Any], by_id: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any] | None:
    """Nearest span above that has a time in the model; None where it came in another batch, or parents in a circle."""
    for _ in range(len(by_id)):
        above = by_id.get((row["trace_id"], row["parent_span_id"] or ""))
        if above is None or "inference_s" in above:
            return above
        row = above
    return None
