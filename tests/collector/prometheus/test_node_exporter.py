"""A real node_exporter, started here, scraped into a real store."""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from collector.prometheus.config import ScrapeConfig, StaticConfig
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.scrape import Scraper
from collector.prometheus.tracker import Health
from tests.collector.prometheus.conftest import Store

NAMES = ("prometheus-node-exporter", "node_exporter")


@pytest.fixture
def exporter() -> Iterator[str]:
    program = next((path for path in map(shutil.which, NAMES) if path), None)
    if program is None:
        pytest.skip("no node_exporter on this machine")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [program, f"--web.listen-address={address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(address)
        yield address
    finally:
        process.terminate()
        process.wait()


def _wait(address: str) -> None:
    host, port = address.split(":")
    for _ in range(200):
        try:
            socket.create_connection((host, int(port)), 0.2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("node_exporter did not open its port")


def test_a_node_exporter_is_scraped_without_a_rejected_line(exporter: str, store: Store) -> None:
    (target,) = compile_jobs([ScrapeConfig("node", [StaticConfig([exporter])])])[0].targets().kept

    async def go() -> list[Health]:
        scraper = Scraper([target], store.submit, store.clock)
        seen = [await scraper.scrape_once(target) for _ in range(2)]
        await scraper.close()
        return seen

    first, second = asyncio.run(go())
    assert (first.up, second.up) == (True, True), first.last_error
    assert first.samples > 200
    assert (first.rejected, first.warning, second.dropped) == (0, "", 0)
    assert len(store.values("node_load1")) == 2
    idle = store.database.table("metric_series").filter(name="node_cpu_seconds_total")
    assert set(idle["kind"]) == {"counter"}
    samples = store.database.table("metric_samples")
    assert samples.height >= first.samples + second.samples
