"""Probes at their intervals, for as long as `serve` runs."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil

from collector.probe.attempt import Attempt
from collector.probe.config import Probe
from collector.probe.rounds import probe_round
from collector.probe.rows import batch_of
from store.batch import Batch, Receipt
from store.errors import InfractlError

log = logging.getLogger(__name__)
Submit = Callable[[Batch], "Future[Receipt]"]


@dataclass(frozen=True, slots=True)
class ProbeHealth:
    """State of a probe. `up` is None before the first round, else whether an attempt of the last one succeeded.

    `attempts` and `errors` count since the start, `failing` rounds since one succeeded, `dropped` attempts lost because
    the store was busy or failed. `last_error` and `remedy` are of the last round, '' where all was well; `ttft_s` and
    `e2e_s` of its last attempt that succeeded.
    """

    url: str
    service: str
    model: str | None = None
    up: bool | None = None
    last_round: datetime | None = None
    next_try: datetime | None = None
    attempts: int = 0
    errors: int = 0
    failing: int = 0
    dropped: int = 0
    last_error: str = ""
    remedy: str = ""
    ttft_s: float | None = None
    e2e_s: float | None = None


class Prober:
    """Runs each probe at its interval and hands its rows to `submit`."""

    def __init__(
        self, probes: Sequence[Probe], submit: Submit, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._probes, self._submit, self._clock = probes, submit, clock
        self._health = [ProbeHealth(p.target.shown_url, p.config.service, p.config.model) for p in probes]

    def health(self) -> list[ProbeHealth]:
        """State of every probe, in their order."""
        return list(self._health)

    async def run(self) -> None:
        """Probe until cancelled."""
        async with asyncio.TaskGroup() as group:
            for index in range(len(self._probes)):
                group.create_task(self._repeat(index))

    async def _repeat(self, index: int) -> None:
        """Keep to the grid of the interval: turns that pass while a round lasts are skipped."""
        loop = asyncio.get_running_loop()
        every_s = self._probes[index].every_s
        due_s = loop.time()
        while True:
            await self._round(index)
            due_s += every_s * max(1, ceil((loop.time() - due_s) / every_s))
            wait_s = due_s - loop.time()
            self._health[index] = replace(self._health[index], next_try=self._clock() + timedelta(seconds=wait_s))
            await asyncio.sleep(wait_s)

    async def _round(self, index: int) -> None:
        probe = self._probes[index]
        try:
            attempts = await probe_round(probe)
        except InfractlError as error:
            self._failed(index, error)
            return
        self._health[index] = _after(self._health[index], attempts, self._clock())
        try:
            await asyncio.wrap_future(self._submit(batch_of(probe, attempts)))
        except InfractlError as error:
            health = self._health[index]
            self._health[index] = replace(health, dropped=health.dropped + len(attempts))
            log.warning("probe %s: %d attempts are not stored: %s", health.url, len(attempts), error)

    def _failed(self, index: int, error: InfractlError) -> None:
        """Take note of a round that could not begin."""
        health = self._health[index]
        self._health[index] = replace(
            health,
            up=False,
            last_round=self._clock(),
            failing=health.failing + 1,
            last_error=str(error),
            remedy=error.hint,
        )


def _after(health: ProbeHealth, attempts: Sequence[Attempt], at: datetime) -> ProbeHealth:
    faults = [attempt.fault for attempt in attempts if attempt.fault]
    good = [attempt for attempt in attempts if not attempt.fault]
    return replace(
        health,
        model=next((a.answer.model or a.model for a in good), health.model),
        up=bool(good),
        last_round=at,
        attempts=health.attempts + len(attempts),
        errors=health.errors + len(faults),
        failing=0 if good else health.failing + 1,
        last_error=faults[-1].text if faults else "",
        remedy=faults[-1].remedy if faults else "",
        ttft_s=good[-1].ttft_s if good else None,
        e2e_s=good[-1].e2e_s if good else None,
    )
