"""A database of every earlier schema opens, keeps its rows and goes on."""

import gzip
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch
from store.database import FILE_NAME, SCHEMA_VERSION, Database
from store.query import MetricQuery, SpanQuery
from store.window import Window

OLD = Path(__file__).parent / "old"
NOON = datetime(2026, 11, 30, 12)
DAY = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
VERSIONS = sorted(OLD.glob("schema_*.duckdb.gz"))


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name.partition(".")[0])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / FILE_NAME).write_bytes(gzip.decompress(request.param.read_bytes()))
    return tmp_path


def test_there_is_a_stored_file_of_every_earlier_version():
    assert [path.name for path in VERSIONS] == [f"schema_{n}.duckdb.gz" for n in range(1, SCHEMA_VERSION)]


def test_rows_of_an_earlier_version_are_read_as_they_were(directory: Path):
    with Database(directory) as database:
        assert database.notices == ()
        spans = database.read(SpanQuery(("ts", "ttft_s"), ("k",)), DAY)
        assert spans["ttft_s"].to_list() == [i / 10 for i in range(20)][: spans.height]
        assert spans["k"].to_list() == ["v"] * spans.height
        assert database.read(MetricQuery(("up",)), DAY)["value"].null_count() == 1
        assert database.table("token_arrivals")["offsets_us"].to_list() == [[10, 20, 30]]
        assert database.table("kv_events")["block_hashes"].to_list() == [[2**63 + 5]]
        assert database.table("costs")["billed_cost"].sum() == Decimal("0.3")
        assert database.table("costs")["list_unit_price"].to_list() == [Decimal("0.00000015"), None]
        assert database.table("ingest_drops")["rows"].to_list() == [2]


def test_an_earlier_version_goes_on_and_stores_nothing_twice(directory: Path):
    with Database(directory) as database:
        old = database.table("spans")
        new = old.head(1).with_columns(ts=pl.lit(NOON + timedelta(days=1)), span_id=pl.lit("f" * 16))
        receipt = database.append([Batch("new", {"spans": pl.concat([old, new])})])[0]
        assert (receipt.stored["spans"], receipt.duplicates["spans"]) == (1, old.height)
    with Database(directory) as database:
        assert database.counts()["spans"] == old.height + 1
        assert database.table("ingest_batch")["sequence"].to_list().count(None) == 6  # of the earlier version
