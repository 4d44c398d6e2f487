"""Amounts of a bill reach the store with every digit, whatever form the file has."""

import io
import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.files.load import load
from collector.files.options import FileKind, ImportOptions
from store.money import money_text
from tests.collector.files.bills.bills import FOCUS, costs, focus, imported

DIGITS = "12345678901234567.123456789012345678"


def test_csv_keeps_every_digit(tmp_path: Path):
    lines = costs(imported(tmp_path, focus({"BilledCost": DIGITS}, {"BilledCost": "0.1"}, {"BilledCost": "0.2"})))
    assert money_text(lines["billed_cost"][0]) == DIGITS
    assert sum(lines["billed_cost"][1:], Decimal(0)) == Decimal("0.3")
    assert lines["quality"].null_count() == 3


@pytest.mark.parametrize("lines", [False, True])
def test_json_keeps_every_digit(tmp_path: Path, lines: bool):
    objects = [json.dumps(FOCUS | {"BilledCost": "X"}).replace('"X"', text) for text in (DIGITS, "1e-7", "3")]
    text = "\n".join(objects) if lines else f"[{','.join(objects)}]"
    found = costs(imported(tmp_path, text, name="bill.json"))
    assert [money_text(amount) for amount in found["billed_cost"]] == [DIGITS, "0.0000001", "3.00"]


def test_parquet_keeps_the_digits_of_decimals_and_what_a_double_is_written_as(tmp_path: Path):
    out = io.BytesIO()
    exact = pl.Series("BilledCost", [Decimal(DIGITS)], pl.Decimal(38, 18))
    pl.DataFrame([FOCUS]).with_columns(exact, EffectiveCost=pl.lit(123456.789)).write_parquet(out)
    (tmp_path / "bill.parquet").write_bytes(out.getvalue())
    line = costs(load(tmp_path / "bill.parquet", ImportOptions())).row(0, named=True)
    assert (money_text(line["billed_cost"]), line["effective_cost"]) == (DIGITS, Decimal("123456.789"))


def test_what_loses_digits_says_so_and_what_is_too_large_is_refused(tmp_path: Path):
    changes = [
        {"BilledCost": text, "ResourceId": name}
        for name, text in (("a", "0.1234567890123456785"), ("b", "1e25"), ("c", "7.5"))
    ]
    found = imported(tmp_path, focus(*changes))
    lines = costs(found)
    assert dict(zip(lines["resource"], lines["quality"], strict=True)) == {
        "a": "rounded", "c": None,
    }  # fmt: skip
    assert money_text(lines["billed_cost"][0]) == "0.123456789012345678"
    assert [(reason, refusal.count) for reason, refusal in found.refused.items()] == [
        ("billed_cost is not a number", 1)
    ]


def test_a_cost_report_keeps_every_digit(tmp_path: Path):
    amount = '{"value": 0.123456789012345678, "currency": "usd"}'
    result = f'{{"object": "organization.costs.result", "amount": {amount}, "line_item": "gpt-5, input"}}'
    page = f'{{"object": "bucket", "start_time": 1790000000, "end_time": 1790086400, "results": [{result}]}}'
    found = imported(tmp_path, page, name="costs.json")
    assert found.kind is FileKind.LLM_USAGE
    assert costs(found)["billed_cost"].to_list() == [Decimal("0.123456789012345678")]


def test_totals_are_exact(shared: Path):
    notes = load(shared / "cases/55-mixed-currencies/focus.csv", ImportOptions()).notes
    assert [note.partition(" in ")[0] for note in notes] == [
        "billed: 100.00 USD",
        "billed: 50.00 EUR",
        "billed: 15000 JPY",
    ]
