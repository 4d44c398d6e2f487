"""What a consistent-hash ring would do with the keys: how much of an imbalance is the ring's, how much the keys'."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

HASHES = ("blake2b", "md5", "sha1", "sha256")
MORE = (1, 2, 4, 8)
"""Times the virtual nodes asked for, to see what more of them give."""
FOREIGN = 0.5
"""Share of the requests that chance alone would misplace, from which the ring is taken not to be the router's."""
NO_KEY = "ring: no key that requests are routed by is known, so it is not checked (--key)"
_CIRCLE = 2.0**64


class Ring:
    """Points of every shard's virtual nodes, the hash of `SHARD#NUMBER`; a key belongs to the next point after its own.

    Hashes are the first 8 bytes of the digest, big-endian (Karger et al. 1997).
    """

    def __init__(self, shards: Sequence[str], nodes: int, kind: str) -> None:
        self.kind = kind
        points = hashed((f"{shard}#{number}" for shard in shards for number in range(nodes)), kind)
        order = np.argsort(points, kind="stable")
        self.points, self.owner = points[order], np.repeat(np.arange(len(shards)), nodes)[order]
        self.shards = len(shards)

    def owners(self, keys: Iterable[str]) -> NDArray[np.intp]:
        """Return the number of the shard of each key."""
        at = np.searchsorted(self.points, hashed(keys, self.kind), side="left") % len(self.points)
        found: NDArray[np.intp] = self.owner[at]
        return found

    def arcs(self) -> NDArray[np.float64]:
        """Return the share of the circle of each shard."""
        before = np.concatenate([self.points[-1:], self.points[:-1]])
        length = (self.points - before).astype(np.float64)  # unsigned: the first wraps around
        return np.bincount(self.owner, length, self.shards) / _CIRCLE


def hashed(texts: Iterable[str], kind: str) -> NDArray[np.uint64]:
    """Places on the circle."""
    digest = getattr(hashlib, kind)
    return np.array([int.from_bytes(digest(text.encode()).digest()[:8], "big") for text in texts], dtype=np.uint64)


def cv(load: NDArray[Any]) -> float | None:
    """Return the standard deviation over the mean; None without load."""
    return float(load.std() / load.mean()) if load.sum() > 0 else None


def check(served: pl.DataFrame, nodes: int, kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """Rows of ring and nodes, and what they say. `served` has shard, key (may be null) and requests."""
    shards = sorted(served["shard"].unique().to_list())
    if len(shards) < 2:
        return [], [], []
    keyed = served.drop_nulls("key").group_by("shard", "key").agg(pl.col("requests").sum()).sort("shard", "key")
    known = keyed.group_by("key").agg(pl.col("requests").sum()).sort("key")
    weight = known["requests"].to_numpy().astype(np.float64)
    if not len(weight):
        return [], [], [NO_KEY]
    ring, observed = Ring(shards, nodes, kind), _load(keyed, shards)
    rows: list[dict[str, Any]] = [
        {"shard": shard, "arc": float(arc)} for shard, arc in zip(shards, ring.arcs(), strict=True)
    ]
    sizes = [_nodes(Ring(shards, nodes * more, kind), nodes * more, known, weight, observed) for more in MORE]
    owner = ring.owners(keyed["key"])
    here = np.searchsorted(np.array(shards), keyed["shard"].to_numpy())
    moved = np.where(owner != here, keyed["requests"].to_numpy(), 0)
    away = moved.sum() / observed.sum()
    own = away < FOREIGN * (1 - 1 / len(shards))
    by_ring = np.bincount(ring.owners(known["key"]), weight, len(shards))
    for i, row in enumerate(rows):
        row |= {"by_ring": by_ring[i] / weight.sum(), "observed": observed[i] / observed.sum()}
        row["keys"] = int((here == i).sum())
        if own:
            row |= {"moved_keys": int((moved[here == i] > 0).sum()), "moved_requests": int(moved[here == i].sum())}
    return rows, sizes, _said(sizes[0], own, away, nodes, kind)


def _load(keyed: pl.DataFrame, shards: Sequence[str]) -> NDArray[np.float64]:
    found = dict(keyed.group_by("shard").agg(pl.col("requests").sum()).iter_rows())
    return np.array([found.get(shard, 0) for shard in shards], dtype=np.float64)


def _nodes(
    ring: Ring, nodes: int, known: pl.DataFrame, weight: NDArray[np.float64], observed: NDArray[np.float64]
) -> dict[str, Any]:
    share = weight / weight.sum()
    placed = np.bincount(ring.owners(known["key"]), weight, ring.shards)
    even = float(np.sqrt(np.square(share).sum() * (ring.shards - 1)))
    loads = {"keys_cv": cv(placed), "observed_cv": cv(observed), "even_cv": even}
    return {"nodes": nodes, "arc_cv": cv(ring.arcs())} | loads


def _said(row: dict[str, Any], own: bool, away: float, nodes: int, kind: str) -> list[str]:
    """Say whose the imbalance is. Variances of ring and keys add up where keys are placed by hash."""
    ringed, skewed = row["arc_cv"] or 0.0, row["even_cv"] or 0.0
    whose = (
        "mostly the keys' own: few of them carry much of the load, and more virtual nodes do not help"
        if skewed > ringed
        else "mostly the ring's: its arcs differ, and more virtual nodes even them out"
    )
    about = f"ring of {nodes} virtual nodes per shard ({kind})"
    loads = f"load CV {row['observed_cv']:.2f} observed, {row['keys_cv']:.2f} by the ring"
    parts = f"expected from its arcs {ringed:.2f}, from the keys' weights {skewed:.2f}"
    foreign = f"{away:.0%} of the requests sit elsewhere than this ring says: it is not how they are routed"
    return [f"{about}: {loads}; {parts}: {whose}", *([] if own else [foreign])]
