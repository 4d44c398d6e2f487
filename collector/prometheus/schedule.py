"""When a target is scraped: spread over its interval, less often while it keeps failing."""

from hashlib import blake2b
from math import ceil

from collector.prometheus.targets import Target

PATIENCE = 2
"""Failures in a row before a target is tried less often: a restart of an engine is to be seen at once."""
MOST_INTERVALS = 8
LONGEST_S = 240.0
"""Longest wait for a target that fails (unless its interval is longer): below the five minutes after which a target
without a sample of `up` has no state."""


def offset_s(target: Target) -> float:
    """Return when in its interval a target is scraped: fixed for a target, spread evenly over targets."""
    text = repr((target.url, sorted(target.labels.items()))).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64 * target.interval_s


def intervals(interval_s: float, failing: int) -> int:
    """Return how many intervals to wait after `failing` failures in a row: 1, 1, 1, 2, 4, 8, 8, …, bounded in time."""
    most = max(1, min(MOST_INTERVALS, int(LONGEST_S / interval_s)))
    return min(most, 1 << max(0, min(failing, PATIENCE + MOST_INTERVALS) - PATIENCE))


def next_due_s(due_s: float, now_s: float, interval_s: float, failing: int) -> float:
    """Return the next turn after the one at `due_s`, on the target's own grid; turns that have passed are skipped."""
    missed = ceil((now_s - due_s) / interval_s)
    return due_s + interval_s * max(intervals(interval_s, failing), missed)
