"""The URL carries the whole state."""

from hypothesis import given
from hypothesis import strategies as st

from dashboards.state import THEMES, State

names = st.text(min_size=1, max_size=20).filter(lambda t: t == t.strip() and "\x00" not in t and t.isprintable())
states = st.builds(
    State,
    base=st.sampled_from(["/", "/x/", "/infra/ops/"]),
    path=st.sampled_from(["/", "/latency", "/trace/4bf9"]),
    window=st.sampled_from([None, "24h", "2026-11-01..2026-11-08T10:00:00Z"]),
    services=st.lists(names, unique=True, max_size=3).map(lambda items: tuple(sorted(items))),
    focus=st.none() | names,
    target=st.none() | st.sampled_from(["e2e_s", "tpot_s"]),
    theme=st.sampled_from(THEMES),
    live=st.booleans(),
    residuals=st.booleans(),
)


@given(states)
def test_a_link_opened_elsewhere_shows_the_same(state: State) -> None:
    path, mark, query = state.href().partition("?")
    assert State.parse(path, mark + query, state.base) == state


def test_links_keep_range_filters_and_theme_when_the_page_changes() -> None:
    state = State.parse("/x/", "?range=6h&service=a&theme=light", "/x/")
    assert state.href("/latency") == "/x/latency?range=6h&service=a&theme=light"


def test_unknown_or_malformed_values_fall_back_to_the_default() -> None:
    assert State.parse("/", "?theme=pink&live=maybe&what=ever&range=") == State()


def test_the_path_without_its_trailing_slash_is_the_overview() -> None:
    assert State.parse("/x", "", "/x/").path == "/"


def test_toggling_a_service_twice_changes_nothing() -> None:
    state = State(services=("a", "b"))
    once = State(services=state.toggled("c"))
    assert once.services == ("a", "b", "c")
    assert once.toggled("c") == state.services


def test_filters_become_parameters_of_the_analysis() -> None:
    assert State(services=("a", "b")).params("overview") == {"where": (("service", "a"), ("service", "b"))}
    assert State(target="e2e_s").params("p99") == {"target": "e2e_s"}
    assert State(target="e2e_s").params("overview") == {}
