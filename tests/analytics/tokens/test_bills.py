"""Computed against billed: by day and model, whole days only, one source at a time, with what may explain it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics.result import Result
from store.window import Window
from tests.analytics.tokens.asked import answer, bill, own, requests

DAYS = [datetime(2026, 11, day) for day in (26, 27, 28, 29)]
WINDOW = Window(datetime(2026, 11, 26, tzinfo=UTC), datetime(2026, 11, 30, 12, tzinfo=UTC))
PRICES = "- {model: m, input_per_1m: 1}\n- {model: n, input_per_1m: 2}"


def compared(lines: list[dict[str, Any]], rows: list[dict[str, Any]] | None = None, **params: Any) -> Result:
    one_a_day = [{"ts": day + timedelta(hours=9), "input_tokens": 10_000_000} for day in DAYS]
    spans = requests(one_a_day if rows is None else rows)
    return answer(spans, own(PRICES, [("openai", "m"), ("openai", "n")], WINDOW), bill(lines), WINDOW, **params)


def test_every_whole_day_and_all_together_are_compared() -> None:
    result = compared([{"bucket": day, "cost": 12.5} for day in (*DAYS, datetime(2026, 11, 30))])
    rows = result.frames["bills"].rows(named=True)
    assert [row["day"] for row in rows] == [None, *DAYS]
    assert (rows[0]["billed"], rows[0]["computed"], rows[0]["capture"]) == (Decimal(50), Decimal(40), 0.8)
    assert "not traced" in rows[1]["reading"]
    assert result.findings == ()
    assert result.samples["bill_capture_ratio"]["value"].to_list() == [0.8]


def test_a_bill_of_which_most_is_never_seen_is_told() -> None:
    result = compared([{"bucket": day, "cost": 100} for day in DAYS])
    (finding,) = result.findings
    assert (finding.trigger, finding.value) == ("BillNotTraced", 0.1)
    assert finding.summary.startswith("400.00 USD were billed for openai since 2026-11-26T00:00:00Z")


def test_two_days_are_too_few_for_a_verdict() -> None:
    result = compared([{"bucket": day, "cost": 100} for day in DAYS[:2]])
    assert result.findings == ()
    assert result.samples["bill_capture_ratio"]["value"].to_list() == [None]


def test_models_of_the_bill_meet_their_names_in_spans() -> None:
    rows = [{"ts": DAYS[0], "input_tokens": 10_000_000, "model": name} for name in ("m", "n")]
    lines = [{"bucket": DAYS[0], "cost": 10, "model": "m-2026-01-01"}, {"bucket": DAYS[0], "cost": 40, "model": "n"}]
    found = compared(lines, rows).frames["bills"]
    days = {row["model"]: row for row in found.rows(named=True) if row["day"]}
    assert {name: row["capture"] for name, row in days.items()} == {"": 0.6, "m-2026-01-01": 1.0, "n": 0.5}
    assert days["m-2026-01-01"]["reading"] == "agrees within 5 %"


def test_sources_and_currencies_stay_apart_and_taxes_and_credits_out() -> None:
    lines = [
        {"bucket": DAYS[0], "cost": 10},
        {"bucket": DAYS[0], "cost": 10, "source": "litellm", "model": "m"},
        {"bucket": DAYS[0], "cost": 10, "currency": "EUR"},
        {"bucket": DAYS[0], "cost": 3, "category": "Tax"},
        {"bucket": DAYS[0], "cost": -5, "category": "Credit"},
    ]
    found = compared(lines).frames["bills"]
    whole = {(r["source"], r["currency"]): r for r in found.rows(named=True) if r["day"] is None and not r["model"]}
    assert {key: row["billed"] for key, row in whole.items()} == {
        ("openai_costs", "USD"): Decimal(10), ("litellm", "USD"): Decimal(10), ("openai_costs", "EUR"): Decimal(10),
    }  # fmt: skip
    assert whole["openai_costs", "EUR"]["computed"] is None


def test_lines_of_a_cloud_count_where_they_sell_models() -> None:
    lines = [
        {"bucket": DAYS[0], "cost": 7, "provider": "AWS", "cost_service": "Amazon Bedrock"},
        {"bucket": DAYS[0], "cost": 900, "provider": "AWS", "cost_service": "AmazonEC2"},
    ]
    found = compared(lines).frames["bills"]
    assert set(found["provider"]) == {"aws.bedrock"}
    assert found["billed"].to_list() == [Decimal(7)] * 2
    assert "nobody traces" in found["reading"][0]


def test_without_a_whole_day_or_with_a_part_of_the_requests_nothing_is_compared() -> None:
    lines = [{"bucket": datetime(2026, 11, 30), "cost": 1}]
    for result, word in ((compared(lines), "no whole day"), (compared(lines, where=[("service", "a")]), "only a part")):
        assert result.frames["bills"].height == 0
        assert any(word in note for note in result.notes)


def test_lines_for_a_month_are_left_out_and_said() -> None:
    result = compared([{"bucket": DAYS[0], "cost": 300, "span_s": 30 * 86_400.0}])
    assert result.frames["bills"].height == 0
    assert any("more than a day" in note for note in result.notes)
