"""A headless Chromium that opens pages of the dashboard, remembers all that went wrong, and takes pictures.

`look(url, pictures)` visits every page of a running dashboard, or a report at file://…; use it on the real server too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dashboards.catalog import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = Path("/usr/bin/chromium")
DRAWN = "() => document.documentElement.dataset.drawn === 'true' || !document.querySelector('.plot')"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@dataclass
class Visit:
    """One browser tab. `wrong` lists console errors, exceptions, failed requests and foreign hosts, in words."""

    page: "Page"
    wrong: list[str] = field(default_factory=list)

    def open(self, url: str, ready: str = "main .panel, main .sentence") -> "Page":
        """Open a URL and wait until its panels have loaded and its figures are drawn."""
        self.page.goto(url)
        self.settle(ready)
        return self.page

    def settle(self, ready: str = "main .panel, main .sentence") -> None:
        """Wait until no panel loads any more and every figure holds its data."""
        self.page.wait_for_selector(ready)
        self.page.wait_for_function("() => !document.querySelector('.grid .skeleton')")
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.dash-graph')]"
            ".every(g => g.querySelector('.main-svg .js-line, .main-svg .point, .main-svg .hm image'))"
        )

    def picture(self, to: Path) -> None:
        """Save the whole page as an image."""
        self.page.screenshot(path=to, full_page=True)


@contextmanager
def visiting(width: int = 1440, height: int = 900) -> Iterator[Visit]:
    """Start Chromium with a fresh profile and give one tab that watches itself."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as profile, sync_playwright() as play:
        size = {"width": width, "height": height}
        context = play.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=list(FLAGS), viewport=size
        )
        visit = Visit(context.pages[0] if context.pages else context.new_page())
        _watch(visit)
        try:
            yield visit
        finally:
            context.close()


def look(url: str, pictures: Path, trace_id: str | None = None, theme: str = "dark") -> list[str]:
    """Open every page of the dashboard at `url`, save a picture of each and return what went wrong, in words."""
    if url.startswith("file:"):
        return _look_at_file(url, pictures)
    listed = {page.title.lower().replace(" ", "-"): page.path.removeprefix("/") for page in PAGES if page.listed}
    paths = {**listed, **({"trace": f"trace/{trace_id}"} if trace_id else {})}
    with visiting() as visit:
        for name, path in paths.items():
            visit.open(f"{url.rstrip('/')}/{path}?theme={theme}")
            visit.picture(pictures / f"{name}-{theme}.png")
        return visit.wrong


def _look_at_file(url: str, pictures: Path) -> list[str]:
    """Open a report and wait until its figures are drawn."""
    with visiting() as visit:
        visit.page.goto(url)
        visit.page.wait_for_function(DRAWN)
        visit.picture(pictures / "report.png")
        lost = visit.page.locator(".plot:not(:has(.main-svg))").count()
        return [*visit.wrong, *([f"{lost} figures were not drawn"] if lost else [])]


def _watch(visit: Visit) -> None:
    page, wrong = visit.page, visit.wrong

    def foreign(url: str) -> bool:
        return urlsplit(url).scheme not in ("data", "blob", "file") and urlsplit(url).hostname != "127.0.0.1"

    page.on(
        "console", lambda m: wrong.append(f"console {m.type}: {m.text}") if m.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: wrong.append(f"exception: {error}"))
    page.on("requestfailed", lambda r: wrong.append(f"failed: {r.url} {r.failure}"))
    page.on("request", lambda r: wrong.append(f"foreign host: {r.url}") if foreign(r.url) else None)
    page.on("response", lambda r: wrong.append(f"status {r.status}: {r.url}") if r.status >= 400 else None)
