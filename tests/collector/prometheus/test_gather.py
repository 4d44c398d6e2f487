"""Batches joined: nothing lost, everyone told, one append for many."""

import asyncio
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from collector.prometheus import gather
from collector.prometheus.gather import Gather
from collector.prometheus.series import samples_at
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, InfractlError, StoreError
from store.writer import Writer
from tests.collector.prometheus.conftest import START


def batch(*ids: int, drops: dict[str, int] | None = None, at: datetime = START) -> Batch:
    return Batch("scrape", {"metric_samples": samples_at(np.array(ids, np.uint64), None, at)}, drops or {})


class Keeper:
    def __init__(self, error: Exception | None = None, later: Exception | None = None) -> None:
        self.batches: list[Batch] = []
        self.error, self.later = error, later

    def submit(self, made: Batch) -> "Future[Receipt]":
        if self.error:
            raise self.error
        self.batches.append(made)
        future: Future[Receipt] = Future()
        if self.later:
            future.set_exception(self.later)
        else:
            future.set_result(Receipt(made.batch_id, {}, {}))
        return future


def store(keeper: Keeper, *batches: Batch, wait_s: float = 0.01) -> list[object]:
    async def go() -> list[object]:
        joined = Gather(keeper.submit, wait_s)
        return list(await asyncio.gather(*(joined.store(one) for one in batches), return_exceptions=True))

    return asyncio.run(go())


def test_batches_of_one_moment_are_one_append_with_all_rows_and_drops() -> None:
    keeper = Keeper()
    drops = [{"a": 1}, {"a": 2, "b": 5}]
    assert store(keeper, batch(1, 2, drops=drops[0]), batch(3, drops=drops[1]), batch(4)) == [None, None, None]
    (made,) = keeper.batches
    assert made.frames["metric_samples"]["series_id"].to_list() == [1, 2, 3, 4]
    assert dict(made.drops) == {"a": 3, "b": 5}


def test_joined_batches_stay_below_a_size_and_a_larger_one_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "MOST_ROWS", 3)
    keeper = Keeper()
    store(keeper, batch(1, 2), batch(3), batch(4), batch(5, 6, 7, 8, 9), batch(10))
    assert [made.rows for made in keeper.batches] == [3, 1, 5, 1]


@pytest.mark.parametrize(
    "keeper", [Keeper(error=BusyError("full")), Keeper(later=StoreError("disk full")), Keeper(error=ValueError("odd"))]
)
def test_everyone_hears_of_a_failure(keeper: Keeper) -> None:
    failed = store(keeper, batch(1), batch(2))
    assert [isinstance(error, InfractlError) for error in failed] == [True, True]
    assert str(keeper.error or keeper.later) in str(failed[0])


def test_close_stores_what_waits() -> None:
    keeper = Keeper()

    async def go() -> None:
        joined = Gather(keeper.submit, wait_s=60)
        waiting = asyncio.create_task(joined.store(batch(1)))
        await asyncio.sleep(0)
        await joined.close()
        await waiting

    asyncio.run(go())
    assert len(keeper.batches) == 1


def test_who_stops_waiting_stops_neither_the_writer_nor_the_others(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        writer = Writer(database)

        async def go() -> None:
            joined = Gather(writer.submit, 0.01)
            first, second = (asyncio.create_task(joined.store(batch(n))) for n in (1, 2))
            await asyncio.sleep(0)
            first.cancel()
            await second
            direct = asyncio.wrap_future(writer.submit(batch(3)))
            direct.cancel()
            await joined.store(batch(4))

        asyncio.run(go())
        writer.close()
        assert sorted(database.table("metric_samples")["series_id"]) == [1, 2, 3, 4]
