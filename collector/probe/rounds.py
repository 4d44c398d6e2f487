"""One round of a probe: its requests, some at a time, each on a connection of its own unless told otherwise."""

import asyncio
import ssl
from collections.abc import Iterator

from collector.probe.attempt import Attempt
from collector.probe.client import Client, Model, tls_of
from collector.probe.config import Probe


async def probe_round(probe: Probe) -> list[Attempt]:
    """Make the requests of one round, in the order in which they began.

    Where the model is not given and cannot be told, the attempt to ask for it is all there is. Raises SourceError where
    a file of credentials or certificates cannot be read.
    """
    config = probe.config
    context = await asyncio.to_thread(tls_of, probe)  # loading the system's certificates takes 20 ms
    model = await _model(probe, context)
    if isinstance(model, Attempt):
        return [model]
    clients = [Client(probe, context) for _ in range(min(config.concurrency, config.count))]
    turns = iter(range(config.count))
    try:
        made = await asyncio.gather(*(_work(client, model, turns) for client in clients))
    finally:
        await asyncio.gather(*(client.close() for client in clients))
    return sorted((attempt for some in made for attempt in some), key=lambda attempt: attempt.timeline.zero_ns)


async def _model(probe: Probe, context: ssl.SSLContext | None) -> Model | Attempt | None:
    """Return the model to ask: the one given, else the first of the endpoint; None for what asks no model."""
    if not probe.target.operation.is_inference:
        return None
    if probe.config.model:
        return Model(probe.config.model, None)
    client = Client(probe, context)  # its own, so that the first attempt finds no connection open
    try:
        return await client.first_model()
    finally:
        await client.close()


async def _work(client: Client, model: Model | None, turns: Iterator[int]) -> list[Attempt]:
    return [await client.attempt(model) for _ in turns]
