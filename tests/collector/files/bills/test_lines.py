"""Lines of bills: identity, restatement, forms and versions, doubts."""

import json
import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.files.bills.tags import parse_tags
from collector.files.load import load
from collector.files.options import FileKind, ImportOptions
from store.database import Database
from store.errors import SourceError, UsageError
from tests.collector.files.bills.bills import FOCUS, costs, focus, imported, table

COST = {"BilledCost": "2.5", "EffectiveCost": "2.5"}


def test_a_restated_line_takes_the_place_of_the_first(tmp_path: Path) -> None:
    first = imported(tmp_path, focus({}, {"ResourceId": "res-2"}))
    again = imported(tmp_path, focus({**COST, "Tags": '{"team": "search"}'}, {"ResourceId": "res-2"}))
    store = Database(tmp_path / "data")
    try:
        for found in (first, first, again):
            store.append(found.batches)
        rows = store.sql("SELECT resource, billed_cost, tenant FROM costs ORDER BY resource").to_pylist()
    finally:
        store.close()
    assert [tuple(row.values()) for row in rows] == [("res-1", 2.5, "search"), ("res-2", 1.5, None)]


def test_a_correction_is_a_line_of_its_own(tmp_path: Path) -> None:
    lines = costs(imported(tmp_path, focus({}, {"ChargeClass": "Correction", "BilledCost": "-0.5"})))
    assert lines["correction"].to_list() == [False, True]
    assert lines["line_id"].n_unique() == 2
    assert float(lines["billed_cost"].sum()) == 1.0


def test_equal_lines_of_one_file_are_all_kept(tmp_path: Path) -> None:
    lines = costs(imported(tmp_path, focus({}, {}, COST)))
    assert lines["line_id"].n_unique() == 3
    assert float(lines["billed_cost"].sum()) == 5.5


AMOUNTS = st.lists(
    st.tuples(st.decimals(-1000, 1000, places=6), st.sampled_from(["a", "b", "c"]), st.sampled_from(["USD", "EUR"])),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(AMOUNTS, st.integers(0, 2**32))
def test_the_order_of_a_file_does_not_matter_and_its_sum_stays(
    tmp_path: Path, amounts: list[tuple[object, str, str]], seed: int
) -> None:
    changes = [{"BilledCost": str(cost), "ResourceId": name, "BillingCurrency": unit} for cost, name, unit in amounts]
    shuffled = random.Random(seed).sample(changes, len(changes))
    one, other = costs(imported(tmp_path, focus(*changes))), costs(imported(tmp_path, focus(*shuffled)))
    keys = ["line_id", "billed_cost", "currency"]
    assert one.select(keys).sort(keys).equals(other.select(keys).sort(keys))
    assert one["line_id"].n_unique() == len(amounts)
    for unit in ("USD", "EUR"):
        exact = sum(float(str(cost)) for cost, _, currency in amounts if currency == unit)
        assert float(one.filter(pl.col("currency") == unit)["billed_cost"].sum()) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "version"),
    [
        ({}, "1.0"),
        ({"SkuMeter": "tokens"}, "1.1"),
        ({"InvoiceId": "i", "PricingCurrency": "USD"}, "1.2"),
        ({"ServiceProviderName": "Acme", "HostProviderName": "AWS", "InvoiceId": "i"}, "1.3"),
    ],
)
def test_the_version_of_focus_shows_in_its_columns(tmp_path: Path, change: dict[str, str], version: str) -> None:
    assert set(costs(imported(tmp_path, focus(change)))["source"]) == {f"focus_{version}"}


def test_the_provider_has_another_column_by_version(tmp_path: Path) -> None:
    old = costs(imported(tmp_path, focus({"ProviderName": "AWS", "PublisherName": "Anthropic"})))
    new = costs(imported(tmp_path, focus({"ServiceProviderName": "Anthropic", "HostProviderName": "AWS"})))
    assert (old["provider"][0], new["provider"][0]) == ("AWS", "Anthropic")


def test_parquet_says_the_same_as_csv(tmp_path: Path) -> None:
    text = costs(imported(tmp_path, focus({}, COST | {"Tags": '{"env": "prod"}'})))
    start, end = datetime(2026, 11, 16), datetime(2026, 11, 16, 1)
    rows = [
        FOCUS
        | {"ChargePeriodStart": start, "ChargePeriodEnd": end, "BilledCost": cost, "EffectiveCost": cost, "Tags": tag}
        for cost, tag in ((1.5, None), (2.5, [{"key": "env", "value": "prod"}]))
    ]
    path = tmp_path / "bill.parquet"
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    packed = costs(load(path, ImportOptions()))
    assert packed.drop("tags").equals(text.drop("tags"))
    assert packed["environment"].to_list() == [None, "prod"]


