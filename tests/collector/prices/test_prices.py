"""Prices: exact, from the file first, never of a model that only looks alike."""

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prices import Price, Pricing, Rate, Tier, Usage, cost_of, latest_usage, read_usage
from collector.prices.override import parse_prices
from collector.prices.price import TokenKind
from store.errors import ConfigError

NOW = datetime(2026, 11, 1, tzinfo=UTC)
COUNTS = st.integers(0, 10**9)
RATES = {
    TokenKind.INPUT: Rate(Decimal("2.5")),
    TokenKind.CACHED_INPUT: Rate(Decimal("1.25")),
    TokenKind.CACHE_WRITE: Rate(Decimal("3.125")),
    TokenKind.OUTPUT: Rate(Decimal(10)),
}
PRICE = Price("m-large", RATES)


def test_list_prices_agree_with_the_other_lists(shared: Path) -> None:
    price = Pricing().price("openai", "gpt-4o", NOW)
    assert price is not None
    packed = shared / "data/llm_price_lists/litellm_1.110.2_model_prices_and_context_window.json.gz"
    listed = json.loads(gzip.decompress(packed.read_bytes()), parse_float=Decimal)["gpt-4o"]
    assert price.rates[TokenKind.INPUT].per_million == listed["input_cost_per_token"] * 1_000_000 == Decimal("2.5")
    assert price.rates[TokenKind.OUTPUT].per_million == listed["output_cost_per_token"] * 1_000_000 == 10
    assert price.rates[TokenKind.CACHED_INPUT].per_million == Decimal("1.25")


def test_the_azure_conversation_trace_costs_what_its_tokens_do() -> None:
    result = cost_of(Usage(22_361_870, 4_088_665), Pricing().price("openai", "gpt-4o", NOW))
    assert result.amount is not None
    assert round(result.amount, 2) == Decimal("96.79")


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (None, "gpt-4o"), (None, "openai/gpt-4o"), ("openai", "gpt-4o-2024-08-06"), (None, "gpt-4o-20240806"),
        ("anthropic", "claude-sonnet-4-5-20250929"), ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)  # fmt: skip
def test_dated_and_prefixed_names_are_known(provider: str | None, name: str) -> None:
    assert Pricing().price(provider, name, NOW) is not None


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (None, "m-large-vision"), ("openai", "gpt-4o-vision-new"), ("openai", "ft:gpt-4o:acme::abc"),
        ("anthropic", "claude-sonnet-4-50"), ("anthropic", "claude-sonnet-4-5-vision"), ("vllm", "gpt-4o"),
        (None, None),
    ],
)  # fmt: skip
def test_a_name_that_only_looks_alike_has_no_price(provider: str | None, name: str | None) -> None:
    assert Pricing().price(provider, name, NOW) is None


def test_a_name_known_by_a_rule_says_so() -> None:
    price = Pricing().price("anthropic", "claude-sonnet-4-5-20250929", NOW)
    assert "model_by_rule" in cost_of(Usage(10, 10), price).quality


def test_the_batch_price_of_the_library_is_used() -> None:
    price = Pricing().price("openai", "gpt-4o", NOW)
    standard, batch = (cost_of(Usage(1000, 1000, batch=batch), price).amount for batch in (False, True))
    assert standard == Decimal("0.0125")
    assert batch == standard / 2


def test_an_own_price_wins_from_its_date_and_before_it_the_list_holds() -> None:
    own = parse_prices("- {model: gpt-4o, input_per_1m: 2.0, output_per_1m: 8, valid_from: 2026-10-01}", "p.yaml")
    pricing = Pricing(own)
    after, before = (pricing.price("openai", "gpt-4o", datetime(2026, month, 1)) for month in (10, 9))
    assert after is not None
    assert before is not None
    assert after.rates[TokenKind.INPUT].per_million == 2
    assert before.rates[TokenKind.INPUT].per_million == Decimal("2.5")


def test_an_alias_may_be_a_pattern_and_holds_for_nothing_else() -> None:
    own = parse_prices("- {model: m-large, aliases: ['openai/m-large-2*'], input_per_1m: 2.5}", "p.yaml")
    pricing = Pricing(own, library=False)
    assert pricing.price(None, "openai/m-large-2026-09-01", NOW) is not None
    assert pricing.price(None, "m-large-vision", NOW) is None


def test_a_price_for_one_provider_is_none_for_another() -> None:
    own = parse_prices("- {model: llama, provider: groq, input_per_1m: 1}", "p.yaml")
    pricing = Pricing(own, library=False)
    assert pricing.price("groq", "llama", NOW) is not None
    assert pricing.price("together", "llama", NOW) is None


@pytest.mark.parametrize("text", ["input_per_token: 0.0000025", "input_per_1k: 0.0025", "input_per_1m: 2.5"])
def test_units_of_a_price_agree(text: str) -> None:
    entry = parse_prices(f"- model: m\n  {text}", "p.yaml")[0]
    assert entry.price.rates[TokenKind.INPUT].per_million == Decimal("2.5")


