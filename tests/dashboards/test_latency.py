"""The latency page: the finding, its drivers, how far to trust them, and the requests behind the tail."""

from dataclasses import replace

import polars as pl
import pytest

from analytics.result import Status
from dashboards import latency
from dashboards.source import Answers
from dashboards.state import State
from dashboards.theme import Colours
from tests.dashboards.reading import figures, links, text
from tests.dashboards.samples import TRACE, p99_result

OK = Answers(results={"p99": p99_result()})


def body(answers: Answers = OK, state: State | None = None) -> list[object]:
    return latency.body(answers, state or State("/", "/latency"), Colours())


def test_it_starts_with_the_finding_and_its_first_driver() -> None:
    said = text(body()[0])
    assert said.startswith("Critical P99 TTFT of chat-api reached 412 ms")
    assert "Associated with kv_transfer_s, share 0.68 [0.61, 0.74]" in said


def test_the_service_of_the_worst_finding_is_in_view_unless_the_url_says_otherwise() -> None:
    assert "Critical" in text(body()[0])
    assert text(body(state=State(path="/latency", focus="embeddings"))[0]).startswith("OK P99 TTFT of embeddings")


def test_coefficients_have_unit_interval_and_effect() -> None:
    said = text(body())
    assert "kv_transfer_s 720 µs per 1 ms 610 µs to 830 µs 312 ms 264 ms to 359 ms 1.3" in said


def test_the_fit_is_told_in_words() -> None:
    said = text(body())
    assert "Quantile regression at quantile 0.99 on 48,211 requests, 482 of them in the tail" in said
    assert "98.97 % of later requests lie below it, 99 % should: calibrated" in said


def test_residuals_are_behind_a_toggle() -> None:
    assert figures(body()) == ["p99", "contributions"]
    assert figures(body(state=State(path="/latency", residuals=True))) == ["p99", "contributions", "residuals"]
    assert "/latency?show=residuals" in links(body())


def test_requests_behind_the_tail_link_to_their_traces() -> None:
    assert f"/trace/{TRACE}" in links(body())


def test_refusals_are_shown_as_they_are() -> None:
    note = "not enough tail samples: 31 of 50"
    refused = p99_result(Status.REFUSED, (note,))
    assert note in text(body(Answers(results={"p99": refused})))


def test_a_refused_fit_still_shows_the_p99_over_time() -> None:
    whole = p99_result()
    frames = {name: frame if name == "windows" else frame.clear() for name, frame in whole.frames.items()}
    refused = replace(whole, status=Status.REFUSED, frames=frames, findings=(), notes=("driver a is constant",))
    tree = body(Answers(results={"p99": refused}))
    assert figures(tree) == ["p99"]
    assert "driver a is constant" in text(tree)


def test_an_empty_window_says_what_would_fill_it() -> None:
    said = text(body(Answers(results={"p99": p99_result(Status.EMPTY)})))
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" in said


@pytest.mark.parametrize("name", ["coefficients", "contributions", "fit", "vif", "residuals", "tail"])
def test_a_missing_part_leaves_the_others(name: str) -> None:
    whole = p99_result()
    part = replace(whole, frames={**whole.frames, name: whole.frames[name].clear()})
    assert "P99 TTFT" in text(body(Answers(results={"p99": part})))


@pytest.mark.parametrize("name", ["coefficients", "contributions", "fit", "vif", "windows", "residuals", "tail"])
def test_numbers_that_are_missing_do_not_break_the_page(name: str) -> None:
    whole = p99_result()
    blank = whole.frames[name].with_columns(
        pl.lit(None, dtype).alias(column) for column, dtype in whole.frames[name].schema.items() if dtype == pl.Float64
    )
    part = replace(whole, frames={**whole.frames, name: blank})
    tree = body(Answers(results={"p99": part}), State(path="/latency", residuals=True))
    assert "nan" not in text(tree).lower().replace("nanosecond", "")
    assert "None" not in text(tree)
