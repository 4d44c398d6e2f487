"""Critical path: every moment of a trace on exactly one span, beside a second implementation that looks at each."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analytics.latency.traces import node, path


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to 12 spans with whole seconds; a child lies within its parent (clocks agree, nobody is left behind)."""
    made = [node("0", None, 0, draw(st.integers(1, 30)))]
    for name in range(1, draw(st.integers(1, 12))):
        above = made[draw(st.integers(0, len(made) - 1))]
        length = int(above["duration_s"])
        start = draw(st.integers(0, length))
        made.append(node(str(name), above["span_id"], above["at"] + start, draw(st.integers(0, length - start))))
    return made


def second_by_second(nodes: list[dict[str, Any]]) -> dict[str, float]:
    """Follow the path at each second: into the running child that ends last (the first to start where they tie)."""
    found = {n["span_id"]: 0.0 for n in nodes}
    root = nodes[0]
    for second in range(int(root["duration_s"])):
        here = root
        while True:
            running = [
                n
                for n in nodes
                if n["parent_span_id"] == here["span_id"] and n["at"] <= second < n["at"] + n["duration_s"]
            ]
            if not running:
                break
            here = min(running, key=lambda n: (-(n["at"] + n["duration_s"]), n["at"]))
        found[here["span_id"]] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(trees())
def test_self_times_are_those_of_looking_at_every_second(nodes: list[dict[str, Any]]) -> None:
    found, forest, outlived = path(nodes)
    wanted = second_by_second(nodes)
    ties = {(n["at"], n["duration_s"], n["parent_span_id"]) for n in nodes}
    assert sum(found.values()) == nodes[0]["duration_s"]
    assert not outlived
    assert not forest.doubts["skewed"]
    if len(ties) == len(nodes):
        assert found == wanted


def test_overlapping_children_count_once() -> None:
    found, _, _ = path([node("r", None, 0, 10), node("a", "r", 1, 5), node("b", "r", 3, 6)])
    assert found == {"r": 2.0, "a": 2.0, "b": 6.0}


def test_a_child_that_outlives_its_parent_was_not_waited_for() -> None:
    found, _, outlived = path([node("r", None, 0, 2), node("log", "r", 1, 50), node("below", "log", 1, 20)])
    assert found == {"r": 2.0, "log": 0.0, "below": 0.0}
    assert outlived == 1


def test_a_span_whose_parent_is_missing_counts_below_the_root_that_was_running() -> None:
    found, forest, _ = path([node("r", None, 0, 10), node("x", "gone", 2, 3)])
    assert found == {"r": 7.0, "x": 3.0}
    assert (forest.doubts["orphans"], forest.doubts["adopted"]) == (1, 1)


def test_a_span_whose_parent_is_missing_is_a_root_where_nothing_else_was_running() -> None:
    found, forest, _ = path([node("r", None, 0, 10), node("x", "gone", 20, 3)])
    assert found == {"r": 10.0, "x": 3.0}
    assert forest.doubts["adopted"] == 0


def test_several_roots_of_a_trace_share_its_time() -> None:
    found, _, _ = path([node("r", None, 0, 10), node("s", None, 5, 10)])
    assert found == {"r": 5.0, "s": 10.0}


def test_traces_do_not_touch_each_other() -> None:
    found, _, _ = path([node("r", None, 0, 10), node("s", None, 5, 10, trace_id="other")])
    assert found == {"r": 10.0, "s": 10.0}


def test_a_span_without_an_end_gives_its_children_to_the_span_above() -> None:
    found, forest, _ = path([node("r", None, 0, 10), node("open", "r", 1, None), node("x", "open", 2, 3)])
    assert found == {"r": 7.0, "x": 3.0}
    assert forest.doubts["open"] == 1


def test_parents_in_a_circle_are_roots_and_counted() -> None:
    found, forest, _ = path([node("a", "b", 0, 4), node("b", "a", 1, 2), node("c", "c", 10, 1)])
    assert forest.doubts["circles"] == 3
    assert sum(found.values()) == 5.0


def test_a_chain_of_a_thousand_spans_does_not_hang() -> None:
    nodes = [node("0", None, 0, 1000), *(node(str(i), str(i - 1), 0, 1000) for i in range(1, 1000))]
    found, forest, _ = path(nodes)
    assert sum(found.values()) == 1000.0
    assert forest.doubts["deep"] == 799


def test_a_server_whose_clock_is_behind_moves_into_the_middle_of_its_call() -> None:
    found, forest, _ = path(
        [
            node("call", None, 10, 4, kind="client"),
            node("serve", "call", 5, 2, kind="server", service="b"),
            node("work", "serve", 5.5, 1, service="b"),
        ]
    )
    assert forest.doubts["skewed"] == 1
    assert found == {"call": 2.0, "serve": 1.0, "work": 1.0}
    assert [int(s - forest.start.min()) for s in sorted(forest.start)] == [0, 1_000_000, 1_500_000]


def test_a_server_whose_clock_is_ahead_is_no_child_left_behind() -> None:
    found, forest, outlived = path(
        [node("call", None, 0, 4, kind="client"), node("serve", "call", 3, 2, kind="server", service="b")]
    )
    assert (forest.doubts["skewed"], outlived) == (1, 0)
    assert found == {"call": 2.0, "serve": 2.0}


def test_a_server_that_goes_on_after_its_caller_failed_is_left_behind() -> None:
    _, forest, outlived = path(
        [
            node("call", None, 0, 4, kind="client", status="error"),
            node("serve", "call", 3, 2, kind="server", service="b"),
        ]
    )
    assert (forest.doubts["skewed"], outlived) == (0, 1)


def test_a_consumer_that_runs_later_is_not_skewed() -> None:
    _, forest, outlived = path(
        [node("send", None, 0, 1, kind="producer"), node("handle", "send", 30, 5, kind="consumer", service="b")]
    )
    assert (forest.doubts["skewed"], outlived) == (0, 1)
