"""Chunk size for streamed bytes: replay of an adaptive rule against a fixed size on measured round trips.

Rule: predicted = 0.7 last + 0.3 mean of the last eight round trips; size = 32 KiB x 100 ms / predicted, within 4 and 64
KiB. The replay assumes a link of `LINK` bytes/s, one chunk under way at a time (a chunk costs its bytes over the link
and a round trip), and bytes that are there when asked for: it compares rules, it does not predict a network.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

KIB = 1024
FIXED, BASE, LEAST, MOST = 16 * KIB, 32 * KIB, 4 * KIB, 64 * KIB
REFERENCE_S, MEMORY = 0.1, 8
LINK = 1_000_000.0


def adaptive(before: Sequence[float]) -> float:
    """Return the size for the next chunk from the round trips so far, in seconds; BASE before the first."""
    if not before:
        return BASE
    predicted = 0.7 * before[-1] + 0.3 * sum(before) / len(before)
    return min(max(BASE * (REFERENCE_S / predicted) if predicted > 0 else MOST, LEAST), MOST)


def replay(round_trips: Sequence[float]) -> list[dict[str, Any]]:
    """Return a row per policy over the same round trips; none below two."""
    if len(round_trips) < 2:
        return []
    seen: deque[float] = deque(maxlen=MEMORY)
    sizes = []
    for trip in round_trips:
        sizes.append(adaptive(tuple(seen)))
        seen.append(trip)
    return [_row("fixed 16 KiB", [float(FIXED)] * len(round_trips), round_trips), _row("adaptive", sizes, round_trips)]


def _row(policy: str, sizes: Sequence[float], trips: Sequence[float]) -> dict[str, Any]:
    each = [size / LINK + trip for size, trip in zip(sizes, trips, strict=True)]
    return {
        "policy": policy,
        "first_packet_s": sum(each) / len(each),
        "throughput_use": sum(sizes) / (LINK * sum(each)),
        "chunk_bytes": sum(sizes) / len(sizes),
        "n": len(trips),
    }
