"""Packed scrapes come back as they were."""

from hypothesis import given
from hypothesis import strategies as st

from sample_data.scrapes import pack, unpack

values = st.sampled_from(["0.0", "1", "3.25e+06", "NaN", "+Inf"])
series = st.sampled_from(["up", 'a{x="1"}', 'a{x="two words"}', "b_total"])
lines = st.one_of(st.just("# TYPE a gauge"), st.builds("{} {}".format, series, values))
texts = st.lists(lines, max_size=6).map(lambda rows: "".join(f"{row}\n" for row in rows))


@given(st.lists(st.tuples(st.integers(0, 2**45), texts), max_size=6))
def test_unpacking_gives_what_was_packed(scrapes: list[tuple[int, str]]) -> None:
    assert list(unpack(pack(scrapes))) == scrapes


def test_a_scrape_with_the_same_series_holds_only_what_changed() -> None:
    first, second = pack([(1, "a 1\nb 2\n"), (2, "a 1\nb 3\n")])
    assert first == b'{"ts_ms":1,"text":"a 1\\nb 2\\n"}\n'
    assert second == b'{"ts_ms":2,"changed":{"1":"3"}}\n'
