"""Probes of infractl.yaml, and rounds of probes made by a command: once, or again and again until interrupted."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from infractl.configfile import ConfigFile
from infractl.probe_result import Round
from store.errors import ConfigError

if TYPE_CHECKING:
    from collector.probe.config import Probe


def configured_probes(config: ConfigFile) -> tuple["Probe", ...]:
    """Probes of the section probes. Raises ConfigError naming file, line and key."""
    from collector.probe.config import ProbeConfig, compile_probe
    from collector.prometheus.config import JobError

    found = []
    for index, given in enumerate(config.section("probes", list[ProbeConfig]) or []):
        try:
            found.append(compile_probe(given))
        except JobError as error:
            where = config.where("probes", index, *error.path)
            raise ConfigError(f"{where}: probes[{index}]: {error}", error.hint) from error
    return tuple(found)


async def probe_all(probes: "Sequence[Probe]") -> list[Round]:
    """Make one round of every probe, one after the other, so that none slows another."""
    from collector.probe.rounds import probe_round

    return [Round(probe, await probe_round(probe)) for probe in probes]


async def probe_forever(probes: "Sequence[Probe]", every_s: float, take: Callable[[list[Round]], object]) -> None:
    """Make rounds and give each to `take`, until SIGINT or SIGTERM; a round that lasts then is given up."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    stopped = asyncio.create_task(stop.wait())
    due_s = loop.time()
    while not stop.is_set():
        made = asyncio.create_task(probe_all(probes))
        await asyncio.wait((made, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not made.done():
            made.cancel()
            await asyncio.gather(made, return_exceptions=True)
            return
        take(made.result())
        due_s += every_s * max(1, -((due_s - loop.time()) // every_s))  # turns that have passed are skipped
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(stopped), due_s - loop.time())
