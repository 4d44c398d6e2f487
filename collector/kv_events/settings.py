"""`KvEvents`: an entry of `kv_events` in the configuration, and the sockets it means."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from store.errors import ConfigError

_ENDPOINT = re.compile(r"^tcp://(?P<host>\*|[\w.-]+|\[[0-9a-fA-F:.%\w]+\]):(?P<port>\d{1,5})$|^ipc://.+$")
_PORTS = 65_535


class KvEvents(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Engines that publish KV-cache events.

    `bind`: wait for the engine at `endpoint` (vLLM connects unless its own endpoint has a `*`), else connect to it.
    `replay_endpoint` is always the engine's. `topic` is the beginning of the topics to take. `service` and `instance`
    say whose events these are, as in spans and metrics. With `data_parallel_ranks`, rank n is at both ports + n.
    """

    endpoint: str
    replay_endpoint: str | None = None
    bind: bool = False
    topic: str = ""
    service: str | None = None
    instance: str | None = None
    data_parallel_ranks: int = 1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One publisher, or the address that publishers connect to."""

    address: str
    replay: str | None = None
    bind: bool = False
    topic: str = ""
    service: str | None = None
    instance: str | None = None


def endpoints(entries: Iterable[KvEvents]) -> list[Endpoint]:
    """Return the endpoints of all entries, one for each rank. Raises ConfigError where one cannot be used."""
    found = [_at_rank(entry, rank) for entry in entries for rank in range(_ranks(entry))]
    addresses = [endpoint.address for endpoint in found]
    for address in addresses:
        if addresses.count(address) > 1:
            raise ConfigError(
                f"kv_events: {address} is given twice", "leave one out; `topic` takes all topics that begin with it"
            )
    return found


def _ranks(entry: KvEvents) -> int:
    if entry.data_parallel_ranks < 1:
        raise ConfigError(f"kv_events: data_parallel_ranks of {entry.endpoint} is less than 1")
    return entry.data_parallel_ranks


def _at_rank(entry: KvEvents, rank: int) -> Endpoint:
    address = _shifted(entry.endpoint, rank)
    replay = None if entry.replay_endpoint is None else _shifted(entry.replay_endpoint, rank)
    for text, bound in ((address, entry.bind), (replay or "", False)):
        if "*" in text and not bound:
            raise ConfigError(f"kv_events: {text} names no host to connect to", "name the engine's host in place of *")
    return Endpoint(address, replay, entry.bind, entry.topic, entry.service, entry.instance)


def _shifted(text: str, rank: int) -> str:
    """Return an endpoint with its port moved by a rank. Raises ConfigError for one that is no endpoint."""
    match = _ENDPOINT.match(text)
    port = int(match["port"] or 1) + rank if match else 0
    if match is None or not 0 < port <= _PORTS:
        raise ConfigError(f"kv_events: {text!r} is no endpoint", "write it like tcp://127.0.0.1:5557")
    if rank == 0:
        return text
    if match["port"] is None:
        raise ConfigError(f"kv_events: {text} has no port to move by rank", "give each rank an entry of its own")
    return f"{text.rpartition(':')[0]}:{port}"
