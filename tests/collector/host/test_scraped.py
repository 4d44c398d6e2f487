"""The host as a target: scraped into a real store, with `up`, end marks and counts like any other."""

import asyncio
from pathlib import Path

from collector.host.reader import HostReader
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import local_target
from collector.prometheus.tracker import Health
from tests.collector.prometheus.conftest import Store


def scrape(root: Path, store: Store, times: int) -> list[Health]:
    target = local_target("host", HostReader(root))

    async def go() -> list[Health]:
        scraper = Scraper([target], store.submit, store.clock)
        seen = [await scraper.scrape_once(target) for _ in range(times)]
        await scraper.close()
        return seen

    return asyncio.run(go())


def test_a_host_is_scraped_into_the_store(root: Path) -> None:
    store = Store(root / "store")
    health, again = scrape(root, store, 2)
    assert (health.up, again.up) == (True, True), health.last_error
    assert health.samples > 80
    series = store.database.table("metric_series").filter(name="host_cpu_seconds_total")
    assert set(series["kind"]) == {"counter"}
    assert set(series["semantic"]) == {"cumulative"}
    assert {'"host":' in labels for labels in series["labels"]} == {True}
    store.database.close()


def test_a_root_without_proc_is_down_with_the_reason(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (health,) = scrape(tmp_path / "empty", store, 1)
    assert health.up is False
    assert "/proc/stat: No such file or directory" in health.last_error
    store.database.close()