def test_usage_reports_of_aws_agree_in_both_spellings(tmp_path: Path) -> None:
    values = {
        "bill/PayerAccountId": "1", "bill/BillingPeriodStartDate": "2026-11-01T00:00:00Z",
        "lineItem/UsageAccountId": "2", "lineItem/LineItemType": "SavingsPlanCoveredUsage",
        "lineItem/UsageStartDate": "2026-11-02T00:00:00Z", "lineItem/UsageEndDate": "2026-11-02T01:00:00Z",
        "lineItem/ProductCode": "AmazonEC2", "lineItem/UnblendedCost": "2.0", "lineItem/CurrencyCode": "USD",
        "savingsPlan/SavingsPlanEffectiveCost": "1.2",
    }  # fmt: skip
    legacy = costs(imported(tmp_path, table([values | {"resourceTags/user:env": "prod"}])))
    names = {
        "bill/PayerAccountId": "bill_payer_account_id", "bill/BillingPeriodStartDate": "bill_billing_period_start_date",
        "lineItem/UsageAccountId": "line_item_usage_account_id", "lineItem/LineItemType": "line_item_line_item_type",
        "lineItem/UsageStartDate": "line_item_usage_start_date", "lineItem/UsageEndDate": "line_item_usage_end_date",
        "lineItem/ProductCode": "line_item_product_code", "lineItem/UnblendedCost": "line_item_unblended_cost",
        "lineItem/CurrencyCode": "line_item_currency_code",
        "savingsPlan/SavingsPlanEffectiveCost": "savings_plan_savings_plan_effective_cost",
    }  # fmt: skip
    new = {names[name]: value for name, value in values.items()}
    newer, athena = (
        costs(imported(tmp_path, table([new | tags])))
        for tags in ({"resource_tags": '{"user_env": "prod"}'}, {"resource_tags_user_env": "prod"})
    )
    assert newer.drop("tags").equals(legacy.drop("tags"))
    assert athena.drop("tags").equals(legacy.drop("tags"))
    assert newer.select("billed_cost", "effective_cost", "category", "environment").row(0) == (
        2.0,
        Decimal("1.2"),
        "Usage",
        "prod",
    )


@pytest.mark.parametrize(
    ("kind", "category", "effective"),
    [("Usage", "Usage", 2.0), ("Tax", "Tax", 2.0), ("Credit", "Credit", 2.0), ("Refund", "Credit", 2.0),
     ("SavingsPlanNegation", "Usage", 0.0), ("SavingsPlanUpfrontFee", "Purchase", 0.0), ("RIFee", "Purchase", 0.0)],
)  # fmt: skip
def test_types_of_aws_lines_are_categories_of_focus(tmp_path: Path, kind: str, category: str, effective: float) -> None:
    row = {
        "lineItem/LineItemType": kind, "lineItem/UsageStartDate": "2026-11-02T00:00:00Z",
        "lineItem/UnblendedCost": "2.0", "lineItem/CurrencyCode": "USD",
    }  # fmt: skip
    line = costs(imported(tmp_path, table([row]))).row(0, named=True)
    assert (line["category"], line["effective_cost"], line["correction"]) == (category, effective, kind == "Refund")


def test_an_export_of_azure_mca_is_known_by_its_camel_case(tmp_path: Path) -> None:
    row = {
        "date": "11/29/2026", "meterCategory": "Cognitive Services", "meterId": "m", "chargeType": "Refund",
        "consumedService": "Microsoft.CognitiveServices", "costInBillingCurrency": "-3.5", "billingCurrency": "EUR",
        "costInPricingCurrency": "-4", "pricingCurrency": "USD", "quantity": "1", "tags": '{"team":"search"}',
    }  # fmt: skip
    line = costs(imported(tmp_path, table([row]), ImportOptions(time_zone="Europe/Berlin"))).row(0, named=True)
    assert (line["billed_cost"], line["currency"], line["source"]) == (-3.5, "EUR", "azure_mca")
    assert (line["category"], line["correction"], line["tenant"]) == ("Adjustment", True, "search")
    assert line["ts"] == datetime(2026, 11, 28, 23)


