"""`dns_sd_configs`: targets from SRV, A and AAAA records."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.prometheus.discovery.group import Group
from collector.prometheus.discovery.source import Found

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

TYPES = ("SRV", "A", "AAAA")
_LONGEST_S = 10.0


@dataclass(slots=True)
class DnsSource:
    """Names of one record type. A name that does not exist has no targets; one that cannot be asked keeps its last.

    `resolver` is the machine's own (resolv.conf, search domains) unless given.
    """

    names: tuple[str, ...]
    type: str = "SRV"
    port: int | None = None
    refresh_s: float = 30.0
    resolver: "Resolver | None" = None
    kind: str = "dns_sd"
    _last: dict[str, Group] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The names and their type."""
        return f"{', '.join(self.names)} ({self.type})"

    @property
    def every_s(self) -> float:
        """Seconds between look-ups."""
        return self.refresh_s

    async def refresh(self) -> Found:
        """Look all names up at once."""
        errors = [error for error in await asyncio.gather(*map(self._look_up, self.names)) if error]
        return Found(tuple(self._last.values()), tuple(errors))

    async def close(self) -> None:
        """Nothing is held open."""

    async def _look_up(self, name: str) -> str:
        """Renew the targets of a name; return what went wrong."""
        import dns.exception
        import dns.resolver
        from dns.asyncresolver import Resolver

        try:
            self.resolver = self.resolver or Resolver()
            answer = await self.resolver.resolve(
                name, self.type, raise_on_no_answer=False, search=True, lifetime=min(self.refresh_s, _LONGEST_S)
            )
        except dns.resolver.NXDOMAIN:
            self._last[name] = Group(())
            return f"{name}: no such name"
        except dns.exception.DNSException as error:
            return f"{name}: {error}"
        except OSError as error:
            return f"{name}: {error.strerror or error}"
        self._last[name] = Group(tuple(self._target(name, record) for record in sorted(answer.rrset or (), key=str)))
        return ""

    def _target(self, name: str, record: Any) -> dict[str, str]:
        labels = {"__meta_dns_name": name}
        if self.type == "SRV":
            target = record.target.to_text()
            labels |= {"__meta_dns_srv_record_target": target, "__meta_dns_srv_record_port": str(record.port)}
            return {"__address__": f"{target.rstrip('.')}:{record.port}", **labels}
        address = f"[{record.address}]" if self.type == "AAAA" else record.address
        return {"__address__": f"{address}:{self.port}", **labels}
