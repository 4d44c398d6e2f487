"""The store keeps what it acknowledged, once, and refuses what would change it."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch
from store.database import SCHEMA_VERSION, Database
from store.errors import StoreError, StoreLockedError, UsageError
from store.query import MetricQuery, RollupQuery, RowQuery, SpanQuery
from store.tables import TABLES
from store.window import Window

NOON = datetime(2026, 11, 30, 12)
DAY = Window.parse("2026-11-30..2026-12-01", NOON)


def spans(count: int, start: int = 0, **more: object) -> pl.DataFrame:
    ids = range(start, start + count)
    return pl.DataFrame(
        {
            "trace_id": [f"{i:032x}" for i in ids],
            "span_id": [f"{i:016x}" for i in ids],
            "ts": [NOON + timedelta(seconds=i) for i in ids],
            "service": ["chat"] * count,
            "operation": ["chat"] * count,
            "ttft_s": [float(i) for i in ids],
        }
    ).with_columns(**{name: pl.lit(value) for name, value in more.items()})


@pytest.fixture
def database(tmp_path: Path):
    with Database(tmp_path) as made:
        yield made


def test_rows_come_back_as_they_went_in(database: Database):
    database.append([Batch("t", {"spans": spans(3)})])
    frame = database.read(SpanQuery(("trace_id", "ts", "ttft_s")), DAY)
    assert frame["ttft_s"].to_list() == [0.0, 1.0, 2.0]
    assert frame["ts"][1] == NOON + timedelta(seconds=1)


def test_a_batch_sent_again_stores_nothing_and_counts_duplicates(database: Database):
    batch = {"spans": spans(5)}
    first = database.append([Batch("t", batch)])[0]
    again = database.append([Batch("t", batch)])[0]
    assert (first.stored["spans"], again.stored["spans"], again.duplicates["spans"]) == (5, 0, 5)
    assert database.counts()["spans"] == 5


def test_a_row_repeated_within_one_batch_is_stored_once(database: Database):
    receipt = database.append([Batch("t", {"spans": pl.concat([spans(2), spans(2)])})])[0]
    assert receipt.stored["spans"] == 2
    assert receipt.duplicates["spans"] == 2


def test_a_batch_across_an_old_one_stores_only_what_is_new(database: Database):
    database.append([Batch("t", {"spans": spans(4)})])
    receipt = database.append([Batch("t", {"spans": spans(6, start=2)})])[0]
    assert receipt.stored["spans"] == 4
    assert database.counts()["spans"] == 8


def test_a_group_with_a_bad_batch_stores_nothing(database: Database):
    bad = pl.DataFrame({"trace_id": ["x"], "no_such_column": [1]})
    with pytest.raises(StoreError, match="no column 'no_such_column'"):
        database.append([Batch("t", {"spans": spans(2)}), Batch("t", {"spans": bad})])
    assert database.counts()["spans"] == 0
    assert database.counts()["ingest_batch"] == 0


def test_a_value_of_the_wrong_type_is_refused_by_name(database: Database):
    with pytest.raises(StoreError, match="does not fit table spans"):
        database.append([Batch("t", {"spans": spans(1).with_columns(ttft_s=pl.lit("fast"))})])


def test_refused_rows_are_kept_as_counts(database: Database):
    database.append([Batch("otlp", {"spans": spans(1)}, {"zero_trace_id": 3})])
    assert database.table("ingest_drops")["rows"].to_list() == [3]


def test_window_is_half_open(database: Database):
    database.append([Batch("t", {"spans": spans(3)})])
    window = Window.parse("2026-11-30T12:00:00..2026-11-30T12:00:02", NOON)
    assert database.read(SpanQuery(("ts",)), window).height == 2


def test_attributes_and_resource_are_read_by_key_and_filtered(database: Database):
    rows = spans(2).with_columns(
        attributes=pl.Series(['{"a.b":"x","q\\"k":1}', None]), resource=pl.Series([None, '{"a.b":"y"}'])
    )
    database.append([Batch("t", {"spans": rows})])
    frame = database.read(SpanQuery(("span_id",), ("a.b", 'q"k')), DAY)
    assert frame["a.b"].to_list() == ["x", "y"]
    assert frame['q"k'].to_list() == ["1", None]
    assert database.read(SpanQuery(("span_id",), where=(("a.b", "y"),)), DAY).height == 1


def test_equal_keys_of_where_are_ored_and_different_ones_anded(database: Database):
    rows = spans(3).with_columns(service=pl.Series(["a", "b", "c"]))
    database.append([Batch("t", {"spans": rows})])

    def count(*where: tuple[str, str]) -> int:
        return database.read(SpanQuery(("ts",), where=where), DAY).height

    assert count(("service", "a"), ("service", "b")) == 2
    assert count(("service", "a"), ("operation", "chat")) == 1
    assert count(("service", "a"), ("operation", "other")) == 0


def test_requests_only_leaves_out_spans_that_are_no_request(database: Database):
    rows = spans(2).with_columns(operation=pl.Series(["chat", None], dtype=pl.String))
    database.append([Batch("t", {"spans": rows})])
    assert database.read(SpanQuery(("ts",), requests_only=True), DAY).height == 1


def test_of_very_many_spans_a_share_of_the_traces_is_read_and_named(database: Database):
    database.append([Batch("t", {"spans": pl.concat([spans(4000), spans(4000, start=4000)])})])
    few = SpanQuery(("trace_id",), at_most=2000)
    read = database.read(few, DAY)
    assert set(read["share_read"]) == {0.25}
    assert 1750 < read.height < 2250
    assert database.read(few, DAY)["trace_id"].to_list() == read["trace_id"].to_list()
    whole = database.read(SpanQuery(("trace_id",), at_most=8000), DAY)
    assert (whole.height, set(whole["share_read"])) == (8000, {1.0})


def test_rows_of_a_table_are_read_within_a_window_and_filtered(database: Database):
    rows = pl.DataFrame(
        {
            "run": ["a", "b", "c"],
            "stage": ["1"] * 3,
            "metric": ["ttft_s"] * 3,
            "statistic": ["p50"] * 3,
            "ts": [NOON, NOON + timedelta(hours=1), NOON + timedelta(days=1)],
            "value": [1.0, 2.0, 3.0],
            "labels": ['{"gpu": "h100"}', '{"gpu": "a100"}', "{}"],
        }
    )
    database.append([Batch("t", {"benchmarks": rows})])
    assert database.read(RowQuery("benchmarks", ("run", "value")), DAY).rows() == [("a", 1.0), ("b", 2.0)]
    a100 = RowQuery("benchmarks", ("run",), where=(("gpu", "a100"), ("metric", "ttft_s")))
    assert database.read(a100, DAY)["run"].to_list() == ["b"]
    with pytest.raises(UsageError, match="prices have no time"):
        database.read(RowQuery("prices", ("model",)), DAY)


def test_all_series_are_read_but_the_buckets_of_histograms(database: Database):
    series = pl.DataFrame(
        {
            "series_id": [1, 2, 3],
            "name": ["a", "raw_b", "h_bucket"],
            "canonical": [None, "b", "h"],
            "scale": [None, 0.01, None],
            "labels": ["{}", "{}", '{"le": "1"}'],
        },
        schema_overrides={"series_id": pl.UInt64},
    )
    samples = pl.DataFrame(
        {"series_id": [1, 2, 3], "ts": [NOON] * 3, "value": [1.0, 50.0, 3.0]}, schema_overrides={"series_id": pl.UInt64}
    )
    database.append([Batch("t", {"metric_series": series, "metric_samples": samples})])
    found = database.read(RollupQuery("metrics", step_s=300), DAY)
    assert found.select("name", "last").rows() == [("a", 1.0), ("b", 0.5)]


def test_metrics_are_asked_by_canonical_or_raw_name(database: Database):
    series = pl.DataFrame(
        {
            "series_id": [1, 2],
            "name": ["DCGM_FI_DEV_GPU_UTIL", "other"],
            "canonical": ["gpu_utilization_ratio", None],
            "scale": [0.01, None],
            "unit": ["ratio", "lanes"],
            "kind": ["gauge", None],
            "labels": ['{"gpu":"0"}', "{}"],
        }
    )
    samples = pl.DataFrame(
        {"series_id": [1, 1, 2], "ts": [NOON, NOON + timedelta(seconds=1), NOON], "value": [50.0, None, 7.0]}
    )
    database.append([Batch("t", {"metric_series": series, "metric_samples": samples})])
    canonical = database.read(MetricQuery(("gpu_utilization_ratio",), (("gpu", "0"),)), DAY)
    assert canonical["value"].to_list() == [0.5, None]
    assert canonical["unit"].to_list() == ["ratio", "ratio"]
    assert canonical.select("kind", "raw").unique().rows() == [("gauge", "DCGM_FI_DEV_GPU_UTIL")]
    raw = database.read(MetricQuery(("DCGM_FI_DEV_GPU_UTIL", "other")), DAY)
    assert sorted(raw["value"].drop_nulls().to_list()) == [7.0, 50.0]
    assert dict(raw.select("name", "unit").iter_rows()) == {"DCGM_FI_DEV_GPU_UTIL": None, "other": "lanes"}


def test_a_series_learns_its_canonical_name_later_and_keeps_it(database: Database):
    def row(canonical: str | None, scale: float | None) -> Batch:
        return Batch(
            "t",
            {
                "metric_series": pl.DataFrame(
                    {"series_id": [1], "name": ["n"], "canonical": [canonical], "scale": [scale]},
                    schema_overrides={"canonical": pl.String, "scale": pl.Float64},
                )
            },
        )

    for canonical, scale in ((None, None), ("requests_waiting", 1.0), ("kv_cache_usage_ratio", 0.01), (None, None)):
        database.append([row(canonical, scale)])
    assert database.table("metric_series").select("canonical", "scale").rows() == [("kv_cache_usage_ratio", 0.01)]


def test_extent_holds_the_last_row(database: Database):
    assert database.extent("spans") is None
    database.append([Batch("t", {"spans": spans(2)})])
    extent = database.extent("spans")
    assert extent is not None
    assert database.read(SpanQuery(("ts",)), extent).height == 2


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM spans",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE spans",
        "COPY spans TO 'out.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "SET threads = 1",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT * FROM glob('/*')",
        "CREATE TABLE x AS SELECT 1",
        "EXPLAIN ANALYZE DELETE FROM spans",
        "WITH x AS (SELECT 1) INSERT INTO ingest_drops SELECT 'a','b','c',1,now()",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "not sql",
        "",
    ],
)
def test_sql_runs_one_select_and_nothing_else(database: Database, text: str):
    database.append([Batch("t", {"spans": spans(1)})])
    with pytest.raises(UsageError):
        database.sql(text)
    assert database.counts()["spans"] == 1
    assert database.counts()["ingest_drops"] == 0


def test_sql_stops_at_the_row_limit(database: Database):
    assert database.sql("SELECT * FROM range(100000)", 7).num_rows == 7
    assert database.sql("SELECT 1 AS x WHERE false").num_rows == 0


def test_a_second_process_is_told_who_holds_the_file(database: Database):
    code = "import sys, pathlib; from store.database import Database; Database(pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(database.path.parent)], capture_output=True, text=True)
    assert "StoreLockedError" in done.stderr
    assert "is in use by process" in done.stderr


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path):
    import duckdb

    Database(tmp_path).close()
    with duckdb.connect(str(tmp_path / "infractl.duckdb")) as con:
        con.execute("INSERT INTO schema_version VALUES (?)", [SCHEMA_VERSION + 1])
    with pytest.raises(StoreError, match="written by a newer infractl"):
        Database(tmp_path)


def test_a_file_that_lacks_a_column_gets_it_and_keeps_its_rows(tmp_path: Path):
    import duckdb

    with Database(tmp_path) as made:
        made.append([Batch("t", {"spans": spans(2)})])
    with duckdb.connect(str(tmp_path / "infractl.duckdb")) as con:
        con.execute("DROP VIEW spans")
        con.execute("ALTER TABLE hot_spans DROP COLUMN links")
    with Database(tmp_path) as reopened:
        assert reopened.table("spans").columns == list(TABLES[0].names)
        assert reopened.counts()["spans"] == 2
        reopened.append([Batch("t", {"spans": spans(1, start=9)})])
        assert reopened.table("spans")["ttft_s"].to_list() == [0.0, 1.0, 9.0]


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    (tmp_path / "infractl.duckdb").write_bytes(b"x" * 20000)
    with pytest.raises(StoreError, match=r"infractl\.duckdb"):
        Database(tmp_path)


def test_on_commit_hears_of_every_batch(database: Database):
    heard = []
    database.on_commit = lambda batch, receipt: heard.append((batch.source, receipt.stored["spans"]))
    database.append([Batch("a", {"spans": spans(1)}), Batch("b", {"spans": spans(1)})])
    assert heard == [("a", 1), ("b", 0)]


def test_two_connections_of_one_lock_error_class():
    assert issubclass(StoreLockedError, StoreError)
