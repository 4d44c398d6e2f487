"""Spend computed from tokens stands beside the bill, in a basis of its own, exact to the last digit."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.cost import ANALYSIS
from analytics.cost.computed import lines
from analytics.result import Result
from infractl.priced import SCHEMA as PRICES
from store.window import Window
from tests.analytics.cost.asked import START, hours, noisy

TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")


def requests(service: str, count: int, **tokens: int) -> pl.DataFrame:
    """Hourly sums of tokens of one service and model."""
    dims = {"service": service, "provider": "openai", "model": "m", "environment": "prod", "cloud_region": "eu"}
    rows = [
        {"bucket": START + timedelta(hours=i), "requests": 10} | dims | dict.fromkeys(TOKENS) | tokens
        for i in range(count)
    ]
    return pl.DataFrame(rows, schema_overrides={"bucket": pl.Datetime("us")} | dict.fromkeys(TOKENS, pl.Int64))


def prices(*rows: tuple[str, str], **more: Any) -> pl.DataFrame:
    """Base prices per million tokens by kind."""
    common: dict[str, Any] = {"provider": "openai", "model": "m", "currency": "USD", "batch": False}
    made = [common | {"above_input_tokens": 0, "tokens_kind": k, "per_million": Decimal(p)} | more for k, p in rows]
    return pl.DataFrame(made, schema={name: kind.polars() for name, kind in PRICES.items()})


def answer(billed: pl.DataFrame, asked: pl.DataFrame, priced: pl.DataFrame, by: Sequence[str]) -> Result:
    window = Window(START.replace(tzinfo=UTC), (START + timedelta(days=20)).replace(tzinfo=UTC))
    inputs = {"lines": billed, "requests": asked, "prices": priced}
    return ANALYSIS.run(inputs, ANALYSIS.make_params({"by": ",".join(by)}), window)


def test_every_kind_of_token_has_its_price_and_none_counts_twice() -> None:
    asked = requests("chat", 1, input_tokens=1000, cached_input_tokens=400, output_tokens=300, reasoning_tokens=100)
    priced = prices(("input", "2"), ("cached_input", "1"), ("output", "8"))
    assert sum(lines(asked, priced, ["service"])["cost"]) == Decimal(600 * 2 + 400 * 1 + 300 * 8) / 1_000_000


def test_a_price_counts_while_it_holds_and_a_model_without_one_costs_nothing_known() -> None:
    change = START + timedelta(hours=1)
    priced = pl.concat(
        [
            prices(("input", "2"), ("output", "8"), valid_to=change),
            prices(("input", "3"), ("output", "8"), valid_from=change),
        ]
    )
    asked = requests("chat", 2, input_tokens=1_000_000)
    assert lines(asked, priced, ["service"])["cost"].to_list() == [Decimal(2), Decimal(3)]
    assert lines(asked.with_columns(model=pl.lit("unknown")), priced, ["service"]).height == 0


def test_it_is_a_basis_of_its_own_for_services_that_no_bill_names() -> None:
    asked = pl.concat([requests(name, 48, input_tokens=1_000_000) for name in ("chat", "billed")])
    result = answer(
        hours({"billed": noisy(2)[:, 0]}), asked, prices(("input", "2"), ("output", "8")), ["service", "region"]
    )
    totals = {(row["service"], row["basis"]): row["cost"] for row in result.frames["totals"].to_dicts()}
    assert totals["chat", "computed"] == Decimal(96)
    assert set(totals) == {("chat", "computed"), ("billed", "billed")}
    assert set(result.frames["totals"]["region"]) == {"eu", ""}
    assert any(note.startswith("computed:") for note in result.notes)


def test_without_a_bill_what_requests_cost_is_judged_alone() -> None:
    asked = requests("chat", 400, input_tokens=1_000_000).with_columns(
        input_tokens=pl.when(pl.col("bucket") >= START + timedelta(hours=397)).then(9_000_000).otherwise(1_000_000)
    )
    result = answer(hours({}), asked, prices(("input", "2"), ("output", "8")), ["service"])
    (one,) = result.frames["drifts"].to_dicts()
    assert (one["basis"], one["since"]) == ("computed", datetime(2026, 10, 21, 13))
    assert {finding.labels["basis"] for finding in result.findings} == {"computed"}
