"""Where along the calls an incident began: amounts are followed to where nobody below accounts for them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.root_cause import added, calls_of_spans, root_causes
from store.window import Window
from tests.analytics.frames_of import times

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


def calls(*edges: str) -> pl.DataFrame:
    return pl.DataFrame([edge.split(">") for edge in edges], ["caller", "callee"], orient="row")


CHAIN = calls("web>shop", "web>search", "shop>pay", "pay>bank", "search>index")


def names(amounts: dict[str, float], edges: pl.DataFrame = CHAIN) -> list[str]:
    return [cause.entity for cause in root_causes(edges, amounts, "web")]


def test_the_root_is_where_more_is_added_than_the_callees_account_for() -> None:
    first = root_causes(CHAIN, {"web": 100, "shop": 95, "pay": 90, "bank": 3, "search": 1}, "web")[0]
    assert (first.entity, first.path) == ("pay", ("web", "shop", "pay"))
    assert first.added == 87
    assert first.share == pytest.approx(87 / 96)


def test_a_slow_service_that_the_target_hardly_waits_for_explains_nothing() -> None:
    assert names({"web": 100, "shop": 90, "search": 2, "index": 5000})[0] == "shop"


def test_the_target_is_the_root_where_no_callee_got_worse() -> None:
    (cause,) = root_causes(CHAIN, {"web": 10.0, "shop": -5.0, "search": 0.0}, "web")
    assert (cause.entity, cause.added, cause.share) == ("web", 10.0, 1.0)
    assert root_causes(CHAIN, {"web": -1.0}, "web") == []
    assert root_causes(CHAIN, {}, "web") == []


def test_calls_in_a_circle_end() -> None:
    assert names({"web": 9, "a": 8, "b": 7}, calls("web>a", "a>b", "b>a", "b>web"))[0] in {"a", "b"}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20),
    st.lists(st.floats(-10, 100), min_size=7, max_size=7),
)
def test_shares_are_a_split_of_the_explained_and_paths_are_calls(
    edges: list[tuple[int, int]], amounts: list[float]
) -> None:
    graph = pl.DataFrame([(str(a), str(b)) for a, b in edges], ["caller", "callee"], orient="row")
    found = root_causes(graph, {str(i): amount for i, amount in enumerate(amounts)}, "0")
    known = set(graph.iter_rows())
    assert sum(cause.share for cause in found) <= 1 + 1e-9
    assert all(pair in known for cause in found for pair in pairwise(cause.path))
    assert [c.added for c in found] == sorted((c.added for c in found), reverse=True)


def test_what_was_added_is_measured_from_the_eve_where_that_was_worse_already() -> None:
    minutes = list(range(60))
    old = [1.0] * 30 + [5.0] * 30  # slow since long before the incident
    new = [1.0] * 50 + [3.0] * 10
    frames = [
        pl.DataFrame({"ts": times([60.0 * m for m in minutes]), "entity": name, "value": value, "calls": 10})
        for name, value in (("old", old), ("new", new))
    ]
    at = [START + timedelta(minutes=m) for m in (0, 30, 50, 60)]
    before, eve, incident = (Window(a, b) for a, b in pairwise(at))
    assert added(pl.concat(frames), incident, before) == {"new": 200.0, "old": 400.0}
    assert added(pl.concat(frames), incident, before, eve) == {"new": 200.0, "old": 0.0}
    better = added(pl.concat(frames), incident, before, worse="down")
    assert better == {"new": -200.0, "old": -400.0}


def test_entities_without_a_calm_value_and_missing_values_add_nothing() -> None:
    rows = pl.DataFrame(
        {"ts": times([0.0, 0.0, 60.0, 60.0, 120.0]), "entity": ["a", "b", "a", "c", "a"]}
        | {"value": [1.0, None, 4.0, 9.0, None], "calls": [1, 1, 2, 5, 7]}
    )
    before, incident = (
        Window(START, START + timedelta(minutes=1)),
        Window(START + timedelta(minutes=1), START.replace(hour=13)),
    )
    assert added(rows, incident, before) == {"a": 6.0}


def test_calls_come_from_parent_spans_of_the_same_trace() -> None:
    spans = pl.DataFrame(
        [("t1", "1", None, "web"), ("t1", "2", "1", "shop"), ("t1", "3", "2", "shop"), ("t2", "4", "1", "bank")],
        ["trace_id", "span_id", "parent_span_id", "service"],
        orient="row",
    )
    assert calls_of_spans(spans).rows() == [("web", "shop", 1)]


def test_roots_of_injected_faults_come_first(shared: Path) -> None:
    from benchmarks.accuracy.petshop import issues, ours, places

    some = [issue for i, issue in enumerate(issues(shared / "data" / "petshop_rca")) if i % 6 == 0]
    found = places(some, ours())
    assert sum(place == 1 for place in found) / len(found) >= 0.9
