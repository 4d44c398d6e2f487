"""Targets that come and go while the scraper runs."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.discovery.group import Group
from collector.prometheus.discovery.job import JobDiscovery
from collector.prometheus.discovery.source import Found
from collector.prometheus.job import Job
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.scrape import Scraper
from tests.collector.prometheus.conftest import START, Store
from tests.collector.prometheus.server import Answer, PageServer, serve


def job(**raw: Any) -> Job:
    return compile_jobs([msgspec.convert({"job_name": "j", "scrape_interval": "100ms", **raw}, ScrapeConfig)])[0]


def targets(*addresses: str) -> tuple[Group, ...]:
    return (Group(tuple({"__address__": address} for address in addresses)),)


class Fake:
    """A source that finds what it is told, after as long as it is told."""

    kind, name, every_s = "fake", "fake", 0.02

    def __init__(self, *addresses: str) -> None:
        self.found: Found | Exception = Found(targets(*addresses))
        self.hangs = False
        self.closed = False

    async def refresh(self) -> Found:
        if self.hangs:
            await asyncio.sleep(60)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def close(self) -> None:
        self.closed = True


def running(store: Store, made: Job, sources: list[Fake], script: Callable[[Scraper], Any]) -> Scraper:
    """Run a scraper with fake sources while the script does its steps."""

    async def go() -> Scraper:
        scraper = Scraper((), store.submit, store.clock, jobs=[made])
        if sources:
            scraper._discoveries = [JobDiscovery(made, store.clock, sources)]
        task = asyncio.create_task(scraper.run())
        try:
            await script(scraper)
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return scraper

    return asyncio.run(go())


async def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < limit, "it never came to hold"
        await asyncio.sleep(0.01)


def scrapes(scraper: Scraper) -> dict[str, int]:
    return {health.instance: health.scrapes for health in scraper.health()}


def test_a_target_that_goes_ends_all_its_series_and_the_others_go_on_undisturbed(
    store: Store, pages: PageServer
) -> None:
    pages.answer = Answer(b"a 1\n")
    with serve() as other:
        other.answer = Answer(b"b 1\n")
        source = Fake(pages.address, other.address)

        async def script(scraper: Scraper) -> None:
            await until(lambda: len(scrapes(scraper)) == 2 and min(scrapes(scraper).values()) >= 2)
            before = scrapes(scraper)[other.address]
            source.found = Found(targets(other.address))
            await until(lambda: list(scrapes(scraper)) == [other.address])
            await until(lambda: scrapes(scraper)[other.address] > before + 1)

        running(store, job(), [source], script)
    assert store.values("a")[-1] is None
    assert store.values("a").count(None) == 1
    assert None not in store.values("b")
    ended = store.database.table("metric_samples").filter(pl.col("value").is_null())
    assert ended.height == 5  # a, up and what else is recorded of the scrapes
    described = [batch.frames["metric_series"] for batch in store.batches if "metric_series" in batch.frames]
    assert sum(frame.filter(name="b").height for frame in described) == 1  # it kept its memory
    assert source.closed


def test_a_target_that_comes_is_scraped(store: Store, pages: PageServer) -> None:
    pages.answer = Answer(b"a 1\n")
    source = Fake()

    async def script(scraper: Scraper) -> None:
        assert scraper.health() == []
        await until(lambda: scraper.discovery()[0].sources[0].last_refresh is not None)
        source.found = Found(targets(pages.address))
        await until(lambda: scrapes(scraper).get(pages.address, 0) >= 2)

    running(store, job(), [source], script)
    assert set(store.values("up")) == {1.0}


def test_discovery_that_hangs_or_fails_never_holds_up_scraping(store: Store, pages: PageServer) -> None:
    pages.answer = Answer(b"a 1\n")
    hanging, failing = Fake(), Fake()
    hanging.hangs = True
    failing.found = ValueError("odd")

    async def script(scraper: Scraper) -> None:
        await until(lambda: scrapes(scraper).get(pages.address, 0) >= 3)

    made = job(static_configs=[{"targets": [pages.address]}])
    scraper = running(store, made, [hanging, failing], script)
    (state,) = scraper.discovery()
    assert [source.kind for source in state.sources] == ["static", "fake", "fake"]
    assert state.sources[1].last_refresh is None
    assert state.sources[2].errors == ("internal error: ValueError('odd')",)


def test_the_state_of_a_job_counts_targets_drops_and_errors() -> None:
    source = Fake("a:1", "b:1", "c/d")
    rules = [{"source_labels": ["__address__"], "regex": "b:.*", "action": "drop"}]
    discovery = JobDiscovery(job(relabel_configs=rules, static_configs=[{"targets": ["s:1"]}]), lambda: START, [source])
    assert discovery.state().targets == 1
    assert asyncio.run(discovery.refresh(0)) is True
    assert asyncio.run(discovery.refresh(0)) is False
    state = discovery.state()
    assert (state.job, state.targets, state.dropped) == ("j", 2, 1)
    assert state.dropped_labels[0]["__address__"] == "b:1"
    assert "c/d" in state.refused[0]
    assert [(s.kind, s.targets, s.last_refresh) for s in state.sources] == [("static", 1, None), ("fake", 3, START)]


def test_a_source_that_fails_keeps_its_targets() -> None:
    source = Fake("a:1")
    discovery = JobDiscovery(job(), lambda: START, [source])
    asyncio.run(discovery.refresh(0))
    source.found = RuntimeError("gone")
    assert asyncio.run(discovery.refresh(0)) is False
    assert [target.instance for target in discovery.targets.kept] == ["a:1"]


def test_a_file_written_while_running_is_followed(
    store: Store, pages: PageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.prometheus.discovery.files.LOOK_S", 0.02)
    pages.answer = Answer(b"a 1\n")
    path = tmp_path / "targets.json"
    path.write_text("[]")
    made = job(file_sd_configs=[{"files": [str(tmp_path / "*.json")]}])

    async def script(scraper: Scraper) -> None:
        await until(lambda: scraper.discovery()[0].sources[0].last_refresh is not None)
        new = tmp_path / "new"
        new.write_text(f'[{{"targets": ["{pages.address}"], "labels": {{"rack": "r1"}}}}]')
        new.replace(path)
        await until(lambda: scrapes(scraper).get(pages.address, 0) >= 1)
        path.write_text("[{")
        await until(lambda: bool(scraper.discovery()[0].sources[0].errors))
        assert list(scrapes(scraper)) == [pages.address]

    running(store, made, [], script)
    assert '"rack":"r1"' in store.database.table("metric_series").filter(name="a")["labels"][0]
