"""The pages, declared as values: a page is a body over answers and one entry here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analytics.catalog import ANALYSES
from dashboards import latency, overview, trace
from dashboards.answer import body_of
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

    `analysis` is the one it is about; None where it shows stored rows. `listed` pages stand in the rail, under the
    word of their `group`.
    """

    path: str
    title: str
    analysis: str | None
    icon: str
    panels: tuple[Panel, ...]
    listed: bool = True
    group: str = ""

    def matches(self, path: str) -> bool:
        """Whether this page answers a path."""
        if self.path.endswith("/") and self.path != "/":
            return path.startswith(self.path) and "/" not in path.removeprefix(self.path)
        return path == self.path


WRONG, WHY, COSTS, BETTER, MORE = "What is wrong", "Why", "What it costs", "What is better", "More"
"""Groups of the rail: the questions people come with, in the order they come."""


JUDGED = (
    "overview", "p99", "errors", "anomalies", "slo", "latency", "retries", "stream", "cache", "cost", "tokens",
    "tiers", "connections",
)  # fmt: skip
"""Analyses whose findings the overview lists: those that say that something is wrong."""


def analysis_page(name: str, title: str, icon: str, group: str, path: str = "") -> Page:
    """Return the page of an analysis, made of its Result alone."""
    return Page(path or f"/{name}", title, name, icon, (Panel(f"answer-{name}", (name,), body_of(name)),), group=group)


_PAGES = (
    Page(
        "/",
        "Overview",
        "overview",
        "overview",
        (
            Panel("headline", JUDGED, overview.headline),
            Panel("services", ("overview",), overview.services),
            Panel("store", (STATUS,), overview.store),
        ),
    ),
    analysis_page("errors", "Errors", "warning", WRONG),
    analysis_page("anomalies", "Anomalies", "anomalies", WRONG),
    analysis_page("slo", "Objectives", "slo", WRONG),
    Page("/latency", "Latency", "p99", "latency", (Panel("latency", ("p99",), latency.body),), group=WHY),
    analysis_page("latency", "Where time goes", "segments", WHY, "/segments"),
    analysis_page("retries", "Retries", "refresh", WHY),
    analysis_page("stream", "Streams", "stream", WHY),
    analysis_page("engines", "Engines", "engines", WHY),
    analysis_page("cache", "Prefix cache", "cache", WHY),
    analysis_page("cost", "Cost", "cost", COSTS),
    analysis_page("tokens", "Tokens", "tokens", COSTS),
    analysis_page("tiers", "Price tiers", "tiers", COSTS),
    analysis_page("connections", "Connections", "link", COSTS),
    analysis_page("whatif", "What if", "whatif", COSTS),
    analysis_page("ab", "A or B", "ab", BETTER),
    analysis_page("pareto", "Best of many", "pareto", BETTER),
    analysis_page("factorial", "Experiments", "factorial", BETTER),
    Page("/trace/", "Trace", None, "trace", (Panel("trace", (TRACE,), trace.body),), listed=False),
)

_NAMED = {page.analysis for page in _PAGES}

PAGES = (
    *(page for page in _PAGES if page.analysis is None or page.analysis in ANALYSES),
    *(analysis_page(name, name.capitalize(), "overview", MORE) for name in ANALYSES if name not in _NAMED),
)
"""Every page whose analysis exists; an analysis that is not named above has its page too."""

PAGE_OF = {page.analysis: page.path for page in PAGES if page.analysis}
"""Where the evidence of an analysis' findings is shown."""


def page_at(path: str) -> Page | None:
    """Return the page that answers a path, None for none."""
    return next((page for page in PAGES if page.matches(path)), None)
