"""The memo is exact: after any pages, a page reads as it would alone."""

import gzip
import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random

import pytest
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
    return series, values, page.times_ms, page.types, page.rejected, page.created, page.warnings, page.starts


@given(st.lists(st.tuples(PAGE, st.sampled_from([TEXT, OPENMETRICS]), st.booleans()), min_size=1, max_size=4))
def test_a_page_reads_the_same_with_and_without_memory(pages: list[tuple[str, str, bool]]) -> None:
    memo = PageMemo()
    for body, content_type, ended in pages:
        text = body + "\n# EOF\n" if ended else body
        assert outcome(memo, text, content_type) == outcome(None, text, content_type)


READABLE = st.sampled_from(
    [
        "# TYPE a counter", "# TYPE a gauge", "# TYPE b:c gauge", "# UNIT a s", "a_total 1", "a_total 2 5",
        "a_total 3 6", 'a_total 1 # {x="_"} 1', "a_total 1 5 # {} 2 3", "a_created 5", "a_created 6", "a 1", "a 2",
        "a 1 5", "a  2", "a\t1", 'b_c{x="#"} 1', 'b_c{x="#"} 2 # {} 1', 'b_c{x=" # "} 1', 'b_c{x=" # "} 2 7',
        'b_c{x="1"}1', 'b_c{x="1"}2', "",
    ]
)  # fmt: skip


@given(st.lists(st.lists(READABLE, min_size=1, max_size=4).map("\n".join), min_size=2, max_size=4))
@settings(max_examples=500)
def test_an_openmetrics_page_that_can_be_read_reads_the_same_with_and_without_memory(bodies: list[str]) -> None:
    memo = PageMemo()
    for body in bodies:
        assert outcome(memo, f"{body}\n# EOF\n", OPENMETRICS) == outcome(None, f"{body}\n# EOF\n", OPENMETRICS)


@given(
    st.lists(st.sampled_from([["a 1", "a 2 5", "a 3"], ["b 1 5", 'b 1 # {x="_"} 1', "b 2"], ["a 1", "a 1 6"]])),
    st.randoms(use_true_random=False),
)
def test_lines_that_stay_in_place_read_the_same_with_and_without_memory(
    places: list[list[str]], chance: Random
) -> None:
    memo = PageMemo()
    for _ in range(4):
        body = "".join(f"{chance.choice(lines)}\n" for lines in places) + "# EOF\n"
        assert outcome(memo, body, OPENMETRICS) == outcome(None, body, OPENMETRICS)


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


@pytest.mark.parametrize(
    ("first", "second", "times_ms"),
    [
        (b"a 1 5000\nb 2 5000\n", b"a 1 6000\nb 2.5 7000\n", [6000, 7000]),
        (b"a 1 5000\nb 2\n", b"a 1\nb 2 7000\n", [None, 7000]),
        (b'a 1 # {x="_"} 1\nb 2\n', b'a 1 # {x="}"} 2 3\nb 2 # {} 1\n', None),
        (b'a 1 5000 # {x="_"} 1\nb 2\n', b"a 1 6000\nb 2 # {} 1\n", [6000, None]),
        (b'a{x="1"}1\nb\t2\n', b'a{x="1"}2\nb\t3\n', None),
    ],
)
def test_times_and_exemplars_do_not_end_the_steady_state(
    first: bytes, second: bytes, times_ms: list[int | None] | None
) -> None:
    memo = PageMemo()
    series = memo.parse(first).series
    page = memo.parse(second)
    assert page.series is series
    assert page.times_ms == times_ms


def test_a_warning_follows_the_lines_that_have_a_time() -> None:
    memo = PageMemo()
    pages = [b"a 1 5\na 2 6\nb 1 5\n# EOF\n", b"a 1 5\na 2\nb 1 5\n# EOF\n", b"a 1 5\na 2 6\nb 1 6\n# EOF\n"]
    warned = [len(memo.parse(page, OPENMETRICS).warnings) for page in pages]
    assert warned == [0, 1, 0]


def test_a_line_that_reads_as_a_number_is_not_taken_for_a_value() -> None:
    memo = PageMemo()
    memo.parse(b"inf 1\nb 2\n")
    page = memo.parse(b"inf\nb 2\n")
    assert [s.name for s in page.series] == ["b"]
    assert page.rejected == ((1, "inf"),)


NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,4}", fullmatch=True)
WORDS = st.text(st.characters(codec="utf-8"), max_size=5)
SAMPLES = st.lists(
    st.tuples(
        NAMES | WORDS.filter(bool),
        st.dictionaries(WORDS.filter(lambda w: w not in ("", "__name__")), WORDS, max_size=3),
        st.floats(),
        st.none() | st.integers(-(2**40), 2**60),
    ),
    min_size=1,
    max_size=5,
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def rendered(name: str, labels: Mapping[str, str], value: float, ts_ms: int | None) -> str:
    pairs = [quoted(name), *(f"{quoted(key)}={quoted(text)}" for key, text in labels.items())]
    return f"{{{','.join(pairs)}}} {value!r}" + ("" if ts_ms is None else f" {ts_ms}")


@given(SAMPLES)
def test_what_was_rendered_is_read_back(samples: list[tuple[str, dict[str, str], float, int | None]]) -> None:
    kept = [sample for sample in samples if not sample[0].endswith("_created")]
    body = "".join(f"{rendered(*sample)}\n" for sample in kept).encode()
    memo = PageMemo()
    for _ in range(2):
        page = memo.parse(body)
        assert [(*sample[:2], repr(sample.value), sample.ts_ms) for sample in page.samples] == [
            (name, labels, repr(value), ts_ms) for name, labels, value, ts_ms in kept
        ]
        assert page.rejected == ()


BYTES = st.one_of(st.binary(max_size=80), st.lists(LINE, max_size=4).map(lambda lines: "\n".join(lines).encode()))


@given(st.lists(st.tuples(BYTES, st.sampled_from([TEXT, OPENMETRICS, "", "text/html"])), min_size=1, max_size=3))
def test_any_bytes_give_a_page_or_a_source_error(pages: list[tuple[bytes, str]]) -> None:
    memo = PageMemo()
    for body, content_type in pages:
        with suppress(SourceError):
            page = memo.parse(body, content_type)
            assert len(page.series) == len(page.values)


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
