"""The memo is exact: after any pages, a page reads as it would alone."""

import gzip
import json
from itertools import islice
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.prometheus.exposition import Exposition
from collector.prometheus.text import TEXT, PageMemo, parse
from store.errors import SourceError

OPENMETRICS = "application/openmetrics-text"
LINES = st.sampled_from(
    [
        "a", "a ", "a{}", 'a{x="1"}', 'a{x="1",}', 'a{ x = "1" } ', 'a{x="1 2"}', 'a{x="é"}', 'a{x="\\"} 5"}',
        "vllm:b_total", "b_created", "b", 'b_bucket{le="+Inf"}', '{"d.e"}', '{"d.e",x="1"}', "# TYPE b", "# HELP b",
        "#", "<", "a b", 'a{x="1"', "",
    ]
)  # fmt: skip
TAILS = st.sampled_from(
    [
        "1", "2", "1.5e3", "NaN", "+Inf", "-nan", "infinity", "1_0", "0x1", "1\r", "1\t", "\t1", "1\x0b", "1\x0c",
        "1\x1c", "1 1000", "1 1001", "1  1000", "1\t1000", "1 1000\r", "1 1_0", "1 1.5", "1 nan", "1 1e400",
        '1 # {y="z"} 1', '1 # {y="z"} 2', "counter", "gauge", "histogram", "", "\uff11", "1 \x00", "}", '"} 1',
    ]
)  # fmt: skip
CLOSE = st.sampled_from(["1", "1_0", "1 1000", "1  1000", "1 1001", '1 # {y="z"} 1', '1 # {y="z"} 2'])
SEPARATORS = st.sampled_from([" ", "", "  ", "\t"])
LINE = st.tuples(LINES, SEPARATORS, TAILS).map("".join)
COUNTERS = st.integers(0, 3).map(lambda n: f'ok{{i="{n}"}} {n}')
PAGE = st.lists(st.one_of(LINE, COUNTERS), max_size=6).map("\n".join)


def outcome(memo: PageMemo | None, body: str, content_type: str) -> object:
    try:
        page = memo.parse(body.encode(), content_type) if memo else parse(body.encode(), content_type)
    except SourceError as error:
        return str(error)
    return summary(page)


def summary(page: Exposition) -> object:
    series = [(s.name, dict(s.labels), s.kind) for s in page.series]
    values = [repr(v) for v in page.values]
    return series, values, page.times_ms, page.types, page.rejected, page.created, page.warnings


@given(st.lists(st.tuples(PAGE, st.sampled_from([TEXT, OPENMETRICS]), st.booleans()), min_size=1, max_size=4))
def test_a_page_reads_the_same_with_and_without_memory(pages: list[tuple[str, str, bool]]) -> None:
    memo = PageMemo()
    for body, content_type, ended in pages:
        text = body + "\n# EOF\n" if ended else body
        assert outcome(memo, text, content_type) == outcome(None, text, content_type)


@given(
    st.sampled_from(["", "# EOF\n", "# TYPE b counter\nb_created 5\n"]),
    st.lists(st.tuples(st.one_of(TAILS, CLOSE), st.sampled_from([TEXT, TEXT, OPENMETRICS])), min_size=2, max_size=4),
)
@settings(max_examples=400)
def test_a_page_where_one_value_changes_reads_the_same(rest: str, turns: list[tuple[str, str]]) -> None:
    memo = PageMemo()
    for turn, (tail, content_type) in enumerate(turns):
        body = f'ok{{i="1"}} {turn}\nb {tail}\n' + rest
        assert outcome(memo, body, content_type) == outcome(None, body, content_type)


def test_an_unchanged_page_gives_the_same_series_objects() -> None:
    memo = PageMemo()
    first = memo.parse(b'a{x="1"} 1\r\nb 2\r\n')
    second = memo.parse(b'a{x="1"} 3\r\nb 4\r\n')
    assert second.series is first.series
    assert list(second.values) == [3.0, 4.0]


def test_a_series_that_stays_keeps_its_object_when_others_come_and_go() -> None:
    memo = PageMemo()
    first = memo.parse(b"a 1\nb 2\n")
    second = memo.parse(b"c 1\nb 3\n")
    assert second.series[1] is first.series[1]


def test_a_page_with_times_keeps_its_series_objects_too() -> None:
    memo = PageMemo()
    first = memo.parse(b"a 1 5000\nb 2 5000\nc 1\n")
    second = memo.parse(b"c 2\na 1 6000\nb 3 6000\n")
    assert [s.name for s in second.series] == ["c", "a", "b"]
    assert second.times_ms == [None, 6000, 6000]
    assert second.series[2] is first.series[1]


def test_a_type_that_changes_changes_the_kind() -> None:
    memo = PageMemo()
    assert memo.parse(b"# TYPE a gauge\na 1\n").series[0].kind == "gauge"
    assert memo.parse(b"# TYPE a counter\na 1\n").series[0].kind == "counter"


def test_series_that_left_are_forgotten() -> None:
    memo = PageMemo()
    for i in range(50):
        memo.parse(b'a{pod="%d"} 1\n' % i)
    assert len(memo._series) == 1


def test_a_recorded_vllm_reads_the_same_with_and_without_memory(shared: Path) -> None:
    memo = PageMemo()
    with gzip.open(shared / "data/vllm_real/vllm_metrics.jsonl.gz", "rt") as lines:
        pages = [json.loads(line)["text"] for line in islice(lines, 0, None, 20)]
    for body in pages:
        read = outcome(memo, body, TEXT)
        assert read == outcome(None, body, TEXT)
        assert not isinstance(read, str)
    assert len(pages) > 10
