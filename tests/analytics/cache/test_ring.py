"""Consistent hashing: the ring by hand, whose an imbalance is, keys that moved, and conflicts of versions."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cache.balance import shards
from analytics.cache.ring import Ring, check
from analytics.cache.versions import concurrent
from tests.analytics.cache.given import run
from tests.analytics.frames_of import requests, times

SHARDS = [f"10.0.0.{i}:8000" for i in range(8)]


def place(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode()).digest()[:8], "big")


def owner(key: str, nodes: int) -> str:
    """By the definition: the first point at or after the key's, else the first of all."""
    points = sorted((place(f"{shard}#{i}"), shard) for shard in SHARDS for i in range(nodes))
    return next((shard for point, shard in points if point >= place(key)), points[0][1])


def test_a_key_belongs_to_the_next_point_of_the_ring() -> None:
    ring = Ring(SHARDS, 16, "blake2b")
    keys = [f"conversation-{i}" for i in range(200)]
    assert [SHARDS[i] for i in ring.owners(keys)] == [owner(key, 16) for key in keys]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 8), st.integers(1, 64))
def test_the_arcs_are_the_whole_circle(count: int, nodes: int) -> None:
    assert Ring(SHARDS[:count], nodes, "md5").arcs().sum() == pytest.approx(1.0)


def test_a_shard_that_joins_takes_keys_and_moves_no_other() -> None:
    keys = [str(i) for i in range(2_000)]
    before, after = Ring(SHARDS[:7], 128, "blake2b").owners(keys), Ring(SHARDS, 128, "blake2b").owners(keys)
    assert set(after[before != after]) == {7}
    assert (before != after).mean() == pytest.approx(1 / 8, abs=0.03)


def served(weights: list[int], nodes: int = 128) -> pl.DataFrame:
    """Requests of keys with these weights, each where the ring has it."""
    keys = [f"k{i}" for i in range(len(weights))]
    at = Ring(SHARDS, nodes, "blake2b").owners(keys)
    return pl.DataFrame({"shard": [SHARDS[i] for i in at], "key": keys, "requests": weights})


def test_the_imbalance_of_many_equal_keys_is_the_rings_and_more_nodes_even_it_out() -> None:
    rows, nodes, said = check(served([1] * 20_000, 16), 16, "blake2b")
    assert "mostly the ring's" in said[0]
    assert [row["nodes"] for row in nodes] == [16, 32, 64, 128]
    assert nodes[0]["arc_cv"] > 2 * nodes[-1]["arc_cv"]
    assert nodes[0]["observed_cv"] == pytest.approx(nodes[0]["keys_cv"])
    assert sum(row["observed"] for row in rows) == pytest.approx(1)
    assert [row["moved_keys"] for row in rows] == [0] * 8


def test_the_imbalance_of_few_heavy_keys_is_theirs() -> None:
    _, nodes, said = check(served([1_000] * 3 + [1] * 2_000), 128, "blake2b")
    assert "mostly the keys' own" in said[0]
    assert nodes[0]["even_cv"] > 3 * nodes[0]["arc_cv"]


def test_equal_keys_on_an_even_ring_scatter_as_expected() -> None:
    rng = np.random.default_rng(5)
    load = [np.bincount(rng.integers(0, 8, 400), minlength=8) for _ in range(300)]
    spread = np.mean([one.std() / one.mean() for one in load])
    _, nodes, _ = check(served([1] * 400), 128, "blake2b")
    assert nodes[0]["even_cv"] == pytest.approx(spread, rel=0.1)


def test_keys_that_sit_elsewhere_are_counted_and_another_routers_ring_is_told() -> None:
    good = served([1] * 1_000)
    lost = pl.col("shard") == SHARDS[3]
    moved = good.with_columns(pl.when(lost).then(pl.lit(SHARDS[5])).otherwise("shard").alias("shard"))
    rows, _, _ = check(pl.concat([moved, good.filter(lost).head(1)]), 128, "blake2b")
    by = {row["shard"]: row for row in rows}
    assert by[SHARDS[5]]["moved_keys"] == good.filter(lost).height
    assert by[SHARDS[0]]["moved_keys"] == 0
    rows, _, said = check(good, 128, "sha256")
    assert "not how they are routed" in said[1]
    assert rows[0].get("moved_keys") is None


def test_requests_are_checked_by_their_conversation() -> None:
    n = 400
    names = [f"k{i % 40}" for i in range(n)]
    at = [SHARDS[i] for i in Ring(SHARDS, 128, "blake2b").owners(names)]
    spans = requests({"ts": times(range(n)), "server_address": at, "gen_ai.conversation.id": names,
                      "input_tokens": [10] * n, "cached_input_tokens": [5] * n, "service": ["llm"] * n})  # fmt: skip
    result = run({"requests": spans})
    assert result.frames["ring"]["moved_requests"].sum() == 0
    assert result.frames["ring"]["keys"].sum() == 40
    assert any("by the ring" in note for note in result.notes)
    nameless = run({"requests": spans.drop("gen_ai.conversation.id")})
    assert any("it is not checked" in note for note in nameless.notes)
    assert nameless.frames["ring"].is_empty()


def test_versions_are_in_conflict_where_neither_has_seen_the_other() -> None:
    assert concurrent({"a": 2, "b": 1}, {"a": 1, "b": 2})
    assert not concurrent({"a": 2, "b": 2}, {"a": 1, "b": 2})
    assert not concurrent({"a": 1}, {"a": 1})


def test_shards_have_bytes_and_conflicts_where_they_are_known() -> None:
    def event(stream: str, block: int, vector: dict[str, int] | None) -> dict[str, object]:
        text = None if vector is None else json.dumps({"version_vector": vector})
        return {"ts": times([0])[0], "kind": "stored", "stream": stream, "instance": None, "block_hashes": [block],
                "block_size": 16, "attributes": text}  # fmt: skip

    events = pl.DataFrame(
        [event("a", 1, {"a": 1}), event("b", 1, {"b": 1}), event("b", 2, {"b": 2}), event("c", 2, None)]
    )
    events = events.cast({"instance": pl.String})
    none = requests({"ts": times([0]), "server_address": [None], "input_tokens": [1]})
    rows = shards(none, events, bytes_per_token=1000.0, versions="version_vector")
    assert [(row["shard"], row["blocks"], row["bytes"], row["conflicts"]) for row in rows] == [
        ("a", 1, 16_000.0, 1), ("b", 2, 32_000.0, 1), ("c", 1, 16_000.0, 0),
    ]  # fmt: skip
    unknown = shards(none, events)
    assert {(row["bytes"], row["conflicts"]) for row in unknown} == {(None, None)}