def test_a_day_of_azure_is_as_long_as_it_is_there(tmp_path: Path) -> None:
    row = {
        "date": "10/25/2026",
        "meterCategory": "c",
        "meterId": "m",
        "chargeType": "Usage",
        "consumedService": "s",
        "cost": "1",
    }
    line = costs(imported(tmp_path, table([row]), ImportOptions(time_zone="Europe/Berlin"))).row(0, named=True)
    assert (line["end_ts"] - line["ts"]).total_seconds() == 25 * 3600


def test_a_cost_report_of_oracle_is_read(tmp_path: Path) -> None:
    row = {
        "lineItem/intervalUsageStart": "2026-11-02T00:00Z", "lineItem/intervalUsageEnd": "2026-11-02T01:00Z",
        "product/service": "COMPUTE", "cost/myCost": "0.25", "cost/currencyCode": "USD", "usage/billedQuantity": "2",
        "lineItem/isCorrection": "true", "tags/finance.team": "search",
    }  # fmt: skip
    line = costs(imported(tmp_path, table([row]))).row(0, named=True)
    assert (line["billed_cost"], line["quantity"], line["provider"], line["source"]) == (0.25, 2.0, "Oracle", "oci")
    assert (line["correction"], line["tenant"], line["end_ts"]) == (True, "search", datetime(2026, 11, 2, 1))


def test_one_bad_line_does_not_lose_the_others(tmp_path: Path) -> None:
    found = imported(tmp_path, focus({}, {"BilledCost": "twelve"}, {"ChargePeriodStart": "soon"}))
    assert costs(found).height == 1
    assert {reason: r.count for reason, r in found.refused.items()} == {
        "billed_cost is not a number": 1, "no readable charge period": 1,
    }  # fmt: skip
    assert found.refused["billed_cost is not a number"].first.endswith("bill.csv:3")


def test_a_missing_currency_or_cost_is_a_doubt_not_a_guess(tmp_path: Path) -> None:
    lines = costs(imported(tmp_path, focus({"BillingCurrency": "", "BilledCost": ""}, {})))
    assert lines["quality"].to_list() == ["no_currency,no_cost", None]
    labelled = costs(imported(tmp_path, focus({"BillingCurrency": ""}, {}), ImportOptions(labels={"currency": "EUR"})))
    assert labelled["currency"].to_list() == ["EUR", "USD"]


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ('{"env": "prod", "n": 1, "gone": null}', {"env": "prod", "n": "1"}),
        ('"env": "prod","team": "a"', {"env": "prod", "team": "a"}),
        ([{"key": "env", "value": "prod"}, {"key": "x", "value": None}], {"env": "prod"}),
        ('["prod", "blue"]', {"tags": "prod,blue"}),
        ("env=prod", {"tags": "env=prod"}),
        ("NULL", {}),
        ("", {}),
    ],
)
def test_tags_are_read_in_every_spelling(value: object, tags: dict[str, str]) -> None:
    assert parse_tags(value) == tags


def test_tags_may_be_objects_in_json(tmp_path: Path) -> None:
    found = imported(tmp_path, json.dumps([FOCUS | {"BilledCost": 1, "Tags": {"env": "prod"}}]), name="focus.json")
    assert costs(found).select("environment", "billed_cost").row(0) == ("prod", 1.0)


def test_labels_say_what_a_bill_does_not(tmp_path: Path) -> None:
    options = ImportOptions(labels={"service": "chat", "environment": "prod", "desk": "7"})
    line = costs(imported(tmp_path, focus({"Tags": '{"service": "other"}'}), options)).row(0, named=True)
    assert (line["service"], line["environment"]) == ("chat", "prod")
    assert '"desk":"7"' in line["tags"]


def test_a_log_of_requests_is_no_bill(tmp_path: Path) -> None:
    text = "timestamp,prompt_tokens,completion_tokens,latency,cost\n2026-11-01T00:00:00Z,1,2,0.5,0.1\n"
    assert imported(tmp_path, text).kind is FileKind.REQUESTS


def test_a_table_without_a_time_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time of a charge"):
        imported(tmp_path, "cost,who\n1,a\n", ImportOptions(kind=FileKind.BILL))


def test_a_day_of_the_month_is_no_time(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="2 no readable charge period"):
        imported(tmp_path, "day,cost\n1,5\n2,6\n", ImportOptions(kind=FileKind.BILL))


def test_a_bill_without_any_good_line_says_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="1 no readable charge period"):
        imported(tmp_path, focus({"ChargePeriodStart": ""}))
