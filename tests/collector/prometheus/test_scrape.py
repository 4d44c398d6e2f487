"""Scraping a real server into a real store: samples, end marks, health, limits."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.schedule import offset_s
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.prometheus.tracker import Health
from store.errors import BusyError, StoreError
from tests.collector.prometheus.conftest import Store
from tests.collector.prometheus.server import Answer, PageServer


def target(address: str, **config: Any) -> Target:
    raw = {"job_name": "engine", "static_configs": [{"targets": [address]}], **config}
    return compile_jobs([msgspec.convert(raw, ScrapeConfig)])[0].targets().kept[0]


def scrape(store: Store, aim: Target, pages: PageServer, answers: list[Answer]) -> list[Health]:
    async def go() -> list[Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        seen = []
        for answer in answers:
            pages.answer = answer
            seen.append(await scraper.scrape_once(aim))
        await scraper.close()
        return seen

    return asyncio.run(go())


def page(text: str, **more: Any) -> Answer:
    return Answer(text.encode(), **more)


def test_pages_become_samples_of_the_target(store: Store, pages: PageServer) -> None:
    aim = target(pages.address)
    health = scrape(store, aim, pages, [page("# TYPE a gauge\na 1\n"), page("# TYPE a gauge\na 2\n")])
    assert store.values("a") == [1.0, 2.0]
    assert store.values("up") == [1.0, 1.0]
    assert store.values("scrape_samples_scraped") == [1.0, 1.0]
    assert [h.up for h in health] == [True, True]
    series = store.database.table("metric_series").filter(pl.col("name") == "a").to_dicts()[0]
    assert (series["job"], series["instance"], series["service"], series["kind"]) == (
        "engine",
        pages.address,
        "engine",
        "gauge",
    )


def test_series_are_described_once(store: Store, pages: PageServer) -> None:
    scrape(store, target(pages.address), pages, [page("a 1\n"), page("a 2\n"), page("a 3\nb 1\n")])
    described = [
        batch.frames["metric_series"].height if "metric_series" in batch.frames else 0 for batch in store.batches
    ]
    assert described == [5, 0, 1]


def test_text_is_preferred_and_compression_offered(store: Store, pages: PageServer) -> None:
    scrape(store, target(pages.address, params={"x": ["1"]}, metrics_path="/m"), pages, [page("a 1\n")])
    assert pages.paths == ["/m?x=1"]
    assert pages.asked[0]["accept"].startswith("text/plain;version=0.0.4")
    assert pages.asked[0]["accept-encoding"] == "gzip"
    assert "openmetrics" not in pages.asked[0]["accept"]


def test_a_series_that_leaves_the_page_ends(store: Store, pages: PageServer) -> None:
    scrape(store, target(pages.address), pages, [page("a 1\nb 1\n"), page("b 2\n"), page("b 3\n"), page("a 4\nb 4\n")])
    assert store.values("a") == [1.0, None, 4.0]
    assert store.values("b") == [1.0, 2.0, 3.0, 4.0]


def test_a_failed_scrape_ends_every_series_once_and_writes_no_zero(store: Store, pages: PageServer) -> None:
    broken = page("Internal Server Error", status=500)
    health = scrape(store, target(pages.address), pages, [page("a 1\n"), broken, broken, page("a 2\n")])
    assert store.values("a") == [1.0, None, 2.0]
    assert store.values("up") == [1.0, 0.0, 0.0, 1.0]
    assert health[1].last_error == "HTTP 500 Internal Server Error"
    assert (health[3].up, health[3].last_error, health[3].scrapes, health[3].failures) == (True, "", 4, 2)


def test_a_server_that_is_down_is_told_from_one_that_answers_500(store: Store, pages: PageServer) -> None:
    (health,) = scrape(store, target("127.0.0.1:1"), pages, [page("")])
    assert health.up is False
    assert "500" not in health.last_error
    assert "connect" in health.last_error.lower()


@pytest.mark.parametrize(
    ("answer", "up", "words"),
    [
        (page("vllm:num_requests_running 4\n", content_type=""), True, "no content type"),
        (page("vllm:num_requests_running 4\n", content_type="text/html"), True, "text/html"),
        (page("<html><form action='/login'>Sign in</form></html>", content_type="text/html"), False, "HTML"),
        (page(""), True, "0 samples"),
        (page("", content_type="text/html"), False, "text/html"),
    ],
)
def test_no_strange_page_looks_like_a_healthy_target(
    store: Store, pages: PageServer, answer: Answer, up: bool, words: str
) -> None:
    (health,) = scrape(store, target(pages.address), pages, [answer])
    assert health.up is up
    assert words in (health.warning if up else health.last_error)


def test_a_redirect_to_a_login_page_is_a_failure(store: Store, pages: PageServer) -> None:
    moved = page("", status=302, headers={"Location": "/metrics"})
    (health,) = scrape(store, target(pages.address), pages, [moved])
    assert "redirect" in health.last_error.lower()


def test_rejected_lines_are_counted_in_health_series_and_store(store: Store, pages: PageServer) -> None:
    (health,) = scrape(store, target(pages.address), pages, [page('a 1\nb{x="} 2\nc 1 1795996800\n')])
    assert (health.samples, health.rejected) == (2, 2)
    assert store.values("scrape_samples_rejected") == [2.0]
    drops = store.database.table("ingest_drops")
    assert dict(drops.select("reason", "rows").iter_rows()) == {"unreadable_line": 1, "time_out_of_range": 1}


def test_a_restart_between_scrapes_shows_in_the_counter_not_in_created(
    store: Store, pages: PageServer, shared: Path
) -> None:
    folder = shared / "cases/05-created-series"
    answers = [Answer((folder / name).read_bytes()) for name in ("t0.prom", "t30.prom", "t60-restarted.prom")]
    health = scrape(store, target(pages.address), pages, answers)
    window = store.database.table("metric_series").filter(pl.col("name").str.starts_with("vllm"))
    assert sorted(window["name"].unique()) == ["vllm:generation_tokens_total"]
    assert sorted(store.values("generation_tokens_total")) == [40, 1000, 1150, 2000, 2150, 2300]
    assert health[0].created == 2


def test_a_page_over_the_limit_is_refused(store: Store, pages: PageServer) -> None:
    big = page("".join(f'a{{i="{i}"}} 1\n' for i in range(1000)))
    (health,) = scrape(store, target(pages.address, body_size_limit="5KB"), pages, [big])
    assert (health.up, health.samples) == (False, 0)
    assert "body_size_limit" in health.last_error


def test_a_body_that_is_cut_short_is_a_failure_not_a_smaller_page(store: Store, pages: PageServer) -> None:
    (health,) = scrape(store, target(pages.address), pages, [page("a 1\nb 234\n", cut=3)])
    assert health.up is False
    assert store.values("a", "b") == []


def test_a_slow_target_times_out(store: Store, pages: PageServer) -> None:
    release = threading.Event()
    aim = target(pages.address, scrape_timeout="100ms")
    (health,) = scrape(store, aim, pages, [page("a 1\n", delay=release)])
    release.set()
    assert health.up is False
    assert "0.1 s" in health.last_error


def test_samples_a_busy_store_refuses_are_counted_and_the_next_scrape_describes_them(
    store: Store, pages: PageServer
) -> None:
    aim = target(pages.address)

    async def go() -> list[Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        pages.answer = page("a 1\n")
        store.fails = BusyError("the write queue is full")
        busy = await scraper.scrape_once(aim)
        store.fails = None
        fine = await scraper.scrape_once(aim)
        await scraper.close()
        return [busy, fine]

    busy, fine = asyncio.run(go())
    assert (busy.up, busy.dropped) == (True, 5)
    assert "queue is full" in busy.warning
    assert (fine.warning, fine.dropped) == ("", 5)
    assert store.values("a") == [1.0]
    assert store.database.table("ingest_drops")["reason"].to_list() == ["store_busy"]
    assert store.database.table("ingest_drops")["rows"].to_list() == [5]


def test_a_store_that_fails_later_is_counted_too(store: Store, pages: PageServer) -> None:
    def submit(batch: object) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(StoreError("disk full"))
        return future

    async def go() -> Health:
        aim = target(pages.address)
        pages.answer = page("a 1\n")
        scraper = Scraper([aim], submit, store.clock)
        health = await scraper.scrape_once(aim)
        await scraper.close()
        return health

    health = asyncio.run(go())
    assert health.dropped == 5
    assert "disk full" in health.warning


def test_a_series_lost_to_a_busy_store_still_ends(store: Store, pages: PageServer) -> None:
    aim = target(pages.address)

    async def go() -> None:
        scraper = Scraper([aim], store.submit, store.clock)
        pages.answer = page("a 1\nb 1\n")
        await scraper.scrape_once(aim)
        pages.answer = page("b 2\n")
        store.fails = BusyError("full")
        await scraper.scrape_once(aim)
        store.fails = None
        await scraper.scrape_once(aim)
        await scraper.close()

    asyncio.run(go())
    assert store.values("a") == [1.0, None]
    assert store.values("b") == [1.0, 2.0]


def test_run_scrapes_every_target_until_cancelled_and_one_fault_stops_nothing(
    store: Store, pages: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = target(pages.address, scrape_interval="100ms", job_name="good")
    bad = target("127.0.0.1:1", scrape_interval="100ms", job_name="bad")
    pages.answer = page("a 1\n")

    async def go() -> list[Health]:
        scraper = Scraper([bad, good], store.submit, store.clock)
        running = asyncio.create_task(scraper.run())
        for _ in range(400):
            await asyncio.sleep(0.01)
            if all(health.scrapes >= 2 for health in scraper.health()):
                break
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return scraper.health()

    first, second = asyncio.run(go())
    assert (first.job, first.up) == ("bad", False)
    assert (second.job, second.up) == ("good", True)
    assert min(first.scrapes, second.scrapes) >= 2


def test_run_without_targets_waits_to_be_cancelled(store: Store) -> None:
    async def go() -> bool:
        running = asyncio.create_task(Scraper([], store.submit).run())
        await asyncio.sleep(0.02)
        waiting = not running.done()
        running.cancel()
        return waiting

    assert asyncio.run(go())


def test_an_unexpected_fault_is_a_failed_scrape(
    store: Store, pages: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.prometheus.scrape.PageMemo.parse", lambda *_: 1 / 0)
    (health,) = scrape(store, target(pages.address), pages, [page("a 1\n")])
    assert health.up is False
    assert health.last_error.startswith("internal error")


def test_targets_are_spread_over_the_interval() -> None:
    aims = [target(f"10.0.0.{i}:8000") for i in range(100)]
    offsets = [offset_s(aim) for aim in aims]
    assert offsets == [offset_s(replace(aim)) for aim in aims]
    assert all(0 <= offset < 15 for offset in offsets)
    assert len({int(offset) for offset in offsets}) > 10


def test_a_target_that_keeps_failing_is_tried_less_often_and_at_every_turn_once_it_works(
    store: Store, pages: PageServer
) -> None:
    aim = target(pages.address, scrape_interval="50ms")
    pages.answer = page("", status=503)

    async def go() -> tuple[Health, Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        running = asyncio.create_task(scraper.run())
        (failing,) = await seen(scraper, lambda health: health.failing >= 4)
        pages.answer = page("a 1\n")
        (working,) = await seen(scraper, lambda health: health.scrapes >= failing.scrapes + 3)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return failing, working

    failing, working = asyncio.run(go())
    assert failing.next_try is not None
    assert failing.last_scrape is not None
    assert (working.up, working.failing, working.failures) == (True, 0, failing.failures)
    assert working.lag_s is not None


async def seen(scraper: Scraper, holds: Callable[[Health], bool]) -> list[Health]:
    """Wait until it holds for every target."""
    async with asyncio.timeout(10):
        while not all(map(holds, scraper.health())):
            await asyncio.sleep(0.01)
    return scraper.health()


def test_a_fault_outside_of_a_page_stops_neither_the_target_nor_the_others(
    store: Store, pages: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    aims = [target(pages.address, job_name=name, scrape_interval="50ms") for name in ("one", "two")]
    pages.answer = page("a 1\n")

    async def go() -> list[Health]:
        scraper = Scraper(aims, store.submit, store.clock)
        monkeypatch.setattr(scraper._tracks[aims[0].key].tracker, "committed", lambda: 1 / 0)
        running = asyncio.create_task(scraper.run())
        found = await seen(scraper, lambda health: health.scrapes >= 3 and health.up is True)  # one may be late
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return found

    assert [health.up for health in asyncio.run(go())] == [True, True]


def test_pages_of_many_targets_are_one_append(store: Store, pages: PageServer) -> None:
    aims = [target(pages.address, metrics_path=f"/{i}", scrape_interval="400ms") for i in range(20)]
    pages.answer = page("a 1\n")

    async def go() -> None:
        scraper = Scraper(aims, store.submit, store.clock)
        running = asyncio.create_task(scraper.run())
        await seen(scraper, lambda health: health.scrapes >= 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(go())
    assert len(store.batches) < 20
    assert store.database.table("metric_samples").height >= 2 * 20 * 4


def test_a_large_page_is_read_in_a_thread_with_the_same_result(store: Store, pages: PageServer) -> None:
    text = "".join(f'a{{i="{i}",filler="{"x" * 50}"}} {i}\n' for i in range(2000))
    (health,) = scrape(store, target(pages.address, sample_limit=2000), pages, [page(text)])
    assert (health.up, health.samples) == (True, 2000)
    assert sorted(value for value in store.values("a") if value is not None) == list(range(2000))
