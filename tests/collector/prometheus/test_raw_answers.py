"""The recorded answers of cases 03 and 41, byte for byte over a socket, and what a target looks like after them."""

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.prometheus.tracker import Health
from tests.collector.prometheus.conftest import Store
from tests.collector.prometheus.server import Answer, PageServer
from tests.rules.servers import free_port


@contextmanager
def raw(shared: Path, file: Path) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(shared / "cases/_tools/serve_raw.py"), str(file), str(port)])
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.03)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def scrape(store: Store, address: str) -> Health:
    aim = Target("j", address, f"http://{address}/metrics", {"job": "j", "instance": address})

    async def go() -> Health:
        scraper = Scraper([aim], store.submit, store.clock)
        health = await scraper.scrape_once(aim)
        await scraper.close()
        return health

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("name", "up", "words"),
    [
        ("1-blank.http", True, "no content type"),
        ("2-html-type.http", True, "text/html"),
        ("3-login.http", False, "HTML"),
        ("4-empty.http", True, "0 samples"),
    ],
)
def test_no_strange_answer_looks_like_a_healthy_target_without_data(
    store: Store, shared: Path, name: str, up: bool, words: str
) -> None:
    with raw(shared, shared / "cases/03-content-type-and-login-page" / name) as address:
        health = scrape(store, address)
    assert health.up is up
    assert words in (health.warning if up else health.last_error)
    samples = 1 if name.startswith(("1", "2")) else 0
    assert health.samples == samples
    assert store.values("vllm:num_requests_running", "requests_running") == [4.0] * samples


def test_a_server_that_answers_500_is_told_from_one_that_is_down_and_no_zero_is_written(
    store: Store, shared: Path
) -> None:
    with raw(shared, shared / "cases/41-multiprocess-stale-pids/500.http") as address:
        answered = scrape(store, address)
    down = scrape(store, address)
    assert (answered.up, answered.last_error) == (False, "HTTP 500 Internal Server Error")
    assert (down.up, down.last_error) == (False, f"cannot connect to {address}: Connection refused")
    names = store.database.table("metric_series")["name"].unique().to_list()
    assert sorted(names) == ["scrape_duration_seconds", "scrape_samples_rejected", "scrape_samples_scraped", "up"]
    assert store.values("up") == [0.0, 0.0]


def test_json_on_the_usual_path_points_to_where_tensorrt_llm_has_its_metrics(store: Store, pages: PageServer) -> None:
    pages.answer = Answer(b'[{"iter": 1, "numActiveRequests": 2}]', "application/json")
    health = scrape(store, pages.address)
    assert health.up is False
    assert "/prometheus/metrics" in health.remedy
