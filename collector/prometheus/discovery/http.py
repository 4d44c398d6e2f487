"""`http_sd_configs`: targets from a URL that answers with JSON."""

import re
from dataclasses import dataclass, field

from collector.prometheus.config import HttpClient
from collector.prometheus.discovery.group import Group, read_json
from collector.prometheus.discovery.source import Found
from collector.prometheus.fetch import Fetcher, Request
from collector.prometheus.masking import MASK, shown
from store.errors import SourceError

_JSON = re.compile(r'application/json(;\s*charset=("utf-8"|utf-8))?', re.IGNORECASE)
_LONGEST_S = 30.0  # a slow answer must not pass for a working one
_LARGEST = 64 << 20  # bytes: more than a million targets


@dataclass(slots=True)
class HttpSource:
    """A URL. An answer that fails keeps the targets of the last good one."""

    url: str
    refresh_s: float = 60.0
    http: HttpClient = field(default_factory=HttpClient, repr=False)
    kind: str = "http_sd"
    _last: tuple[Group, ...] = ()
    _fetcher: Fetcher = field(default_factory=Fetcher)

    @property
    def name(self) -> str:
        """The URL without the secrets that it may hold."""
        return shown(self.url).replace(f"//{MASK}@", "//")

    @property
    def every_s(self) -> float:
        """Seconds between requests."""
        return self.refresh_s

    async def refresh(self) -> Found:
        """Ask the URL."""
        try:
            self._last = await self._ask()
        except SourceError as error:
            return Found(self._last, (f"{self.name}: {error}",))
        return Found(self._last)

    async def close(self) -> None:
        """Close the connection."""
        await self._fetcher.close()

    async def _ask(self) -> tuple[Group, ...]:
        seconds = f"{self.refresh_s:g}"
        request = Request(
            url=self.url,
            http=self.http,
            timeout_s=min(self.refresh_s, _LONGEST_S),
            size_limit_bytes=_LARGEST,
            headers={"Accept": "application/json", "X-Prometheus-Refresh-Interval-Seconds": seconds},
        )
        page = await self._fetcher.get(request)
        if not _JSON.fullmatch(page.content_type.strip()):
            raise SourceError(
                f"content type is {page.content_type or 'missing'}, not application/json", "is this the right URL?"
            )
        try:
            text = page.body.decode()
        except UnicodeDecodeError as error:
            raise SourceError(f"the answer is not UTF-8 text (byte {error.start})", "send UTF-8") from None
        return read_json(text, "the answer", {"__meta_url": self.name})
