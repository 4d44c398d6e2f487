"""From a file to the cost, as a person would type it: the cases, a public trace, and recorded calls of real APIs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.prices import Pricing, Usage, cost_of
from infractl.commands.analyze import command as analyze
from infractl.commands.import_ import command as import_
from store.database import Database

NOVEMBER = ("--window", "2026-11-01T00:00:00Z..2026-12-01T00:00:00Z")
NOON = ("--time", "2026-11-20T12:00:00Z")


def run(folder: Path, command: Any, *words: str) -> str:
    result = CliRunner().invoke(command, [*words, "--data", str(folder)])
    assert result.exception is None, result.exception
    return result.stdout


def tokens(folder: Path, *words: str) -> dict[str, list[dict[str, Any]]]:
    told = json.loads(run(folder, analyze, "tokens", *words, "--format", "json"))
    found: dict[str, list[dict[str, Any]]] = told["frames"]
    return found


def imported(tmp: Path, case: Path, usage: str) -> Path:
    run(tmp, import_, str(case / "prices.json"))
    run(tmp, import_, str(case / usage), *NOON)
    return tmp


def costs(frames: Mapping[str, list[dict[str, Any]]]) -> dict[str, float | None]:
    return {row["id"]: row["cost"] for row in frames["models"]}


@pytest.mark.parametrize("name", ["45-cached-tokens", "46-reasoning-tokens"])
def test_usage_of_any_api_costs_what_it_must(shared: Path, tmp_path: Path, name: str) -> None:
    case = shared / "cases" / name
    found = tokens(imported(tmp_path, case, "usage.jsonl"), "--by", "id", *NOVEMBER)
    expected = json.loads((case / "expected.json").read_text())
    assert costs(found) == pytest.approx({k: v["cost"] if isinstance(v, dict) else v for k, v in expected.items()})
    flagged = {row["reason"] for row in found["doubts"]}
    assert ("cached>prompt" in flagged) == any(isinstance(v, dict) for v in expected.values())


def test_an_unknown_model_is_unpriced_not_free(shared: Path, tmp_path: Path) -> None:
    found = tokens(
        imported(tmp_path, shared / "cases" / "47-unknown-model-price", "usage.csv"), "--by", "id", *NOVEMBER
    )
    assert costs(found) == {"p0": 5.0, "p1": 2.5, "p2": None, "p3": None, "p4": None}
    unpriced = {row["model"]: row["unpriced_tokens"] for row in found["models"] if row["unpriced_tokens"]}
    assert unpriced == {"openai/m-large-2026-09-01": 1_000_000, "m-large-vision": 1_000_000, "brand-new": 500_100}


@pytest.mark.parametrize(("name", "expected"), [("full", (6179, 120)), ("cancelled", (6179, 30))])
def test_a_stream_is_charged_once_also_where_it_was_cancelled(
    shared: Path, tmp_path: Path, name: str, expected: tuple[int, int]
) -> None:
    case = shared / "cases" / "48-cumulative-usage-in-stream"
    run(tmp_path, import_, str(case / f"{name}.sse"), *NOON, "--label", "model=gpt-4o", "--label", "provider=openai")
    (row,) = tokens(tmp_path, *NOVEMBER)["models"]
    assert (row["input"], row["output"]) == expected
    assert row["cost"] == pytest.approx((expected[0] * 2.5 + expected[1] * 10) / 1e6)


def test_a_batch_is_half_and_a_cost_in_micro_dollars_is_told(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "49-batch-discount-and-units"
    found = tokens(imported(tmp_path, case, "usage.csv"), "--by", "id", *NOVEMBER)
    assert costs(found) == {"s1": 0.26, "b1": 0.13}
    run(tmp_path, import_, str(case / "micro.csv"), *NOON, "--map", "cost_usd=cost")
    doubts = {row["reason"]: row["requests"] for row in tokens(tmp_path, *NOVEMBER)["doubts"]}
    assert doubts["stated_cost_far_above"] == 2


def test_the_azure_conversation_trace_costs_what_it_must_at_the_price_of_gpt_4o(shared: Path, tmp_path: Path) -> None:
    trace = shared / "data" / "azure_llm_trace" / "AzureLLMInferenceTrace_conv.csv"
    run(tmp_path, import_, str(trace), "--label", "model=gpt-4o", "--label", "provider=openai")
    found = tokens(tmp_path)
    (row,) = found["models"]
    assert (row["requests"], row["input"], row["output"]) == (19366, 22361870, 4088665)
    assert row["cost"] == 96.791325
    assert {kind["kind"]: kind["cost"] for kind in found["kinds"]} == {"input": 55.904675, "output": 40.88665}


def test_recorded_calls_cost_what_each_costs_alone(shared: Path, tmp_path: Path) -> None:
    run(tmp_path, import_, str(shared / "data" / "llm_api_usage" / "openllmetry_recorded_calls.jsonl"))
    found = tokens(tmp_path, "--window", "2024-01-01T00:00:00Z..2026-12-01T00:00:00Z")
    with Database(tmp_path) as database:
        rows = database.table("spans")
    expected: dict[tuple[str | None, str | None], float] = {}
    pricing = Pricing()
    for row in rows.iter_rows(named=True):
        if row["operation"] and row["model"]:
            names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
            usage = Usage(**{name: row[name] for name in names})
            cost = cost_of(usage, pricing.price(row["provider"], row["model"], row["ts"]))
            if cost.amount is not None:
                key = row["provider"], row["model"]
                expected[key] = expected.get(key, 0.0) + float(cost.amount)
    assert len(expected) > 30
    assert {
        (row["provider"], row["model"]): row["cost"] for row in found["models"] if row["cost"] is not None
    } == pytest.approx(expected)
    versions = {row["request_model"]: row["effect"] for row in found["swaps"] if row["kind"] == "version"}
    assert versions["gpt-4o"] == 0
