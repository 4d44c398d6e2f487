"""Failures of the source are told, one question is computed once, and errors are not remembered."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any

import polars as pl
import pytest

from analytics.result import Result
from dashboards.flight import FRESH_S, SharedSource
from dashboards.frame import PARTS, filled
from dashboards.source import STATUS, TRACE, fetch
from dashboards.state import State
from dashboards.theme import Colours
from store.errors import StoreError
from tests.dashboards.reading import text
from tests.dashboards.samples import TRACE as KNOWN
from tests.dashboards.samples import FakeSource, overview_result


class Held:
    """A source whose answers wait until `go` is set."""

    def __init__(self) -> None:
        self.go, self.started, self.calls = Event(), Barrier(2), 0

    def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
        self.calls += 1
        self.started.wait(timeout=10)
        assert self.go.wait(timeout=10)
        return overview_result()

    def status(self) -> Mapping[str, Any]:
        return {}

    def trace(self, trace_id: str) -> pl.DataFrame:
        raise StoreError("gone")


def test_a_failure_of_one_need_leaves_the_others() -> None:
    answers = fetch(FakeSource(broken=("p99",)), ("overview", "p99", STATUS), State())
    assert list(answers.results) == ["overview"]
    assert answers.status["size_bytes"] == 187_000_000
    (failure,) = answers.failures
    assert (failure.what, failure.fact) == ("p99", "p99: out of memory")
    assert failure.hint == "raise memory_limit in infractl.yaml"


def test_a_failed_panel_says_what_failed_what_to_do_and_what_works() -> None:
    part = PARTS["headline"]
    answers = fetch(FakeSource(broken=("p99",)), part.needs, State())
    said = text(filled(part, answers, State(), Colours()))
    assert "Could not get p99" in said
    assert "raise memory_limit in infractl.yaml" in said
    assert "Still working: overview" in said
    assert "Target 10.0.0.5:8000" in said


def test_an_unexpected_error_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(FakeSource):
        def status(self) -> Mapping[str, Any]:
            raise KeyError("rows")

    (failure,) = fetch(Odd(), (STATUS,), State()).failures
    assert failure.fact == "KeyError: 'rows'"
    assert "could not get status" in caplog.text


def test_a_bad_range_shows_how_to_write_it() -> None:
    (failure,) = fetch(FakeSource(), ("p99",), State(window="yesterday")).failures
    assert "30s, 15m, 24h" in failure.hint


def test_the_trace_asked_for_is_the_one_in_the_url() -> None:
    spans = fetch(FakeSource(), (TRACE,), State(path=f"/trace/{KNOWN}")).spans
    assert spans is not None
    assert set(spans["trace_id"]) == {KNOWN}


def test_filters_and_range_reach_the_source() -> None:
    source = FakeSource()
    fetch(source, ("p99",), State(window="6h", services=("a",)))
    assert source.calls == [("p99", {"where": (("service", "a"),)}, "6h")]


def test_equal_questions_in_flight_are_computed_once() -> None:
    held = Held()
    shared = SharedSource(held)
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(shared.result, "overview", {}, None) for _ in range(6)]
        held.started.wait(timeout=10)
        held.go.set()
        assert len({id(item.result(timeout=10)) for item in asked}) == 1
    assert held.calls == 1


def test_an_answer_serves_again_while_fresh_and_is_asked_anew_after() -> None:
    now, source = [0.0], FakeSource()
    shared = SharedSource(source, clock=lambda: now[0])
    shared.result("p99", {}, None)
    now[0] = FRESH_S
    shared.result("p99", {}, None)
    assert len(source.calls) == 1
    now[0] = FRESH_S + 0.1
    shared.result("p99", {}, None)
    assert len(source.calls) == 2


def test_an_answer_that_took_long_serves_longer() -> None:
    now = [0.0]

    class Slow(FakeSource):
        def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
            now[0] += 10
            return super().result(analysis, params, window)

    source = Slow()
    shared = SharedSource(source, clock=lambda: now[0])
    shared.result("p99", {}, None)
    now[0] += 39
    shared.result("p99", {}, None)
    assert len(source.calls) == 1
    now[0] += 2
    shared.result("p99", {}, None)
    assert len(source.calls) == 2


def test_different_questions_do_not_share() -> None:
    source = FakeSource()
    shared = SharedSource(source)
    for params, window in (({}, None), ({}, "6h"), ({"where": (("service", "a"),)}, None)):
        shared.result("p99", params, window)
    assert len(source.calls) == 3


def test_errors_are_given_to_the_asker_and_not_remembered() -> None:
    source = FakeSource(broken=("p99",))
    shared = SharedSource(source)
    with pytest.raises(StoreError):
        shared.result("p99", {}, None)
    source.broken = ()
    assert shared.result("p99", {}, None).analysis == "p99"


def test_a_body_that_breaks_is_told_as_a_failed_panel(caplog: pytest.LogCaptureFixture) -> None:
    part = replace(PARTS["latency"], body=lambda *_: list("x").pop(9))
    said = text(filled(part, fetch(FakeSource(), part.needs, State()), State(), Colours()))
    assert "Could not get the latency panel" in said
    assert "Still working: p99" in said
    assert "IndexError" in caplog.text
