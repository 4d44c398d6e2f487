"""Client addresses without the person: cut to a network, and connections counted instead of named."""

import ipaddress
from functools import lru_cache
from hashlib import blake2b


def split_port(text: str) -> tuple[str, str | None]:
    """Take '192.0.2.1:443' or '[2001:db8::1]:443' apart; an address without a port stays whole."""
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        return address, port.lstrip(":") or None
    if text.count(":") == 1:
        address, _, port = text.partition(":")
        return address, port or None
    return text, None


@lru_cache(maxsize=65_536)
def network_of(address: str) -> str | None:
    """Return the /24 of an IPv4 address, the /48 of an IPv6 one; None for a name or anything else."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 48), strict=False))


class Connections:
    """Numbers connections in the order they appear.

    A hash of address and port could be turned back into them by trying all; a number cannot. `mark` tells the numbers
    of one file from those of another.
    """

    def __init__(self, first_line: str) -> None:
        self._mark = blake2b(first_line.encode(errors="replace"), digest_size=4).hexdigest()
        self._seen: dict[tuple[str, str], int] = {}

    def number(self, address: str, port: str) -> str:
        """Return the name of the connection from that address and port."""
        return f"{self._mark}-{self._seen.setdefault((address, port), len(self._seen) + 1)}"
