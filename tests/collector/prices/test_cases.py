"""Cases of public bug reports about token costs: the right cost to eight decimals."""

import csv
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from collector.prices import Pricing, Usage, cost_of, is_far_above, latest_usage, read_prices, read_usage

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def own(folder: Path) -> Pricing:
    return Pricing(read_prices(folder / "prices.json"))


def expected(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "expected.json").read_text(), parse_float=Decimal)
    return loaded


def records(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, (folder / "usage.jsonl").read_text().splitlines())}


@pytest.mark.parametrize("record", ["o1", "o2", "a1", "a2"])
def test_cached_tokens_are_charged_once_in_either_style(shared: Path, record: str) -> None:
    folder = shared / "cases/45-cached-tokens"
    row = records(folder)[record]
    result = cost_of(read_usage(row["usage"], row["style"]), own(folder).price(None, row["model"], NOW))
    assert result.amount == expected(folder)[record]
    assert result.quality == ()


@pytest.mark.parametrize("record", ["o1", "o2", "a1", "a2"])
def test_the_style_is_told_without_a_provider_too(shared: Path, record: str) -> None:
    row = records(shared / "cases/45-cached-tokens")[record]
    assert read_usage(row["usage"]) == read_usage(row["usage"], row["style"])


def test_more_cached_than_prompt_is_clamped_and_flagged(shared: Path) -> None:
    folder = shared / "cases/45-cached-tokens"
    usage = read_usage(records(folder)["x1"]["usage"], "openai")
    right = expected(folder)["x1"]
    result = cost_of(usage, own(folder).price(None, "m-large", NOW))
    assert (result.amount, result.quality) == (right["cost"], (right["flag"],))


def test_the_cached_share_is_of_the_whole_prompt(shared: Path) -> None:
    usage = read_usage(records(shared / "cases/45-cached-tokens")["o1"]["usage"])
    assert usage.cached_input_tokens is not None
    assert usage.input_tokens is not None
    assert round(usage.cached_input_tokens / usage.input_tokens, 3) == 0.957


@pytest.mark.parametrize("record", ["r1", "r2"])
def test_reasoning_is_charged_once_within_or_beside_the_output(shared: Path, record: str) -> None:
    folder = shared / "cases/46-reasoning-tokens"
    row = records(folder)[record]
    usage = read_usage(row["usage"])
    assert (usage.output_tokens, usage.reasoning_tokens, usage.quality) == (5500, 5000, ())
    assert cost_of(usage, own(folder).price(None, row["model"], NOW)).amount == expected(folder)[record]


def test_an_unknown_model_is_unpriced_and_a_price_holds_from_its_date(shared: Path) -> None:
    folder = shared / "cases/47-unknown-model-price"
    pricing, costs, unpriced = own(folder), {}, 0
    for row in csv.DictReader((folder / "usage.csv").open()):
        usage = Usage(int(row["input_tokens"]), int(row["output_tokens"]))
        result = cost_of(usage, pricing.price(None, row["model"], datetime.fromisoformat(row["time"])))
        costs[row["id"]] = result.amount
        if row["id"] in ("p3", "p4"):
            unpriced += usage.input_tokens or 0
            assert "unpriced" in result.quality
    assert costs == {"p0": 5, "p1": Decimal("2.5"), "p2": None, "p3": None, "p4": None}
    assert unpriced == expected(folder)["unpriced_input_tokens"]


@pytest.mark.parametrize("file", ["full", "cancelled"])
def test_a_running_total_is_no_sum(shared: Path, file: str) -> None:
    folder = shared / "cases/48-cumulative-usage-in-stream"
    lines = [line[6:] for line in (folder / f"{file}.sse").read_text().splitlines() if line.startswith("data: {")]
    usage = latest_usage(json.loads(line)["usage"] for line in lines)
    assert usage is not None
    assert [usage.input_tokens, usage.output_tokens] == expected(folder)[file]


def test_a_batch_costs_half_by_its_attribute(shared: Path) -> None:
    folder = shared / "cases/49-batch-discount-and-units"
    for row in csv.DictReader((folder / "usage.csv").open()):
        usage = Usage(int(row["input_tokens"]), int(row["output_tokens"]), batch=row["mode"] == "batch")
        result = cost_of(usage, own(folder).price(None, row["model"], NOW))
        assert result.amount == expected(folder)[row["id"]]


def test_a_cost_in_another_unit_stands_out(shared: Path) -> None:
    folder = shared / "cases/49-batch-discount-and-units"
    price = own(folder).price(None, "m-large", NOW)
    assert price is not None
    usage = Usage(400, 7)
    assert is_far_above(Decimal(1067), usage, price)
    assert not is_far_above(Decimal(1067) / 1_000_000, usage, price)
