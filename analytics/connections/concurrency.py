"""Requests in progress: exactly, from their starts and ends."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def in_progress(start: Array, seconds: Array, edges: Array) -> tuple[Array, NDArray[np.int64]]:
    """Mean and most requests in progress between each two edges (seconds, ascending; so are starts).

    The mean is the time of requests that lies in a bucket over its length, which is Little's law (1961) without its
    assumption of a steady state: what began before counts with the part that lies within.
    """
    if edges.size < 2:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    end = np.sort(start + seconds)
    area = _area(start, edges) - _area(end, edges)
    mean = np.diff(area) / np.diff(edges)
    return np.maximum(mean, 0.0), _peaks(start, end, edges)


def _area(times: Array, edges: Array) -> Array:
    """Sum over the times before each edge of how long before it they lie."""
    count = np.searchsorted(times, edges, side="left")
    total = np.concatenate([[0.0], np.cumsum(times)])
    return np.asarray(count * edges - total[count])


def _peaks(start: Array, end: Array, edges: Array) -> NDArray[np.int64]:
    """Most at once in each bucket: after each start within it, or what was in progress at its first edge.

    A request that ends when another starts is over by then.
    """
    after_start = np.arange(1, start.size + 1) - np.searchsorted(end, start, side="right")
    at_edge = np.searchsorted(start, edges[:-1], side="right") - np.searchsorted(end, edges[:-1], side="right")
    bucket = np.searchsorted(edges, start, side="right") - 1
    inside = (bucket >= 0) & (bucket < edges.size - 1)
    peak: NDArray[np.int64] = np.maximum(at_edge, 0).astype(np.int64)
    np.maximum.at(peak, bucket[inside], after_start[inside])
    return peak
