"""The pages, declared as values: a page is a body over answers and one entry here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboards import latency, overview, trace
from dashboards.source import STATUS, TRACE, Answers
from dashboards.state import State
from dashboards.theme import Colours

Body = Callable[[Answers, State, Colours], list[Any]]


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a page that loads, refreshes and fails by itself. `needs` are analyses or dashboards.source needs."""

    name: str
    needs: tuple[str, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path (a trailing slash stands for any one segment after it), title and panels.

    `analysis` is the one it is about; None where it shows stored rows. `listed` pages stand in the rail.
    """

    path: str
    title: str
    analysis: str | None
    icon: str
    panels: tuple[Panel, ...]
    listed: bool = True

    def matches(self, path: str) -> bool:
        """Whether this page answers a path."""
        if self.path.endswith("/") and self.path != "/":
            return path.startswith(self.path) and "/" not in path.removeprefix(self.path)
        return path == self.path


PAGES = (
    Page(
        "/",
        "Overview",
        "overview",
        "overview",
        (
            Panel("headline", ("overview", "p99"), overview.headline),
            Panel("services", ("overview",), overview.services),
            Panel("store", (STATUS,), overview.store),
        ),
    ),
    Page("/latency", "Latency", "p99", "latency", (Panel("latency", ("p99",), latency.body),)),
    Page("/trace/", "Trace", None, "trace", (Panel("trace", (TRACE,), trace.body),), listed=False),
)


def page_at(path: str) -> Page | None:
    """Return the page that answers a path, None for none."""
    return next((page for page in PAGES if page.matches(path)), None)
