"""`analyze whatif`: the documents' formula by hand, measured inputs, scenarios, refusals."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.result import Status
from store.errors import UsageError
from tests.analytics.whatif.stored import END, framed, hours, of_input, prices, run, total, window_of

LARGE = {"model": "m-large", "input": 1000, "cached": 400, "output": 200}
PRICED = {"m__large": (3.0, 15.0, 0.3), "m__mini": (0.3, 1.5, 0.03)}
PER_REQUEST = (600 * 3.0 + 400 * 0.3 + 200 * 15.0) / 1e6
FORMULA: dict[str, Any] = {"requests_per_year": "1e6", "base_cost": "284e-6"}


def stored(days: int = 28, **more: Any) -> dict[str, pl.DataFrame]:
    return {"hours": hours(days, 100, [LARGE], **more), "prices": prices(**PRICED)}


def test_the_formula_by_hand_without_a_store() -> None:
    cold: dict[str, Any] = {"cold_start_share": "0.02", "cold_start_s": "18", "resource_per_hour": "3.6"}
    result = run(window_of(1), hit_ratio=".85..0.90", **FORMULA, **cold)
    assert total(result)["baseline"] == pytest.approx(1e6 * 0.15 * 284e-6 + 1e6 * 0.02 * 18 * 0.001)
    assert total(result)["scenario"] == pytest.approx(1e6 * 0.10 * 284e-6 + 1e6 * 0.02 * 18 * 0.001)


def test_both_terms_grow_with_the_requests() -> None:
    cold: dict[str, Any] = {
        "cold_start_share": "0.02",
        "cold_start_s": "18",
        "resource_per_hour": "3.6",
        "hit_ratio": "0.85..0.85",
    }
    one = run(window_of(1), **FORMULA, **cold)
    double = run(window_of(1), **(FORMULA | {"requests_per_year": "2e6"}), **cold)
    for part in ("model", "cold_starts", "total"):
        amounts = [r.frames["yearly"].filter(pl.col("part") == part)["baseline"][0] for r in (one, double)]
        assert amounts[1] == 2 * amounts[0]


def test_the_documents_pair_is_one_third_less_and_their_percentage_needs_cold_starts_of_81_percent() -> None:
    """42.6 → 28.1 is below what the formula can give (28.4); -6.3 % needs cold starts to be 81 % of the cost."""
    bare = total(run(window_of(1), hit_ratio=".85..0.90", **FORMULA))
    assert bare["baseline"] == pytest.approx(42.6)
    assert bare["scenario"] == pytest.approx(28.4)
    assert bare["change"] == pytest.approx(-1 / 3)
    fixed = 42.6 / 0.15 * (0.05 / 0.063 - 0.15)  # of which 5 points of hits save 6.3 %
    per_start = str(fixed / 1e6 * 3600)
    cold: dict[str, Any] = {"cold_start_share": "1", "cold_start_s": "1", "resource_per_hour": per_start}
    result = run(window_of(1), hit_ratio=".85..0.90", **FORMULA, **cold)
    assert total(result)["change"] == pytest.approx(-0.063, abs=2e-4)
    assert fixed / (fixed + 42.6) == pytest.approx(0.811, abs=0.001)


def test_requests_tokens_and_prices_are_measured() -> None:
    result = run(window_of(28), stored())
    assert of_input(result, "requests_per_year")["baseline"] == pytest.approx(100 * 8760)
    assert of_input(result, "base_cost")["baseline"] == pytest.approx(PER_REQUEST)
    assert of_input(result, "prefix_hit_ratio")["baseline"] == pytest.approx(0.4)
    assert total(result)["baseline"] == pytest.approx(100 * 8760 * PER_REQUEST, abs=0.01)
    assert total(result)["difference"] == 0
    assert of_input(result, "requests_per_year")["how"].endswith("by days")


@pytest.mark.parametrize(("days", "what"), [(36, "weeks"), (10, "days"), (2, "hours")])
def test_the_longest_stretches_that_fit_make_the_interval(days: int, what: str) -> None:
    result = run(window_of(days), stored(days, noise=0.3))
    assert f"by {what}" in of_input(result, "requests_per_year")["how"]


def test_weeks_that_differ_widen_the_interval_as_a_t_interval_of_their_means() -> None:
    from scipy.stats import ttest_1samp

    weekly = [80, 120, 90, 110, 100]
    result = run(
        window_of(36), {"hours": hours(36, lambda at: weekly[(END - at - timedelta(seconds=1)).days // 7 % 5], [LARGE])}
        | {"prices": prices(**PRICED)}, draws=40_000,
    )  # fmt: skip
    row = of_input(result, "requests_per_year")
    interval = ttest_1samp(np.array(weekly) * 8760.0, 0).confidence_interval()
    assert row["low"] == pytest.approx(interval.low, rel=0.03)
    assert row["high"] == pytest.approx(interval.high, rel=0.03)
    assert total(result)["baseline_low"] == pytest.approx(interval.low * PER_REQUEST, rel=0.03)


def test_an_hour_is_too_short_for_an_interval_and_says_so() -> None:
    result = run(window_of(0.05), {"hours": hours(1, 100, [LARGE]).tail(2), "prices": prices(**PRICED)})
    assert total(result)["baseline_low"] is None
    assert any("too short for an interval" in note for note in result.notes)


def test_more_of_the_prompt_cached_costs_less_by_hand() -> None:
    result = run(window_of(28), stored(), prefix_hit_ratio="0.7")
    wanted = (300 * 3.0 + 700 * 0.3 + 200 * 15.0) / 1e6
    assert of_input(result, "base_cost")["scenario"] == pytest.approx(wanted)


@pytest.mark.parametrize("share", ["0", "0.1", "0.5", "1"])
def test_a_share_of_the_prompt_is_reached_over_models_together(share: str) -> None:
    models = [LARGE | {"share": 0.5}, {"model": "m-mini", "share": 0.5, "input": 3000, "cached": 100, "output": 50}]
    same = prices(m__large=(3.0, 15.0, 0.3), m__mini=(3.0, 15.0, 0.3))
    result = run(window_of(28), {"hours": hours(28, 100, models), "prices": same}, prefix_hit_ratio=share)
    prompt = 2000 * ((1 - float(share)) * 3.0 + float(share) * 0.3)
    assert of_input(result, "base_cost")["scenario"] == pytest.approx((prompt + 125 * 15.0) / 1e6)


def test_a_swap_takes_the_other_models_price_for_the_same_tokens() -> None:
    result = run(window_of(28), stored(), swap="m-large=m-mini")
    assert total(result)["change"] == pytest.approx(-0.9, abs=1e-6)
    assert result.frames["models"]["priced_as"].to_list() == ["m-mini"]
    half = run(window_of(28), stored(), swap="m-large=m-mini:0.5")
    assert total(half)["change"] == pytest.approx(-0.45, abs=1e-6)
    assert half.frames["models"]["priced_as"][0] == "m-mini (50%), m-large"


def test_a_model_outside_the_store_needs_a_given_price() -> None:
    refused = run(window_of(28), stored(), swap="m-large=m-new")
    assert refused.status is Status.REFUSED
    assert "--price m-new=" in refused.notes[0]
    result = run(window_of(28), stored(), swap="m-large=m-new", price="m-new=0.3/1.5/0.03")
    assert total(result)["change"] == pytest.approx(-0.9, abs=1e-6)


def test_a_change_of_price_and_of_tokens() -> None:
    assert total(run(window_of(28), stored(), price_change="-.1"))["change"] == pytest.approx(-0.1, abs=1e-6)
    assert total(run(window_of(28), stored(), price_change="-10%"))["change"] == pytest.approx(-0.1, abs=1e-6)
    fewer = total(run(window_of(28), stored(), output_tokens="-50%"))
    assert fewer["change"] == pytest.approx(-100 * 15.0 / 1e6 / PER_REQUEST, abs=1e-6)


def test_hits_of_a_cache_before_the_model_make_more_requests_than_the_model_sees() -> None:
    result = run(window_of(28), stored(), hit_ratio="0.5..0.75")
    assert of_input(result, "requests_per_year")["baseline"] == pytest.approx(2 * 100 * 8760)
    assert total(result)["baseline"] == pytest.approx(100 * 8760 * PER_REQUEST, abs=0.01)
    assert total(result)["change"] == pytest.approx(-0.5, abs=1e-6)


def marked(hits: int, n: int) -> pl.DataFrame:
    at = [END - timedelta(minutes=i + 1) for i in range(n)]
    return framed(
        "requests",
        [{"ts": t, "service": "chat", "e2e_s": 1.0, "cache_hit": str(i < hits)} for i, t in enumerate(at)],
    )


def test_hits_that_requests_state_are_measured_with_an_interval() -> None:
    result = run(window_of(28), stored() | {"requests": marked(300, 1000)}, hit_ratio="+5pp")
    row = of_input(result, "hit_ratio")
    assert (row["baseline"], row["scenario"]) == (pytest.approx(0.3), pytest.approx(0.35))
    assert row["low"] == pytest.approx(0.27, abs=0.005)
    assert row["high"] == pytest.approx(0.33, abs=0.005)
    assert of_input(result, "requests_per_year")["baseline"] == pytest.approx(100 * 8760)


def test_hits_that_counters_of_a_response_cache_state_are_measured() -> None:
    names = ("response_cache_hits_total", "response_cache_misses_total")
    counters = framed("response_cache", [{"name": n, "increase": x} for n, x in zip(names, (90.0, 10.0), strict=True)])
    assert of_input(run(window_of(28), stored() | {"response_cache": counters}), "hit_ratio")["baseline"] == 0.9


def cold_requests(cold: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return framed(
        "requests",
        [
            {"ts": END - timedelta(minutes=i + 1), "service": "chat", "faas.coldstart": "true" if i < cold else "false"}
            | {"e2e_s": float(rng.gamma(4, 0.25)) + (20.0 if i < cold else 0.0)}
            for i in range(n)
        ],
    )


def test_cold_starts_that_requests_state_are_measured_and_cost_the_machines_time() -> None:
    result = run(window_of(28), stored() | {"requests": cold_requests(40, 2000)}, resource_per_hour="3.6")
    assert of_input(result, "cold_start_share")["baseline"] == pytest.approx(0.02)
    delay = of_input(result, "cold_start_s")
    assert delay["low"] < 20.0 < delay["high"]
    part = result.frames["yearly"].filter(pl.col("part") == "cold_starts").row(0, named=True)
    assert float(part["baseline"]) == pytest.approx(100 * 8760 * 0.02 * delay["baseline"] * 0.001, rel=1e-4)


def test_without_a_price_of_the_machine_cold_starts_are_left_out_and_named() -> None:
    result = run(window_of(28), stored() | {"requests": cold_requests(40, 2000)})
    assert result.frames["yearly"]["part"].to_list() == ["model", "total"]
    assert any("resource_per_hour" in note for note in result.notes)


def billed(unit: str | None, cost: str, quantity: float) -> pl.DataFrame:
    days = [END - timedelta(days=d + 1) for d in range(28)]
    line = {"service": "chat", "currency": "USD", "category": "Usage", "unit": unit, "quantity": quantity}
    return framed("costs", [line | {"bucket": day, "cost": Decimal(cost)} for day in days])


def test_requests_without_a_price_cost_what_their_service_was_billed() -> None:
    result = run(window_of(28), {"hours": hours(28, 100, [LARGE]), "costs": billed("LCU", "24", 1.0)})
    assert of_input(result, "base_cost")["baseline"] == pytest.approx(24 / 2400)
    assert "billed" in of_input(result, "base_cost")["how"]
    assert total(result)["baseline"] == pytest.approx(24 * 365, rel=1e-6)


def test_hours_of_machines_on_a_bill_give_their_price_and_concurrency_the_cost_of_serving() -> None:
    costs = billed("Hrs", "86.4", 24.0)
    result = run(window_of(28), {"hours": hours(28, 100, [LARGE]), "costs": costs}, concurrency="4..8")
    assert of_input(result, "resource_per_hour")["baseline"] == pytest.approx(3.6)
    assert result.frames["yearly"]["part"].to_list() == ["serving", "total"]
    assert total(result)["baseline"] == pytest.approx(100 * 8760 * 2.0 / 4 * 0.001, abs=0.01)
    assert total(result)["change"] == pytest.approx(-0.5)


def test_gpus_of_ones_own_break_even_where_both_cost_the_same() -> None:
    result = run(window_of(28), stored(), gpu_per_hour="2", gpus="1", requests_per_gpu_hour="1000")
    row = result.frames["break_even"].row(0, named=True)
    assert float(row["yearly"]) == 2 * 8760
    assert row["break_even_requests"] == pytest.approx(2 * 8760 / PER_REQUEST)
    assert row["verdict"] == "they cost more at this many requests"
    slow = run(window_of(28), stored(), gpu_per_hour="2", requests_per_gpu_hour="60")
    assert slow.frames["break_even"]["gpus"][0] == 2  # the busiest hour has 100
    assert slow.frames["break_even"]["verdict"][0].startswith("never")


def test_nothing_known_of_cost_is_refused_and_says_what_to_give() -> None:
    result = run(window_of(28), {"hours": hours(28, 100, [LARGE])})
    assert result.status is Status.REFUSED
    assert "--price" in result.notes[0]
    empty = run(window_of(1))
    assert empty.status is Status.EMPTY
    assert "no model requests" in empty.notes[0]


def test_requests_without_a_price_are_named() -> None:
    models = [LARGE | {"share": 0.75}, {"model": "m-odd", "share": 0.25}]
    result = run(window_of(28), {"hours": hours(28, 100, models), "prices": prices(**PRICED)})
    assert any("25.0% of the requests have no price (m-odd)" in note for note in result.notes)
    assert total(result)["baseline"] == pytest.approx(100 * 8760 * PER_REQUEST, abs=0.01)


def test_prices_of_two_currencies_are_not_added() -> None:
    both = prices(**PRICED).with_columns(
        pl.when(pl.col("model") == "m-mini").then(pl.lit("EUR")).otherwise("currency").alias("currency")
    )
    models = [LARGE | {"share": 0.9}, {"model": "m-mini", "share": 0.1}]
    result = run(window_of(28), {"hours": hours(28, 100, models), "prices": both})
    assert set(result.frames["yearly"]["currency"]) == {"USD"}
    assert any("m-mini (EUR)" in note for note in result.notes)


def test_each_label_has_a_bill_of_its_own_that_add_up() -> None:
    models = [LARGE | {"share": 0.5, "service": "a"}, LARGE | {"share": 0.5, "service": "b"}]
    data = {"hours": hours(28, 100, models), "prices": prices(**PRICED)}
    split, whole = run(window_of(28), data, by="service,team"), run(window_of(28), data)
    rows = split.frames["yearly"].filter(pl.col("part") == "total")
    assert rows["service"].to_list() == ["a", "b"]
    assert float(rows["baseline"].sum()) == pytest.approx(total(whole)["baseline"], abs=0.02)
    assert any("not by team" in note for note in split.notes)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 0.99), st.floats(0, 1), st.floats(0, 0.5), st.floats(0.1, 60), st.floats(0.01, 100))
def test_parts_add_up_to_the_cent_and_more_hits_never_cost_more(
    old: float, new: float, share: float, delay: float, price: float
) -> None:
    given_: dict[str, Any] = {
        "hit_ratio": f"{old:.4f}..{new:.4f}",
        "cold_start_share": f"{share:.4f}",
        "cold_start_s": f"{delay:.4f}",
    }
    result = run(window_of(1), resource_per_hour=f"{price:.4f}", requests_per_year="1e7", base_cost="0.01", **given_)
    rows = result.frames["yearly"]
    parts, whole = rows.filter(pl.col("part") != "total"), rows.filter(pl.col("part") == "total")
    for column in ("baseline", "scenario", "difference"):
        assert parts[column].sum() == whole[column][0]
    assert whole["scenario"][0] - whole["baseline"][0] == whole["difference"][0]
    assert (whole["difference"][0] <= 0) or new < old


def test_sensitivities_are_elasticities_and_order_a_tornado() -> None:
    cold: dict[str, Any] = {"cold_start_share": "0.02", "cold_start_s": "18", "resource_per_hour": "3.6"}
    result = run(window_of(1), hit_ratio="0.5..0.5", **FORMULA, **cold)
    rows = {row["input"]: row for row in result.frames["sensitivity"].iter_rows(named=True)}
    model, start = 1e6 * 0.5 * 284e-6, 1e6 * 0.02 * 18 * 0.001
    assert rows["requests_per_year"]["elasticity"] == pytest.approx(1.0)
    assert rows["base_cost"]["elasticity"] == pytest.approx(model / (model + start), abs=1e-3)
    assert rows["cold_start_s"]["elasticity"] == pytest.approx(start / (model + start), abs=1e-3)
    assert float(rows["hit_ratio"]["more"]) == pytest.approx(-0.1 * model, abs=0.01)
    size = [max(abs(r["less"]), abs(r["more"])) for r in rows.values()]
    assert size == sorted(size, reverse=True)


def test_the_interval_of_the_difference_is_of_paired_draws() -> None:
    result = run(window_of(28), stored(noise=0.3), price_change="-10%")
    row = total(result)
    ratios = [row[f"difference_{end}"] / row[f"baseline_{other}"] for end, other in (("low", "high"), ("high", "low"))]
    assert ratios == pytest.approx([-0.1, -0.1], rel=1e-3)


def test_the_same_seed_gives_the_same_answer() -> None:
    one, two = (run(window_of(28), stored(noise=0.3)) for _ in range(2))
    assert one.frames["yearly"].equals(two.frames["yearly"])


@pytest.mark.parametrize(
    "bad",
    [
        {"hit_ratio": "1.5"}, {"hit_ratio": "high"}, {"base_cost": "+5pp"}, {"swap": "m-large"}, {"price": "m=1"},
        {"price_change": "-2"}, {"gpu_per_hour": "0"}, {"requests_per_year": "-5"}, {"cold_start_s": "-200%"},
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(bad: dict[str, str]) -> None:
    extra = {"gpus": "1"} if "gpu_per_hour" in bad else {}
    with pytest.raises(UsageError, match=next(iter(bad))):
        run(window_of(28), stored(), **bad, **extra)


def test_a_where_that_rollups_do_not_know_is_refused_before_reading() -> None:
    from analytics.whatif import ANALYSIS

    with pytest.raises(UsageError, match="rollups"):
        ANALYSIS.inputs(ANALYSIS.make_params({"where": [("team", "x")]}))


def test_a_price_that_changed_counts_as_it_is_at_the_end() -> None:
    both = pl.concat(
        [
            prices(m__large=(9.0, 45.0, 0.9)),
            prices(m__large=(3.0, 15.0, 0.3)).with_columns(
                valid_from=pl.lit(datetime(2026, 11, 20)).cast(pl.Datetime("us"))
            ),
        ]
    )
    result = run(window_of(28), {"hours": hours(28, 100, [LARGE]), "prices": both})
    assert of_input(result, "base_cost")["baseline"] == pytest.approx(PER_REQUEST)
