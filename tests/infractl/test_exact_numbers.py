"""Money and large integers keep every digit from a file to what a command prints."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.codec import from_json, to_json
from collector.files import ImportOptions, load
from collector.files.options import FileKind
from infractl.render import render_frame
from store.batch import Batch
from store.columns import Column, Kind
from store.database import Database
from store.money import money_text
from store.tables import COSTS
from tests.infractl.test_render import RESULT

AMOUNTS = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda n: Decimal((int(n < 0), tuple(int(digit) for digit in str(abs(n))), -18))
)
WHOLE = st.integers(-(2**127) + 1, 2**127 - 1)


def parsed(text: str) -> list[dict[str, object]]:
    """Rows of JSON text with fractions as they are written; a bare NaN or Infinity fails."""

    def refuse(word: str) -> float:
        raise AssertionError(word)

    rows: list[dict[str, object]] = json.loads(text, parse_float=str, parse_constant=refuse)
    return rows


def test_sums_of_money_and_of_large_integers_are_the_case_s_own(shared: Path, tmp_path: Path):
    folder = shared / "cases/79-decimal-and-bigint-results"
    right = json.loads((folder / "expected.json").read_text())
    imported = load(folder / "rows.csv", ImportOptions(kind=FileKind.BILL, at=datetime(2026, 11, 30, tzinfo=UTC)))
    query = (
        "SELECT service, sum(CAST(tags->>'tokens' AS BIGINT)) AS tokens, sum(billed_cost) AS cost, "
        "'nan'::DOUBLE AS undefined FROM costs GROUP BY ALL ORDER BY ALL"
    )
    with Database(tmp_path) as database:
        database.append(imported.batches)
        frame = pl.DataFrame(pl.from_arrow(database.sql(query)))
    made = {row["service"]: row for row in parsed(render_frame(frame, "json"))}
    cells = {row["service"]: row for row in csv.DictReader(io.StringIO(render_frame(frame, "csv")))}
    for service, row in right.items():
        assert made[service] == {"service": service, **row, "undefined": None}
        assert (cells[service]["tokens"], cells[service]["cost"]) == (str(row["tokens"]), row["cost"])
    assert "0.30" in render_frame(frame, "table")
    assert " 0.30 |" in render_frame(frame, "md")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory):
    with Database(tmp_path_factory.mktemp("exact")) as opened:
        yield opened


@settings(max_examples=25, deadline=None)
@given(amount=AMOUNTS, whole=WHOLE, line=st.uuids())
def test_any_amount_and_integer_comes_out_of_the_store_as_it_went_in(
    database: Database, amount: Decimal, whole: int, line: object
):
    row = {"line_id": [str(line)], "ts": [datetime(2026, 11, 30)], "billed_cost": [amount]}
    frame = pl.DataFrame(row, schema_overrides={"billed_cost": Kind.MONEY.polars()})
    database.append([Batch("test", {"costs": COSTS.conform(frame)})])
    query = f"SELECT billed_cost AS cost, ({whole})::HUGEINT AS whole FROM costs WHERE line_id = '{line}'"
    out = pl.DataFrame(pl.from_arrow(database.sql(query)))
    text = money_text(amount)
    assert Decimal(text) == amount
    assert render_frame(out, "json") == f'[{{"cost":{text},"whole":{whole}}}]\n'
    assert render_frame(out, "csv") == f"cost,whole\n{text},{whole}\n"


@given(st.lists(st.tuples(AMOUNTS | st.none(), WHOLE), min_size=1, max_size=5), AMOUNTS, WHOLE)
def test_a_result_with_money_is_read_back_to_an_equal_one(
    rows: list[tuple[Decimal | None, int]], amount: Decimal, whole: int
):
    columns = (
        Column("cost", Kind.MONEY, "cost"),
        Column("tokens", Kind.INT, "tokens"),
        Column("share", Kind.FLOAT, ""),
    )
    frame = pl.DataFrame(
        {"cost": [cost for cost, _ in rows], "tokens": [count for _, count in rows], "share": [0.1] * len(rows)},
        schema={"cost": Kind.MONEY.polars(), "tokens": pl.Int128(), "share": pl.Float64()},
    )
    result = replace(RESULT, frames={"costs": frame}, params={"amount": amount, "whole": whole, "share": 0.1})
    text = to_json(result)
    back = from_json(text, {"costs": columns})
    assert back.frames["costs"].rows() == frame.rows()
    assert back.frames["costs"]["cost"].dtype == Kind.MONEY.polars()
    assert Decimal(str(back.params["amount"])) == amount
    assert (back.params["whole"], back.params["share"]) == (whole, 0.1)
