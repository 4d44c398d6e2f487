"""What tokens cost: right answers of the cases, per model, kind, tenant and conversation; what is not known is said."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.result import Result, Status
from analytics.tokens import ANALYSIS
from collector.prices import read_usage
from store.errors import UsageError
from store.query import Choice
from store.window import Window
from tests.analytics.tokens.asked import WINDOW, answer, bill, own, requests

LARGE = "- {model: m, input_per_1m: 2.5, cached_input_per_1m: 1.25, cache_write_per_1m: 3.125, output_per_1m: 10}"


def first(result: Result, frame: str = "models") -> dict[str, Any]:
    found: dict[str, Any] = result.frames[frame].row(0, named=True)
    return found


def span(usage: dict[str, Any], style: str | None = None) -> dict[str, Any]:
    read = read_usage(usage, style)
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
    return {name: getattr(read, name) for name in names} | {"quality": ",".join(read.quality) or None}


@pytest.mark.parametrize("case", ["45-cached-tokens", "46-reasoning-tokens"])
def test_each_record_of_the_case_costs_what_it_must(shared: Path, case: str) -> None:
    folder = shared / "cases" / case
    records = [json.loads(line) for line in (folder / "usage.jsonl").read_text().splitlines()]
    expected = json.loads((folder / "expected.json").read_text())
    text = (folder / "prices.json").read_text()
    rows = [span(r["usage"], r["style"]) | {"model": "m-large", "trace_id": r["id"]} for r in records]
    result = answer(requests(rows), own(text, [("openai", "m-large")]), by="trace_id")
    cost = dict(result.frames["models"].select("trace_id", "cost").iter_rows())
    wanted = {name: value["cost"] if isinstance(value, dict) else value for name, value in expected.items()}
    assert {name: float(amount) for name, amount in cost.items()} == pytest.approx(wanted, abs=1e-12)
    doubts = result.frames["doubts"].filter(pl.col("reason") == "cached>prompt")
    assert doubts["requests"].sum() == sum(isinstance(value, dict) for value in expected.values())


def test_the_cached_share_counts_requests_that_state_both() -> None:
    rows: list[dict[str, Any]] = [
        {"input_tokens": 2006, "output_tokens": 300, "cached_input_tokens": 1920},
        {"input_tokens": 500},
    ]
    assert first(answer(requests(rows), own(LARGE, [("openai", "m")])))["cached_share"] == pytest.approx(
        0.957, abs=5e-4
    )


def test_an_unknown_model_is_unpriced_and_a_price_holds_from_its_date(shared: Path) -> None:
    folder = shared / "cases" / "47-unknown-model-price"
    log = pl.read_csv(folder / "usage.csv", try_parse_dates=True)
    rows = log.select(
        pl.col("time").dt.replace_time_zone(None).alias("ts"), "model", "input_tokens", "output_tokens",
        pl.col("id").alias("trace_id"),
    )  # fmt: skip
    pairs = [("openai", name) for name in rows["model"].unique()]
    window = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    prices = own((folder / "prices.json").read_text(), pairs, window)
    result = answer(requests(rows.to_dicts()), prices, window=window, by="trace_id")
    models = {row["trace_id"]: row for row in result.frames["models"].iter_rows(named=True)}
    assert (models["p0"]["cost"], models["p1"]["cost"]) == (Decimal(5), Decimal("2.5"))
    assert [models[name]["cost"] for name in ("p2", "p3", "p4")] == [None] * 3
    assert models["p3"]["unpriced_tokens"] == 1_000_000
    assert any("m-large-vision: 1000000" in note for note in result.notes)


def test_batch_is_an_attribute_and_a_stated_cost_in_another_unit_is_left_out() -> None:
    price = own(LARGE.replace("}", ", batch_factor: 0.5}"), [("openai", "m")])
    tokens = {"input_tokens": 100_000, "output_tokens": 1_000}
    rows: list[dict[str, Any]] = [
        tokens | {"mode": "standard"},
        tokens | {"mode": "batch"},
        {"input_tokens": 400, "cost_usd": 1067.0},
    ]
    result = answer(requests(rows), price)
    dearest = result.frames["dearest"]
    assert dearest["cost"].to_list() == [Decimal("0.26"), Decimal("0.13"), Decimal("0.001")]
    assert dearest["batch"].to_list() == [False, True, False]
    row = first(result)
    assert (row["batch_requests"], row["stated_usd"], row["stated_requests"]) == (1, None, 0)
    assert any("over 100 times" in note for note in result.notes)


@pytest.mark.parametrize("mark", ["batch", "=batch", "mode="])
def test_a_mark_of_batches_without_name_or_value_is_refused(mark: str) -> None:
    with pytest.raises(UsageError, match="batch cannot be"):
        ANALYSIS.inputs(ANALYSIS.make_params({"batch": mark}))


def test_stated_costs_stand_beside_what_the_same_requests_cost() -> None:
    rows: list[dict[str, Any]] = [{"input_tokens": 1_000_000, "cost_usd": 2.0}, {"input_tokens": 1_000_000}]
    row = first(answer(requests(rows), own(LARGE, [("openai", "m")])))
    assert (row["stated_usd"], row["computed_of_stated"], row["cost"]) == (2.0, Decimal("2.5"), Decimal(5))


def test_currencies_are_never_added() -> None:
    text = f"{LARGE}\n- {{model: n, input_per_1m: 1, currency: EUR}}"
    rows: list[dict[str, Any]] = [{"input_tokens": 1_000_000, "model": name} for name in ("m", "n", "m")]
    result = answer(requests(rows), own(text, [("openai", "m"), ("openai", "n")]))
    assert set(result.frames["per"]["currency"]) == {"USD", "EUR"}
    assert result.notes[0] == "cost of the tokens: 1.00 EUR, 5.00 USD"
    assert set(result.samples["token_cost_per_hour"]["currency"]) == {"USD", "EUR"}


def test_a_model_that_changes_its_currency_has_a_row_for_each() -> None:
    text = (
        "- {model: m, input_per_1m: 1}\n- {model: m, input_per_1m: 2, currency: EUR, valid_from: 2026-11-30T12:00:01Z}"
    )
    result = answer(requests([{"input_tokens": 1_000_000}] * 2), own(text, [("openai", "m")]))
    found = sorted(result.frames["models"].select("currency", "requests", "cost").iter_rows())
    assert found == [("EUR", 1, Decimal(2)), ("USD", 1, Decimal(1))]


def test_tenants_and_conversations_are_of_the_first_attribute_stated() -> None:
    rows: list[dict[str, Any]] = [
        {"input_tokens": 4_000_000, "tenant": "a", "session.id": "s1"},
        {"input_tokens": 1_000_000, "team": "b", "gen_ai.conversation.id": "c1"},
        {"input_tokens": 1_000_000, "team": "b", "gen_ai.conversation.id": "c1"},
        {"input_tokens": 1_000_000},
    ]
    result = answer(requests(rows), own(LARGE, [("openai", "m")]))
    tenants = result.frames["tenants"].select("tenant", "requests", "cost", "share").rows()
    assert tenants == [
        ("a", 1, Decimal(10), pytest.approx(4 / 7)),
        ("b", 2, Decimal(5), pytest.approx(2 / 7)),
        ("", 1, Decimal("2.5"), pytest.approx(1 / 7)),
    ]
    assert result.frames["conversations"]["conversation"].to_list() == ["s1", "c1", ""]
    per = {row["unit"]: row for row in result.frames["per"].iter_rows(named=True)}
    assert (per["conversation"]["n"], per["conversation"]["mean"]) == (2, Decimal("7.5"))
    assert per["request"]["p99"] is None


def test_requests_without_tokens_are_counted_and_cost_nothing() -> None:
    row = first(answer(requests([{}, {"input_tokens": 10}]), own(LARGE, [("openai", "m")])))
    assert (row["requests"], row["silent_requests"], row["unpriced_requests"]) == (2, 1, 0)


def test_without_requests_it_is_empty() -> None:
    result = answer(requests([]), own(LARGE, [("openai", "m")]))
    assert (result.status, result.findings) == (Status.EMPTY, ())


def test_all_without_a_price_has_no_cost_rather_than_zero() -> None:
    result = answer(requests([{"input_tokens": 5}]), own(LARGE, []))
    assert (first(result)["cost"], first(result)["currency"]) == (None, None)
    assert result.frames["per"].height == result.frames["dearest"].height == 0
    assert result.samples["unpriced_token_ratio"]["value"].to_list() == [1.0]


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_models_kinds_and_requests_add_up_to_the_same_amount(rows: list[tuple[int, int, bool]]) -> None:
    spans = [
        {"input_tokens": i, "cached_input_tokens": i // 3, "output_tokens": o, "tenant": "ab"[t]} for i, o, t in rows
    ]
    result = answer(requests(spans), own(LARGE, [("openai", "m")]), top=1000)
    whole = result.frames["models"]["cost"].sum()
    for name in ("kinds", "dearest", "tenants"):
        assert result.frames[name]["cost"].sum() == whole


def test_rollups_give_the_same_cost_where_no_prompt_is_long_and_nothing_is_a_batch() -> None:
    rows = [{"input_tokens": 1000 * i, "cached_input_tokens": 100 * i, "output_tokens": i} for i in range(1, 40)]
    price = own(LARGE, [("openai", "m")])
    params = ANALYSIS.make_params({})
    spans = requests(rows)
    asked = ANALYSIS.inputs(params)["requests"]
    assert isinstance(asked, Choice)
    sums = (
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "cost_usd",
    )
    rolled = (
        spans.group_by("provider", "model", pl.col("ts").dt.truncate("5m").alias("bucket"))
        .agg(
            pl.len().cast(pl.Int64).alias("requests"),
            *(pl.when(pl.col(n).count() > 0).then(pl.col(n).sum()).alias(n) for n in sums),
        )
        .sort("bucket")
    )
    found = ANALYSIS.run({"rolled": rolled, "prices": price, "bills": bill(())}, params, WINDOW)
    raw = answer(spans, price)
    for name in ("cost", "requests", "input", "cached_share", "per_request", "cost_per_1k"):
        assert first(found)[name] == first(raw)[name]
    assert first(found)["per_request_p50"] is None
    assert "rollups of 5m" in found.notes[1]


def test_rollups_charge_the_base_price_and_say_that_long_prompts_cost_more() -> None:
    text = "- {model: m, input_per_1m: 1, tiers: [{above_input_tokens: 100, input_per_1m: 9}]}"
    rolled = pl.DataFrame(
        {"bucket": [WINDOW.start.replace(tzinfo=None)], "provider": ["openai"], "model": ["m"], "requests": [10],
         "input_tokens": [1_000_000], "output_tokens": [None], "cached_input_tokens": [None],
         "cache_write_tokens": [None], "reasoning_tokens": [None], "cost_usd": [None]},
        schema_overrides={"bucket": pl.Datetime("us"), "cost_usd": pl.Float64},
    )  # fmt: skip
    inputs = {"rolled": rolled, "prices": own(text, [("openai", "m")]), "bills": bill(())}
    result = ANALYSIS.run(inputs, ANALYSIS.make_params({}), WINDOW)
    assert first(result)["cost"] == Decimal(1)
    assert any("long prompts of m cost more" in note for note in result.notes)
