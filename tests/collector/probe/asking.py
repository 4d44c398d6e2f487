"""Runs one round of a probe for a test."""

import asyncio
from typing import Any

from collector.probe.attempt import Attempt
from collector.probe.config import ProbeConfig, compile_probe
from collector.probe.rounds import probe_round


def ask(url: str, **config: Any) -> list[Attempt]:
    return asyncio.run(probe_round(compile_probe(ProbeConfig(url=url, **config))))


def ask_once(url: str, **config: Any) -> Attempt:
    [attempt] = ask(url, **config)
    return attempt
