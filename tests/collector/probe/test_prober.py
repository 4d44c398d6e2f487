"""Probes at their intervals: what is stored, what is known of them, what they survive."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from collector.probe.config import Probe, ProbeConfig, compile_probe
from collector.probe.prober import Prober
from collector.prometheus.config import Authorization
from store.batch import Batch, Receipt
from store.errors import BusyError, StoreError
from tests.collector.probe.server import Engine
from tests.rules.servers import free_port


def stored(batches: list[Batch]) -> Callable[[Batch], "Future[Receipt]"]:
    def submit(batch: Batch) -> "Future[Receipt]":
        batches.append(batch)
        future: Future[Receipt] = Future()
        future.set_result(Receipt(batch.batch_id, {}, {}))
        return future

    return submit


def every(url: str, **more: Any) -> Probe:
    return compile_probe(ProbeConfig(url=url, every="50ms", timeout="5s", **more))


def run_until(prober: Prober, done: Callable[[], bool]) -> None:
    async def go() -> None:
        running = asyncio.create_task(prober.run())
        async with asyncio.timeout(20):
            while not done():
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(go())


def test_a_probe_is_repeated_and_its_state_is_that_of_the_last_round(served: Engine) -> None:
    batches: list[Batch] = []
    prober = Prober([every(f"http://{served.address}/v1", count=2, service="chat")], stored(batches))
    assert prober.health()[0].up is None
    run_until(prober, lambda: len(batches) >= 3)
    [health] = prober.health()
    assert health.up is True
    assert (health.service, health.model, health.errors, health.last_error) == ("chat", "tiny-2", 0, "")
    assert health.attempts >= 6
    assert health.ttft_s is not None
    assert health.next_try is not None
    assert health.last_round is not None
    assert health.next_try > health.last_round
    assert len({batch.frames["spans"]["trace_id"][0] for batch in batches}) == len(batches)


def test_a_probe_that_fails_says_why_and_recovers_and_the_others_go_on(served: Engine) -> None:
    batches: list[Batch] = []
    served.script.status = 500
    urls = f"http://{served.address}/v1", f"tcp://127.0.0.1:{free_port()}", f"tcp://{served.address}"
    prober = Prober([every(url) for url in urls], stored(batches))

    def failed() -> bool:
        if prober.health()[0].failing >= 2:
            served.script.status = 200
        return served.script.status == 200 and prober.health()[0].up is True and prober.health()[1].failing >= 2

    run_until(prober, failed)
    first, second, third = prober.health()
    assert (first.failing, first.last_error) == (0, "")
    assert first.errors >= 2
    assert second.last_error == "connection refused"
    assert second.remedy
    assert third.errors == 0


def test_attempts_that_are_not_stored_are_counted(served: Engine) -> None:
    calls = 0

    def refuse(_: Batch) -> "Future[Receipt]":
        nonlocal calls
        calls += 1
        if calls == 1:
            raise BusyError("full")
        future: Future[Receipt] = Future()
        future.set_exception(StoreError("disk full"))
        return future

    prober = Prober([every(f"tcp://{served.address}", count=2)], refuse)
    run_until(prober, lambda: prober.health()[0].dropped >= 4)
    assert prober.health()[0].up is True


def test_a_credential_that_cannot_be_read_is_a_failed_round(tmp_path: Path, served: Engine) -> None:
    file = tmp_path / "token"
    probe = every(f"http://{served.address}/v1", authorization=Authorization(credentials_file=str(file)))
    prober = Prober([probe], stored([]))

    def mended() -> bool:
        if prober.health()[0].up is False:
            assert str(file) in prober.health()[0].last_error
            file.write_text("s3cret")
        return prober.health()[0].up is True

    run_until(prober, mended)
    assert served.requests[-1].headers["authorization"] == "Bearer s3cret"


def test_no_probe_is_no_work() -> None:
    asyncio.run(Prober([], stored([])).run())
