"""Readers on this machine, scraped like targets."""

import asyncio
import math
import threading
import time
from collections.abc import Sequence

import pytest

from collector.prometheus.exposition import Sample
from collector.prometheus.local import SampleMemo
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Absence, Target, local_target
from collector.prometheus.tracker import Health
from store.errors import SourceError
from tests.collector.prometheus.conftest import Store


class Fake:
    """Gives its answers in turn; an exception is raised, an event waited for."""

    def __init__(self, *answers: Sequence[Sample] | Exception | threading.Event) -> None:
        self.answers = list(answers)
        self.reads = 0
        self.closed = 0

    def read(self) -> Sequence[Sample]:
        self.reads += 1
        answer = self.answers.pop(0)
        if isinstance(answer, threading.Event):
            answer.wait(5)
            return []
        if isinstance(answer, Exception):
            raise answer
        return answer

    def absences(self) -> Sequence[Absence]:
        return [Absence("GPU 0", "gpu_y", "not supported")]

    def close(self) -> None:
        self.closed += 1


def scrape(store: Store, aim: Target, times: int) -> list[Health]:
    async def go() -> list[Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        seen = [await scraper.scrape_once(aim) for _ in range(times)]
        await scraper.close()
        return seen

    return asyncio.run(go())


def gpu(value: float, index: str = "0") -> list[Sample]:
    energy = Sample("gpu_energy_joules_total", {"gpu": index}, value * 10, None)
    return [Sample("gpu_x", {"gpu": index}, value, None), energy]


def test_samples_are_stored_with_the_labels_of_the_target_up_and_kind(store: Store) -> None:
    reader = Fake(gpu(1.0), gpu(2.0))
    health = scrape(store, local_target("nvml", reader, labels={"host": "n1"}), 2)
    assert store.values("gpu_x") == [1.0, 2.0]
    assert store.values("up") == [1.0, 1.0]
    series = store.database.table("metric_series")
    assert series.filter(name="gpu_x")["job"].to_list() == ["nvml"]
    assert series.filter(name="gpu_energy_joules_total")["kind"].to_list() == ["counter"]
    assert series.filter(name="gpu_x")["kind"].to_list() == ["gauge"]
    assert [h.up for h in health] == [True, True]
    assert reader.closed == 1


def test_what_is_not_available_is_null_and_a_device_that_is_gone_ends(store: Store) -> None:
    both = [*gpu(1.0), Sample("gpu_x", {"gpu": "1"}, math.nan, None)]
    scrape(store, local_target("nvml", Fake(both, gpu(2.0)), 15.0), 2)
    assert sorted(map(str, store.values("gpu_x"))) == ["1.0", "2.0", "None", "None"]


def test_a_stated_time_is_kept(store: Store) -> None:
    at_ms = int(store.now.timestamp() * 1000) - 60_000
    scrape(store, local_target("nvml", Fake([Sample("gpu_x", {}, 1.0, at_ms)])), 1)
    row = store.database.table("metric_samples").filter(value=1.0).sort("ts").to_dicts()[0]
    assert int(row["ts"].timestamp() * 1000) != 0
    assert row["ts"].replace(tzinfo=store.now.tzinfo).timestamp() * 1000 == at_ms


def test_a_source_error_is_up_0_with_its_reason_and_remedy_and_no_zero_value(store: Store) -> None:
    reader = Fake(gpu(1.0), SourceError("the driver is gone", "load it"), ValueError("odd"))
    health = scrape(store, local_target("nvml", reader), 3)
    assert [(h.up, h.last_error, h.remedy) for h in health[1:]] == [
        (False, "the driver is gone", "load it"),
        (False, "internal error: ValueError('odd')", ""),
    ]
    assert store.values("gpu_x") == [1.0, None]
    assert store.values("up") == [1.0, 0.0, 0.0]


def test_a_read_that_hangs_fails_by_its_timeout_and_is_not_joined_by_a_second(store: Store) -> None:
    hang = threading.Event()
    reader = Fake(hang, gpu(1.0))
    aim = local_target("nvml", reader, interval_s=0.05)

    async def go() -> list[Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        seen = [await scraper.scrape_once(aim) for _ in range(2)]
        await scraper.close()
        assert (reader.reads, reader.closed) == (1, 0)
        hang.set()
        while (await scraper.scrape_once(aim)).up is False:
            await asyncio.sleep(0.01)
        return [*seen, *scraper.health()]

    first, second, last = asyncio.run(go())
    assert "within 0.05 s" in first.last_error
    assert "still hangs" in second.last_error
    assert last.up is True
    assert reader.reads == 2


def test_a_blocking_read_holds_nothing_else_up(store: Store) -> None:
    class Slow(Fake):
        def read(self) -> Sequence[Sample]:
            time.sleep(0.1)
            return super().read()

    slow, fast = local_target("slow", Slow(gpu(1.0))), local_target("fast", Fake(gpu(2.0)))

    async def go() -> list[str]:
        scraper = Scraper([slow, fast], store.submit, store.clock)
        order: list[str] = []

        async def one(aim: Target) -> None:
            await scraper.scrape_once(aim)
            order.append(aim.job)

        await asyncio.gather(one(slow), one(fast))
        return order

    assert asyncio.run(go()) == ["fast", "slow"]


@pytest.mark.parametrize("labels", [[{"a": "1", "b": "2"}, {"b": "2", "a": "1"}]])
def test_an_unchanged_list_of_series_is_the_same_list(labels: list[dict[str, str]]) -> None:
    memo = SampleMemo()
    one, two = (memo.page([Sample("x", pair, 1.0, None)]) for pair in labels)
    three = memo.page([Sample("x", labels[0], 1.0, None), Sample("y", {}, 2.0, None)])
    assert two.series is one.series
    assert three.series is not one.series
    assert three.series[0] is one.series[0]


def test_what_readers_cannot_see_is_told_with_their_target(store: Store) -> None:
    aim = local_target("nvml", Fake(gpu(1.0)), labels={"instance": "n1"})
    page = Target("web", "h:1", "http://h:1/", {"job": "web", "instance": "h:1"})
    assert Scraper([aim, page], store.submit, store.clock).absences() == [
        {"job": "nvml", "instance": "n1", "subject": "GPU 0", "what": "gpu_y", "reason": "not supported"}
    ]