def test_json_and_yaml_say_the_same() -> None:
    yaml = parse_prices("- {model: m, input_per_1m: 0.1, tiers: [{above_input_tokens: 9, input_per_1m: 0.2}]}", "p")
    text = '[{"model": "m", "input_per_1m": 0.1, "tiers": [{"above_input_tokens": 9, "input_per_1m": 0.2}]}]'
    assert parse_prices(text, "p") == yaml


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("- {input_per_1m: 1}", "entry 1: no model"),
        ("- {model: m}", "no price"),
        ("- {model: m, input_per_1m: -1}", "cannot be -1"),
        ("- {model: m, input_per_1m: many}", "no number"),
        ("- {model: m, inputs_per_1m: 1}", "unknown key 'inputs_per_1m'"),
        ("- {model: m, input_per_1m: 1, input_per_1k: 1}", "two prices"),
        ("- {model: m, input_per_1m: 1, valid_from: soon}", "no date"),
        ("prices: 3", "no list of prices"),
        ("[{", "broken JSON"),
        ("- {", "broken YAML"),
    ],
)
def test_a_broken_file_is_named_with_its_entry(text: str, fact: str) -> None:
    with pytest.raises(ConfigError, match=fact):
        parse_prices(text, "prices.yaml")


def test_a_long_prompt_pays_the_tier_for_all_its_tokens() -> None:
    price = Price("m", {TokenKind.INPUT: Rate(Decimal(3), (Tier(200_000, Decimal(6)),))})
    assert cost_of(Usage(200_000, 0), price).amount == Decimal("0.6")
    assert cost_of(Usage(200_001, 0), price).amount == Decimal("1.200006")


def test_cached_tokens_without_a_price_cost_what_the_prompt_does_and_say_so() -> None:
    price = Price("m", {TokenKind.INPUT: Rate(Decimal(1)), TokenKind.OUTPUT: Rate(Decimal(1))})
    result = cost_of(Usage(100, 0, cached_input_tokens=50), price)
    assert (result.amount, result.quality) == (Decimal("0.0001"), ("cached_input_at_input_price",))


def test_output_without_a_price_is_unpriced_not_free() -> None:
    result = cost_of(Usage(1, 1), Price("m", {TokenKind.INPUT: Rate(Decimal(1))}))
    assert (result.amount, result.quality) == (None, ("unpriced", "no_output_price"))


def test_reasoning_with_a_price_of_its_own_is_taken_out_of_the_output() -> None:
    price = Price("m", {**RATES, TokenKind.REASONING: Rate(Decimal(20))})
    assert cost_of(Usage(0, 100, reasoning_tokens=40), price).amount == Decimal("0.0014")


def test_no_counts_are_no_cost_of_zero() -> None:
    assert cost_of(Usage(), PRICE).amount is None


@pytest.mark.parametrize(
    ("payload", "tokens"),
    [
        ({"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 22}, (10, 12)),
        ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 5}, (100, 5)),
        ({"inputTokens": 4, "cacheReadInputTokens": 6, "outputTokens": 5}, (10, 5)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}, (9, None)),
        ({"tokens": {"input_tokens": 30, "output_tokens": 2}, "billed_units": {"input_tokens": 3}}, (30, 2)),
        ({"total_tokens": 8}, (8, None)),
        ({"search_units": 1}, (None, None)),
    ],
)
def test_every_api_counts_the_whole_prompt_and_all_output(
    payload: dict[str, object], tokens: tuple[int | None, int | None]
) -> None:
    usage = read_usage(payload)
    assert (usage.input_tokens, usage.output_tokens) == tokens


def test_a_stream_of_anthropic_states_the_prompt_first_and_the_output_last() -> None:
    events = [{"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 1}, {"output_tokens": 42}]
    assert latest_usage(events) == Usage(100, 42, 80)
    assert latest_usage([]) is None


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_cost_is_exact_and_never_negative(prompt: int, output: int, cached: int, written: int) -> None:
    usage = Usage(prompt, output, cached, written)
    amount = cost_of(usage, PRICE).amount
    read = min(cached, prompt)
    stored = min(written, prompt - read)
    exact = 2_500 * (prompt - read - stored) + 1_250 * read + 3_125 * stored + 10_000 * output
    assert amount is not None
    assert amount * 10**9 == exact


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=20))
def test_costs_of_requests_add_up_in_any_order(counts: list[tuple[int, int]]) -> None:
    costs = [cost_of(Usage(prompt, output), PRICE).amount or Decimal(0) for prompt, output in counts]
    together = cost_of(Usage(sum(p for p, _ in counts), sum(o for _, o in counts)), PRICE).amount
    assert sum(costs) == sum(reversed(costs)) == together
