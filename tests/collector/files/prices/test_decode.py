"""Price lists through import: every file of the public lists, and what a person should know of each."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.files import ImportOptions, load, sniff
from collector.prices import ImportedPrices, Pricing, Usage, cost_of
from collector.prices.history import dated
from store.errors import SourceError, UsageError
from store.tables import PRICES

NOW = datetime(2026, 11, 30, tzinfo=UTC)
LITELLM = "litellm_1.110.2_model_prices_and_context_window.json.gz"
ROWS = {
    LITELLM: 3798,
    "llm-prices_amazon.json": 4, "llm-prices_anthropic.json": 17, "llm-prices_deepseek.json": 5,
    "llm-prices_google.json": 17, "llm-prices_meta-ai.json": 3, "llm-prices_minimax.json": 1,
    "llm-prices_mistral.json": 14, "llm-prices_moonshot-ai.json": 5, "llm-prices_openai.json": 41,
    "llm-prices_qwen.json": 1, "llm-prices_xai.json": 12,
}  # fmt: skip


def rows(path: Path) -> pl.DataFrame:
    [batch] = load(path, ImportOptions()).batches
    return dated(batch.frames["prices"], pl.DataFrame(schema=PRICES.schema()), NOW)


def pricing(*paths: Path) -> Pricing:
    listed = pl.concat([rows(path) for path in paths])
    return Pricing((), ImportedPrices(listed.iter_rows(named=True)), library=False)


def test_every_file_of_the_lists_is_told_and_taken(shared: Path) -> None:
    folder = shared / "data" / "llm_price_lists"
    assert {path.name: rows(path).height for path in folder.iterdir()} == ROWS
    assert {sniff(path) for path in folder.iterdir()} == {"prices"}


def test_models_without_a_price_to_store_are_counted_by_reason(shared: Path) -> None:
    imported = load(shared / "data" / "llm_price_lists" / LITELLM, ImportOptions())
    counts = {reason.partition(":")[0]: refusal.count for reason, refusal in imported.refused.items()}
    assert counts == {
        "priced by image, second, page or call, or not at all": 883,
        "no entry of a model": 1,
        "every price is 0, which is free or unknown": 156,
    }
    again = next(int(note.split()[0]) for note in imported.notes if "came twice" in note)
    assert ROWS[LITELLM] + again + sum(counts.values()) == 4878  # every model of the list


@pytest.mark.parametrize("name", [LITELLM, "llm-prices_openai.json"])
def test_gpt_4o_costs_the_same_in_both_lists_and_the_azure_trace_96_79_dollars(shared: Path, name: str) -> None:
    price = pricing(shared / "data" / "llm_price_lists" / name).price("openai", "gpt-4o", NOW)
    assert price is not None
    assert [str(rate.per_million) for rate in price.rates.values()] == ["2.5", "1.25", "10.0"]
    amount = cost_of(Usage(22_361_870, 4_088_665), price).amount
    assert amount == Decimal("96.791325")


def test_a_price_for_long_prompts_is_a_tier_of_its_model(shared: Path) -> None:
    prices = pricing(shared / "data" / "llm_price_lists" / "llm-prices_xai.json")
    price = prices.price("xai", "grok-4", NOW)
    assert price is not None
    assert cost_of(Usage(128_000, 0), price).amount == Decimal("0.384")
    assert cost_of(Usage(128_001, 0), price).amount == Decimal("0.768006")
    assert prices.price("xai", "grok-4-128k", NOW) is None


def test_a_list_with_dates_has_the_price_of_each_day(shared: Path) -> None:
    prices = pricing(shared / "data" / "llm_price_lists" / "llm-prices_openai.json")
    before, after = (prices.price("openai", "gpt-5.6-luna", datetime(2026, 7, day)) for day in (29, 30))
    assert before is not None
    assert after is not None
    assert [cost_of(Usage(1_000_000, 0), p).amount for p in (before, after)] == [Decimal(2), Decimal("0.4")]


def test_batch_prices_and_names_of_a_gateway_are_known(shared: Path) -> None:
    prices = pricing(shared / "data" / "llm_price_lists" / LITELLM)
    by_gateway = prices.price(None, "azure/gpt-4o", NOW)
    assert by_gateway is not None
    assert cost_of(Usage(1_000_000, 0, batch=True), by_gateway).amount == Decimal("1.25")
    assert prices.price("azure.ai.openai", "gpt-4o", NOW) == by_gateway
    assert prices.price("openai", "gpt-4o-vision-of-ours", NOW) is None


def test_genai_prices_own_form_has_dates_tiers_exact_names_and_batches(tmp_path: Path) -> None:
    models = [
        {
            "id": "m-1",
            "match": {"or": [{"starts_with": "m-1-"}, {"equals": "m-one"}]},
            "prices": [
                {"prices": {"input_mtok": {"base": 5, "tiers": [{"start": 200000, "price": 10}]}, "output_mtok": 25}},
                {"constraint": {"start_date": "2026-03-13"}, "prices": {"input_mtok": 4, "output_mtok": 25}},
            ],
            "price_variants": [{"when": {"processing": "batch"}, "prices": {"input_mtok": 2}}],
        },
        {"id": "night", "prices": [{"constraint": {"start_time": "16:00:00Z"}, "prices": {"input_mtok": 1}}]},
        {"id": "images", "prices": {}},
    ]
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"id": "anthropic", "api_pattern": "x", "models": models}]))
    assert [r.count for r in load(path, ImportOptions()).refused.values()] == [1, 1]
    prices = pricing(path)
    old, new, exact = (
        prices.price("anthropic", name, datetime(2026, month, 1))
        for name, month in (("m-1", 1), ("m-1", 4), ("m-one", 4))
    )
    assert old is not None
    assert new is not None
    assert exact is not None
    assert cost_of(Usage(200_001, 0), old).amount == Decimal("2.00001")
    assert cost_of(Usage(100, 0), new).amount == cost_of(Usage(100, 0), exact).amount == Decimal("0.0004")
    assert cost_of(Usage(100, 0, batch=True), new).amount == Decimal("0.0002")
    assert prices.price("anthropic", "m-1-2026", NOW) is None


def test_an_own_file_is_taken_as_yaml_and_a_fault_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("- model: m-large\n  aliases: ['openai/m-large-2*']\n  input_per_1m: 2.5\n  output_per_1m: 10\n")
    prices = pricing(path)
    assert prices.price(None, "openai/m-large-2026-09-01", NOW) is not None
    assert prices.price(None, "m-large-vision", NOW) is None
    path.write_text("- model: m-large\n  input_per_1m: 2.5\n  ouput_per_1m: 10\n")
    with pytest.raises(SourceError, match=r"mine\.yaml:3 entry 1: unknown key 'ouput_per_1m'") as caught:
        load(path, ImportOptions())
    assert caught.value.hint == "did you mean output_per_1m?"


def test_the_case_of_unknown_models_is_right_after_import_too(shared: Path) -> None:
    prices = pricing(shared / "cases" / "47-unknown-model-price" / "prices.json")
    found = {name: prices.price(None, name, NOW) for name in ("m-large", "m-large-vision", "brand-new")}
    assert [name for name, price in found.items() if price is None] == ["m-large-vision", "brand-new"]
    old = prices.price(None, "m-large", datetime(2026, 11, 14, 23, 59, 59))
    assert cost_of(Usage(1_000_000, 0), old).amount == 5


def test_labels_and_broken_lists_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('{"m": {"litellm_provider": "x", "input_cost_per_token": 1,\n')
    with pytest.raises(SourceError, match=r"prices\.json:\d: broken JSON"):
        load(path, ImportOptions())
    with pytest.raises(UsageError, match="--label does not apply"):
        load(path, ImportOptions(labels={"service": "x"}))
