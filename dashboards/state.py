"""`State`: all that a page shows, in its URL, so that back, forward and a colleague's link show the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from store.zone import DEFAULT

THEMES = ("dark", "light")


@dataclass(frozen=True, slots=True)
class State:
    """Page, time range, filters and theme. `base` is the path the app is served under, with both slashes.

    `window` is a text as in store.window.Window.parse, None for the analysis' own; `focus` is the service in view,
    `target` the latency to explain (a span column), None for the analysis' own. Times are shown in `zone`, which is no
    part of the URL; those of the URL are UTC. `offline` pages stand in a file, where links within the app lead nowhere.
    """

    base: str = "/"
    path: str = "/"
    window: str | None = None
    services: tuple[str, ...] = ()
    focus: str | None = None
    target: str | None = None
    theme: str = THEMES[0]
    live: bool = True
    residuals: bool = False
    zone: ZoneInfo = DEFAULT
    offline: bool = False

    @classmethod
    def parse(cls, pathname: str | None, search: str | None, base: str = "/", zone: ZoneInfo = DEFAULT) -> "State":
        """Read a URL's path and query; what is unknown or malformed falls back to the default."""
        path = pathname or "/"
        path = "/" + path.removeprefix(base) if path.startswith(base) else path
        pairs = parse_qsl((search or "").removeprefix("?"))
        given = dict(pairs)
        return cls(
            base=base,
            path="/" if path.rstrip("/") in ("", base.rstrip("/")) else path.rstrip("/"),
            window=given.get("range", "").strip() or None,
            services=tuple(sorted({v for k, v in pairs if k == "service"})),
            focus=given.get("of"),
            target=given.get("target"),
            theme=given["theme"] if given.get("theme") in THEMES else THEMES[0],
            live=given.get("live") != "off",
            residuals=given.get("show") == "residuals",
            zone=zone,
        )

    @property
    def search(self) -> str:
        """The query of the URL, with its question mark; empty where all is at its default."""
        pairs = [("range", self.window or "")] if self.window else []
        pairs += [("service", name) for name in self.services]
        pairs += [("of", self.focus)] if self.focus else []
        pairs += [("target", self.target)] if self.target else []
        pairs += [("theme", self.theme)] if self.theme != THEMES[0] else []
        pairs += [("live", "off")] if not self.live else []
        pairs += [("show", "residuals")] if self.residuals else []
        return "?" + urlencode(pairs, quote_via=quote, safe=":.,") if pairs else ""

    def href(self, path: str | None = None, **changes: Any) -> str:
        """Return the URL of a page (this one by default) with some parts changed; the rest is kept."""
        to = replace(self, **changes)
        where = self.path if path is None else path
        return self.base + quote(where.removeprefix("/")) + to.search

    def params(self, analysis: str) -> Mapping[str, Any]:
        """Return the filters, and for p99 the latency to explain, as parameters of an analysis."""
        where = {"where": tuple(("service", name) for name in self.services)} if self.services else {}
        return {**where, **({"target": self.target} if self.target and analysis == "p99" else {})}

    def toggled(self, service: str) -> tuple[str, ...]:
        """Return the service filter with one service added, or taken away where it is set."""
        return tuple(sorted(set(self.services) ^ {service}))
