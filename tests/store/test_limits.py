"""A query that takes too much is stopped alone: what is ingested meanwhile goes on."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch
from store.database import Database
from store.errors import BusyError, UsageError
from store.limits import QueryLimitError, QueryLimits, Turns, truncated
from store.settings import StoreSettings

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b"
HUNGRY = (
    "SELECT max(len(l)) FROM (SELECT i % 3 AS g, list(i::VARCHAR || repeat('x', 50)) AS l FROM range({n}) r(i) "
    "GROUP BY g)"
)
MIB = 1024**2


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path, StoreSettings(memory_limit_bytes=512 * MIB, threads=2)) as made:
        yield made


def samples(series: int, first: int = 0) -> Batch:
    rows = {"series_id": range(series), "ts": [datetime(2026, 11, 30, 12, first)] * series, "value": [1.0] * series}
    return Batch("t", {"metric_samples": pl.DataFrame(rows)})


def test_a_query_is_stopped_at_its_time_limit(database: Database):
    with pytest.raises(QueryLimitError, match=r"stopped after 0\.3 s") as caught:
        database.sql(ENDLESS, limits=QueryLimits(time_s=0.3))
    assert "store.query_time" in caught.value.hint
    assert database.sql("SELECT 1 AS x").to_pylist() == [{"x": 1}]


def test_memory_that_cannot_spill_is_bounded_and_appends_go_on(database: Database):
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            database.sql(HUNGRY.format(n=100_000_000), limits=QueryLimits(memory_bytes=100 * MIB))
        except QueryLimitError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    receipts = [database.append([samples(100, minute)])[0] for minute in range(20)]
    asking.join()
    assert [str(error) for error in failed] == ["the query needs more memory than its limit of 100.0 MiB"]
    assert "store.query_memory" in failed[0].hint  # type: ignore[attr-defined]
    assert [receipt.stored["metric_samples"] for receipt in receipts] == [100] * 20


def test_running_out_of_all_memory_fails_the_query_only(database: Database):
    with pytest.raises(QueryLimitError, match="more memory than DuckDB may use") as caught:
        database.sql(HUNGRY.format(n=100_000_000), limits=QueryLimits())
    assert "store.memory_limit" in caught.value.hint
    assert database.append([samples(10)])[0].stored["metric_samples"] == 10


def test_a_sort_larger_than_memory_spills_beside_the_data(tmp_path: Path):
    with Database(tmp_path, StoreSettings(memory_limit_bytes=128 * MIB, threads=2)) as database:
        rows = "SELECT i || repeat('x', 30) AS s FROM range(4000000) r(i) ORDER BY s DESC LIMIT 3500000"
        text = f"SELECT count(*) AS n FROM ({rows})"
        assert database.sql(text, limits=database.query_limits).to_pylist() == [{"n": 3_500_000}]


def test_a_limit_of_one_query_is_not_that_of_the_next(database: Database):
    database.sql("SELECT 1", limits=QueryLimits(memory_bytes=10 * MIB))
    with database.snapshot() as cursor:
        assert cursor.execute("SELECT current_setting('operator_memory_limit')").fetchone() == (None,)


def test_a_query_is_called_off_from_another_thread(database: Database):
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    with pytest.raises(QueryLimitError, match="called off"):
        database.sql(ENDLESS, limits=QueryLimits(), cancelled=cancelled)


def test_rows_are_cut_and_the_answer_says_so(database: Database):
    cut = database.sql("SELECT * FROM range(100000)", limits=QueryLimits(rows=5_000))
    assert (cut.num_rows, truncated(cut)) == (5_000, "after 5,000 rows")
    whole = database.sql("SELECT * FROM range(5000)", limits=QueryLimits(rows=5_000))
    assert (whole.num_rows, truncated(whole)) == (5_000, None)
    asked = database.sql("SELECT * FROM range(10)", 3, QueryLimits(rows=5_000))
    assert (asked.num_rows, truncated(asked)) == (3, "after 3 rows")


def test_an_answer_of_long_texts_is_cut_by_its_size(database: Database):
    cut = database.sql("SELECT repeat('x', 10000) FROM range(1000000)", limits=QueryLimits(memory_bytes=64 * MIB))
    assert 0 < cut.num_rows < 20_000
    assert "which take" in str(truncated(cut))


def test_one_query_too_many_waits_and_is_told_when_to_come_again():
    turns = Turns(1, queue_s=0.1)
    with turns.turn(), pytest.raises(BusyError, match="as many queries") as caught, turns.turn():
        pass
    assert caught.value.retry_after_s > 0
    assert "store.queries" in caught.value.hint
    with turns.turn():
        pass


def test_a_query_that_waits_for_its_turn_can_be_called_off():
    turns, cancelled = Turns(1, queue_s=60), threading.Event()
    cancelled.set()
    with turns.turn(), pytest.raises(QueryLimitError, match="called off"), turns.turn(cancelled):
        pass


def test_a_stopped_query_gives_its_turn_back(tmp_path: Path):
    with Database(tmp_path, StoreSettings(queries=1)) as database:
        limits = replace(database.query_limits, time_s=0.1)
        for _ in range(3):
            with pytest.raises(QueryLimitError):
                database.sql(ENDLESS, limits=limits)
        with pytest.raises(UsageError):
            database.sql("SELECT nothing", limits=limits)
        assert database.sql("SELECT 1 AS x", limits=limits).num_rows == 1


def test_no_thread_is_left_beside_a_query_that_ended(database: Database):
    database.sql("SELECT 1", limits=QueryLimits())
    assert not [thread for thread in threading.enumerate() if thread.name == "query-watch"]


CASE_73 = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 1024**3, 2 * 1024**3))
from datetime import datetime, timedelta
from pathlib import Path
import polars as pl
from store.batch import Batch
from store.database import Database
from store.errors import InfractlError
with Database(Path(sys.argv[1])) as database:
    print(database.resources.memory_basis)
    for step in range(0, 2500, 25):
        times = [datetime(2026, 11, 29) + timedelta(seconds=15 * (step + i)) for i in range(25)]
        frame = pl.DataFrame({"ts": times}).join(pl.DataFrame({"series_id": range(2000)}), how="cross")
        frame = frame.with_columns(value=(pl.col("series_id") * 7919 % 1000) / 1000)
        database.append([Batch("t", {"metric_samples": frame})])
    print(database.counts()["metric_samples"])
    text = ("SELECT series_id, quantile_cont(value, 0.99) AS p99, count(DISTINCT ts) AS n FROM metric_samples "
            "GROUP BY 1 ORDER BY 2 DESC LIMIT 5")
    try:
        print("answered", database.sql(text, limits=database.query_limits).num_rows)
    except InfractlError as error:
        print("refused", error, error.hint)
    print("alive", database.sql("SELECT 1").num_rows)
"""


def test_case_73_five_million_samples_in_an_address_space_of_2_gib(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", CASE_73, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    basis, count, answer, alive = done.stdout.splitlines()
    assert basis == "50 % of what the 2.0 GiB limit of the address space leaves (ulimit -v)"
    assert count == "5000000"
    assert answer == "answered 5" or ("more memory" in answer and "raise store." in answer)
    assert alive == "alive 1"
