"""Blocks whose copies on two shards do not know of each other: conflicts by version vector."""

import json
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import polars as pl

Vector = Mapping[str, int]


def concurrent(one: Vector, other: Vector) -> bool:
    """Whether neither vector has seen all that the other has (Parker et al. 1983)."""
    names = set(one) | set(other)
    ahead = any(one.get(name, 0) > other.get(name, 0) for name in names)
    behind = any(one.get(name, 0) < other.get(name, 0) for name in names)
    return ahead and behind


def conflicts(stored: pl.DataFrame, name: str) -> dict[str, int] | None:
    """Count blocks in conflict per shard by the latest version each shard stored; None where no event has one.

    `stored` has shard, block_hashes and attributes (JSON), in order of time; `name` is the attribute of the vector.
    """
    latest: dict[int, dict[str, Vector]] = {}
    for shard, blocks, text in stored.select("shard", "block_hashes", "attributes").drop_nulls().iter_rows():
        vector = _vector(text, name)
        if vector is not None:
            for block in blocks:
                latest.setdefault(block, {})[shard] = vector
    if not latest:
        return None
    found: dict[str, int] = {}
    for copies in latest.values():
        pairs = [pair for pair in combinations(copies, 2) if concurrent(copies[pair[0]], copies[pair[1]])]
        for shard in {shard for pair in pairs for shard in pair}:
            found[shard] = found.get(shard, 0) + 1
    return found


def _vector(text: str, name: str) -> Vector | None:
    try:
        value: Any = json.loads(text).get(name)
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, AttributeError):
        return None
    known = isinstance(value, dict) and all(isinstance(count, int) for count in value.values())
    return value if known and value else None
