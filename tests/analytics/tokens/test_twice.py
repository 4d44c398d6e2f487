"""A request that two spans report is charged once: the inner one, unless it has no model; siblings are two requests."""

from datetime import timedelta
from typing import Any

from tests.analytics.tokens.asked import AT, answer, own, requests

PRICES = "- {model: m, input_per_1m: 1, output_per_1m: 0}\n- {model: outer, input_per_1m: 2, output_per_1m: 0}"
PRICE = own(PRICES, [("openai", "m"), ("openai", "outer")])
TOKENS = {"trace_id": "t", "input_tokens": 1_000_000, "output_tokens": 5}


def spans(*rows: dict[str, Any]) -> list[tuple[str | None, int]]:
    result = answer(requests([TOKENS | row for row in rows]), PRICE)
    return sorted((row["model"], row["requests"]) for row in result.frames["models"].iter_rows(named=True))


OUTER = {"span_id": "a", "ts": AT, "e2e_s": 2.0, "model": "outer"}


def test_the_engine_without_a_model_is_the_clients_request() -> None:
    assert spans(OUTER, {"span_id": "b", "parent_span_id": "a", "ts": AT, "e2e_s": 1.9, "model": None}) == [
        ("outer", 1)
    ]


def test_the_inner_call_is_the_one_that_is_billed() -> None:
    later = AT + timedelta(seconds=0.1)
    inner = {"span_id": "b", "ts": later, "e2e_s": 1.8}
    assert spans(OUTER, inner | {"parent_span_id": "a"}) == [("m", 1)]
    assert spans(OUTER, inner | {"parent_span_id": "http"}) == [("m", 1)]


def test_three_spans_of_one_request_leave_one() -> None:
    proxy = {"span_id": "b", "parent_span_id": "a", "ts": AT, "e2e_s": 1.9}
    engine = {"span_id": "c", "parent_span_id": "b", "ts": AT, "e2e_s": 1.8, "model": None}
    assert spans(OUTER, proxy, engine) == [("m", 1)]


def test_siblings_and_requests_one_after_the_other_are_two() -> None:
    one, other = {"span_id": "a", "e2e_s": 2.0, "ts": AT}, {"span_id": "b", "e2e_s": 1.0, "ts": AT}
    assert spans(one | {"parent_span_id": "agent"}, other | {"parent_span_id": "agent"}) == [("m", 2)]
    assert spans(one, other) == [("m", 2)]
    assert spans(one, other | {"parent_span_id": "x", "ts": AT + timedelta(seconds=5)}) == [("m", 2)]


def test_different_counts_are_different_requests() -> None:
    inner = {"span_id": "b", "parent_span_id": "a", "ts": AT, "e2e_s": 1.0, "input_tokens": 2_000_000}
    assert spans(OUTER, inner) == [("m", 1), ("outer", 1)]


def test_a_trace_of_very_many_equal_requests_is_not_searched() -> None:
    rows = [{"span_id": f"{i}", "parent_span_id": f"{i - 1}", "ts": AT, "e2e_s": 1.0} for i in range(30)]
    assert spans(*rows) == [("m", 30)]


def test_what_only_the_outer_span_knows_stays_with_the_request() -> None:
    outer = OUTER | {"tenant": "t1", "session.id": "s1", "request_model": "outer", "response_model": "m"}
    inner = {"span_id": "b", "parent_span_id": "a", "ts": AT, "e2e_s": 1.9, "request_model": "m", "response_model": "m"}
    result = answer(requests([TOKENS | outer | {"model": "m"}, TOKENS | inner]), PRICE)
    assert result.frames["tenants"]["tenant"].to_list() == ["t1"]
    assert result.frames["conversations"]["conversation"].to_list() == ["s1"]
    swap = result.frames["swaps"].row(0, named=True)
    assert (swap["request_model"], swap["response_model"], swap["requests"]) == ("outer", "m", 1)
    assert swap["effect"] == -1
