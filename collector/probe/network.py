"""Connections whose name lookup and TCP connect are timed apart: httpcore does both in one step."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import Any

import httpcore

from collector.probe.timeline import CONNECT, DNS, Timeline

ADDRESS_S = 2.0
"""Longest wait for an address where the name has another one: a broken IPv6 route is not to look like a dead server."""


class TimedBackend(httpcore.AsyncNetworkBackend):
    """Looks a name up, then connects to its addresses in turn; both go on `timeline`, which is set anew per attempt."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self._tcp = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect. Raises socket.gaierror, or ConnectError or ConnectTimeout of the last address."""
        failed: Exception | None = None
        addresses = await self._addresses(host, port)
        for address in addresses:
            limit_s = timeout if address == addresses[-1] else ADDRESS_S
            try:
                with self.timeline.phase(CONNECT, {"network.peer.address": address, "network.peer.port": port}):
                    return await self._tcp.connect_tcp(address, port, limit_s, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or socket.gaierror(socket.EAI_NONAME, "no address")

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[str]:
        """Addresses of a name, in the resolver's order; an address needs no lookup."""
        if _is_address(host):
            return [host]
        with self.timeline.phase(DNS, {"dns.question.name": host}):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
