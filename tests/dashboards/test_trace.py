"""The trace page: the tree of spans, the critical path, what failed."""

from datetime import datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from dashboards import spans, trace
from dashboards.source import Answers
from dashboards.state import State
from dashboards.theme import Colours
from store.tables import SPANS
from tests.dashboards.reading import text
from tests.dashboards.samples import TRACE, trace_frame

AT = datetime(2026, 11, 30)


def tree(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([dict.fromkeys(SPANS.names) | row for row in rows], schema=SPANS.schema())


def row(span: str, parent: str | None, start: float, length: float | None) -> dict[str, Any]:
    return {"span_id": span, "parent_span_id": parent, "ts": AT + timedelta(seconds=start), "duration_s": length}


def test_parents_come_before_children_and_brothers_by_start() -> None:
    laid = spans.rows(tree(row("c", "a", 2, 1), row("b", "a", 1, 1), row("a", None, 0, 4), row("d", "b", 1, 0.5)))
    assert [(line.span["span_id"], line.depth) for line in laid] == [("a", 0), ("b", 1), ("d", 2), ("c", 1)]


def test_the_critical_path_is_what_the_end_waited_for() -> None:
    laid = spans.rows(tree(row("a", None, 0, 10), row("b", "a", 1, 2), row("c", "a", 2, 7), row("d", "a", 0, 1.5)))
    assert {line.span["span_id"] for line in laid if line.critical} == {"a", "c", "d"}


def test_a_span_whose_parent_was_never_stored_is_shown_as_such() -> None:
    laid = spans.rows(tree(row("a", None, 0, 1), row("x", "gone", 0.2, 0.1)))
    assert [line.orphan for line in laid] == [False, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.none() | st.floats(0, 5)), max_size=12))
def test_every_span_of_any_graph_of_parents_is_shown_once(items: list[tuple[int, int, float | None]]) -> None:
    rows = [row(str(i), str(parent), start, length) for i, (parent, start, length) in enumerate(items)]
    laid = spans.rows(tree(*rows))
    assert sorted(line.span["span_id"] for line in laid) == sorted(item["span_id"] for item in rows)


def test_spans_that_are_each_others_parent_are_still_shown() -> None:
    laid = spans.rows(tree(row("a", "b", 0, 1), row("b", "a", 0.5, 1)))
    assert [line.span["span_id"] for line in laid] == ["a", "b"]


def test_the_page_says_how_long_it_took_and_what_failed() -> None:
    said = text(trace.body(Answers(spans=trace_frame()), State(path=f"/trace/{TRACE}"), Colours()))
    assert "POST /v1/chat/completions took 2.31 s, first token after 980 ms and failed in audit: TIMEOUT" in said
    assert "The longest part of its requests is decode, 1.09 s" in said


def test_every_field_with_a_value_and_every_attribute_is_there_with_its_unit() -> None:
    said = text(trace.body(Answers(spans=trace_frame()), State(path=f"/trace/{TRACE}"), Colours()))
    assert "input_tokens 4,096 tokens" in said
    assert "prefill_s 620 ms" in said
    assert "kv_transfer_s 0.41" in said


def test_unreadable_attributes_are_shown_as_they_came() -> None:
    frame = trace_frame().with_columns(attributes=pl.lit("{broken"))
    assert "{broken" in text(trace.body(Answers(spans=frame), State(path=f"/trace/{TRACE}"), Colours()))


def test_an_unknown_trace_says_so() -> None:
    said = text(trace.body(Answers(spans=trace_frame().clear()), State(path="/trace/ab"), Colours()))
    assert "No trace ab" in said
