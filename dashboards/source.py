"""Where pages get their data: the `Source` they ask, what they ask it, and what may come back instead."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from analytics.result import Result
from dashboards.state import State
from store.errors import InfractlError

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)
T = TypeVar("T")


class Source(Protocol):
    """What the dashboard reads. Calls come from several threads; errors are raised as store.errors types."""

    def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
        """Run an analysis; `window` is a text as in Window.parse, None for the analysis' own look-back."""
        ...

    def status(self) -> Mapping[str, Any]:
        """Facts about the store: rows, drops and their reasons, by name."""
        ...

    def trace(self, trace_id: str) -> "pl.DataFrame":
        """Return the spans of one trace (columns of the spans table); no rows where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """Something the source could not answer: what was asked, the fact and the next step."""

    what: str
    fact: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came back for one panel. A need that failed is in `failures` and nowhere else."""

    results: Mapping[str, Result] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    spans: "pl.DataFrame | None" = None
    failures: tuple[Failure, ...] = ()


STATUS, TRACE, UNFILTERED = "status", "trace", "overview of all services"
"""Needs that are no analysis of the page's own filters."""


def fetch(source: Source, needs: tuple[str, ...], state: State) -> Answers:
    """Ask for each need of a panel; a failure of one does not touch the others."""
    got: dict[str, Any] = {}
    failures = []
    for need in needs:
        answer = attempt(need, partial(_ask, source, need, state))
        if isinstance(answer, Failure):
            failures.append(answer)
        else:
            got[need] = answer
    return Answers(
        results={need: answer for need, answer in got.items() if isinstance(answer, Result)},
        status=got.get(STATUS, {}),
        spans=got.get(TRACE),
        failures=tuple(failures),
    )


def _ask(source: Source, need: str, state: State) -> Any:
    if need == STATUS:
        return source.status()
    if need == TRACE:
        return source.trace(state.path.rpartition("/")[2])
    if need == UNFILTERED:
        return source.result("overview", {}, state.window)
    return source.result(need, state.params(need), state.window)


def attempt(need: str, ask: Callable[[], T]) -> T | Failure:
    """Return what `ask` returns, or a Failure that says what went wrong with `need`."""
    try:
        return ask()
    except InfractlError as error:
        return Failure(need, str(error), error.hint)
    except Exception as error:  # a page must say what failed, whatever it was
        log.exception("the dashboard could not get %s", need)
        return Failure(need, f"{type(error).__name__}: {error}", "the server's log has the details")
