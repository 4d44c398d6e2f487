"""Quality per compression level, and how a score decays over the turns of conversations."""

import numpy as np
import polars as pl
import pytest

from analytics.cache.quality import weighted
from analytics.stats.decay import form
from tests.analytics.cache.given import run
from tests.analytics.frames_of import requests, times

GAMMA = 0.985


def test_the_weighted_mean_counts_the_latest_turn_most() -> None:
    values = np.array([1.0, 2.0, 4.0])
    expected = (1 * 0.25 + 2 * 0.5 + 4) / 1.75
    assert weighted(values, 0.5) == pytest.approx(expected)
    assert weighted(np.full(50, 3.0), GAMMA) == pytest.approx(3.0)


def scored(levels: dict[str, tuple[float, float]], turns: int = 200) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    names = [name for name in levels for _ in range(turns)]
    quality = np.concatenate([rng.normal(mean, 1.0, turns) for mean, _ in levels.values()])
    ttft = np.concatenate([rng.normal(s, 0.005, turns) for _, s in levels.values()])
    columns = {"ts": times(range(len(names))), "ttft_s": ttft, "compression_level": names}
    return requests(columns | {"quality_score": [str(q) for q in quality], "service": ["llm"] * len(names)})


def test_what_a_level_costs_is_held_against_the_least_compressed_one() -> None:
    spans = scored({"0.856": (33.5, 0.123), "none": (40.0, 0.1), "0.683": (38.8, 0.1087)})
    frame = run({"requests": spans}).frames["compression"]
    assert frame["level"].to_list() == ["none", "0.683", "0.856"]
    assert frame["windows"].to_list() == [4, 4, 4]
    assert frame["quality_cost"].to_list() == pytest.approx([0, -1.2, -6.5], abs=0.6)
    assert frame["ttft_cost_s"].to_list() == pytest.approx([0, 0.0087, 0.023], abs=0.002)
    assert (frame["quality_low"] < frame["quality"]).all()


def test_one_window_of_turns_has_no_interval_and_none_no_quality() -> None:
    few = run({"requests": scored({"none": (1.0, 0.1)}, turns=60)}).frames["compression"].row(0, named=True)
    assert (few["windows"], few["quality_low"]) == (1, None)
    none = run({"requests": scored({"none": (1.0, 0.1)}, turns=20)}).frames["compression"].row(0, named=True)
    assert (none["windows"], none["quality"]) == (0, None)


def conversations(count: int, turns: int, noise: float, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    step = np.tile(np.arange(turns, dtype=float), count)
    score = form(step, 0.72, 0.38, 128.0) + rng.normal(0, noise, len(step))
    columns = {
        "ts": times(np.arange(len(step))),
        "gen_ai.conversation.id": [f"c{i // turns}" for i in range(len(step))],
    }
    return requests(columns | {"quality_score": [str(s) for s in score], "service": ["llm"] * len(step)})


def test_the_decay_over_the_turns_of_conversations_is_recovered() -> None:
    (row,) = run({"requests": conversations(40, 500, 0.1)}).frames["decay"].to_dicts()
    assert (row["source"], row["step"], row["verdict"]) == ("quality_score by turn", "turns", "fitted")
    for name, truth in (("r0", 0.72), ("a", 0.38), ("tau", 128.0)):
        assert row[f"{name}_low"] <= truth <= row[f"{name}_high"]


def test_conversations_that_end_before_the_decay_does_have_no_tau() -> None:
    (row,) = run({"requests": conversations(40, 60, 0.1)}).frames["decay"].to_dicts()
    assert (row["tau"], row["a"]) == (None, None)
    assert "not told" in row["verdict"]
    (few,) = run({"requests": conversations(3, 60, 0.1)}).frames["decay"].to_dicts()
    assert "fewer than" in few["verdict"]
