"""What every way of discovery is: refreshed at an interval, keeping the last targets of what fails."""

from dataclasses import dataclass
from typing import Protocol

from collector.prometheus.discovery.group import Group


@dataclass(frozen=True, slots=True)
class Found:
    """Targets as of now (those of a part that failed are its last), and what failed."""

    groups: tuple[Group, ...]
    errors: tuple[str, ...] = ()


class Source(Protocol):
    """One entry of file_sd_configs, http_sd_configs or dns_sd_configs."""

    @property
    def kind(self) -> str:
        """file_sd, http_sd or dns_sd."""
        ...

    @property
    def name(self) -> str:
        """What is read, for people: files, URL, DNS names (no secrets)."""
        ...

    @property
    def every_s(self) -> float:
        """Seconds between refreshes."""
        ...

    async def refresh(self) -> Found:
        """Look for targets. Failures are told in `Found.errors`, never raised."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
