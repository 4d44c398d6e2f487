"""Prompt compression: simulated savings and added latencies lie within their limits; too few are not compared."""

from typing import Any

import numpy as np
import pytest

from analytics.result import Result
from tests.analytics.tokens.asked import answer, own, requests

PRICE = own("- {model: m, input_per_1m: 10}", [("openai", "m")])
TRUTH = {"none": (0.0, 0.0), "light": (0.295, 0.008), "strong": (0.421, 0.018)}


def simulated(seed: int, n: int = 400) -> Result:
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for level, (saved, added_s) in TRUTH.items():
        tokens = random.gamma(4, 500, n) * (1 - saved)
        ttft = 0.2 + random.gamma(2, 0.02, n) + added_s
        rows += [
            {"input_tokens": int(t), "ttft_s": float(s), "e2e_s": float(s) + 1, "squeeze": level.replace("none", "")}
            for t, s in zip(tokens, ttft, strict=True)
        ]
    return answer(requests(rows), PRICE, compression="squeeze")


def test_savings_and_latencies_of_the_simulation_are_within_the_limits() -> None:
    inside = {"saved_ratio": 0, "added_ttft": 0}
    for seed in range(20):
        for row in simulated(seed).frames["compression"].rows(named=True)[1:]:
            saved, added_s = TRUTH[row["level"]]
            inside["saved_ratio"] += row["saved_ratio_low"] <= saved <= row["saved_ratio_high"]
            inside["added_ttft"] += row["added_ttft_low_s"] <= added_s <= row["added_ttft_high_s"]
            assert row["saved_per_request_low"] < 2000 * saved * 10 / 1e6 * 1.2
    assert min(inside.values()) >= 34  # of 40, at 95 %: 34 or more with 98 %


def test_the_uncompressed_come_first_and_without_differences() -> None:
    rows = simulated(1).frames["compression"].rows(named=True)
    assert [row["level"] for row in rows] == ["none", "light", "strong"]
    assert rows[0]["saved_ratio"] is None
    assert rows[2]["currency"] == "USD"


def test_groups_that_are_too_small_are_not_compared() -> None:
    result = simulated(1, n=10)
    assert result.frames["compression"].height == 0
    assert any("too few to compare" in note for note in result.notes)


@pytest.mark.parametrize("name", ["", "other"])
def test_without_the_attribute_there_is_no_comparison(name: str) -> None:
    rows = [{"input_tokens": 5, "squeeze": "x", "other": None}] * 30
    assert answer(requests(rows), PRICE, compression=name).frames["compression"].height == 0
