"""Reading a page: names, labels, values, times, types, and what is no page of metrics."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from collector.prometheus.text import TEXT, PageMemo, parse
from store.errors import SourceError

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def case(shared: Path, name: str, file: str) -> bytes:
    return (shared / "cases" / name / file).read_bytes()


def test_a_metric_that_only_ends_in_created_is_kept() -> None:
    page = parse(
        b"# TYPE kube_pod_created gauge\nkube_pod_created 1.7e9\n# TYPE jobs_created counter\njobs_created 4\n"
    )
    assert [s.name for s in page.samples] == ["kube_pod_created", "jobs_created"]
    assert page.created == 0


def test_times_are_milliseconds_in_text_and_seconds_in_openmetrics(shared: Path) -> None:
    text = parse(case(shared, "06-timestamps-ms-vs-s", "text.prom"))
    openmetrics = parse(case(shared, "06-timestamps-ms-vs-s", "om.txt"), OPENMETRICS)
    assert text.samples[0].ts_ms == openmetrics.samples[0].ts_ms == 1795996800000


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Gauge("sglang:num_running_reqs", "running", registry=made).set(3)
    Counter("vllm:prompt_tokens", "tokens", registry=made).inc(7)
    Histogram("vllm:iteration_tokens_total", "tokens", buckets=(1, 10), registry=made).observe(4)
    return made


@pytest.mark.parametrize(
    ("accept", "colon"),
    [
        ("text/plain;version=0.0.4", ":"),
        ("application/openmetrics-text; version=1.0.0", "_"),
        ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", ":"),
    ],
)
def test_types_reach_the_samples_of_prometheus_client_whatever_was_negotiated(accept: str, colon: str) -> None:
    encode, content_type = choose_encoder(accept)
    page = parse(encode(registry()), content_type)
    kinds = {s.name: s.kind for s in page.series}
    assert kinds == {
        f"sglang{colon}num_running_reqs": "gauge",
        f"vllm{colon}prompt_tokens_total": "counter",
        f"vllm{colon}iteration_tokens_total_bucket": "histogram",
        f"vllm{colon}iteration_tokens_total_sum": "histogram",
        f"vllm{colon}iteration_tokens_total_count": "histogram",
    }
    assert page.created == 2
    assert page.rejected == ()


def test_nan_and_infinities_are_values() -> None:
    values = [s.value for s in parse(b"a NaN\nb +Inf\nc -Inf\nd inf\n").samples]
    assert str(values[0]) == "nan"
    assert values[1:] == [float("inf"), float("-inf"), float("inf")]


@pytest.mark.parametrize("text", ["1_000", "0x10", "1,5", "", "1 2 3", "1 1.5", "\uff11"])
def test_what_is_no_number_is_rejected(text: str) -> None:
    page = parse(f"a 1\nb {text}\n".encode())
    assert [s.name for s in page.samples] == ["a"]
    assert [line for line, _ in page.rejected] == [2]


def test_exemplars_are_skipped() -> None:
    page = parse(
        b'# TYPE a histogram\na_bucket{le="1.0",x=" # "} 5 123 # {trace_id="} # {"} 0.5 1.2\n'
        b'a_bucket{le="+Inf"} 6 # {} 1\n# EOF\n',
        OPENMETRICS,
    )
    assert [(s.value, s.ts_ms) for s in page.samples] == [(5.0, 123000), (6.0, None)]


def test_a_line_that_is_no_utf8_is_rejected_alone() -> None:
    page = parse(b'a{x="\xff"} 1\nb{x="\xc3\xa9"} 2\n')
    assert [(s.name, s.labels["x"]) for s in page.samples] == [("b", "é")]
    assert page.rejected[0][0] == 1


@pytest.mark.parametrize("labels", ['a="1",a="2"', '__name__="b"', "a=1", 'a="1" b="2"', ',a="1"', '"a"="1","a"="1"'])
def test_labels_that_mean_nothing_reject_their_line(labels: str) -> None:
    page = parse(f"m{{{labels}}} 1\nn 1\n".encode())
    assert [s.name for s in page.samples] == ["n"]


def test_a_type_that_does_not_exist_is_reported() -> None:
    page = parse(b"# TYPE a meh\na 1\n")
    assert page.rejected == ((1, "# TYPE a meh"),)
    assert page.series[0].kind == "unknown"


def http(shared: Path, file: str) -> tuple[bytes, str]:
    head, _, body = case(shared, "03-content-type-and-login-page", file).partition(b"\r\n\r\n")
    if not body and b"\n\n" in head:
        head, _, body = head.partition(b"\n\n")
    types = [line.split(b":", 1)[1] for line in head.splitlines() if line.lower().startswith(b"content-type")]
    return body, types[0].strip().decode() if types else ""


@pytest.mark.parametrize(("file", "words"), [("1-blank.http", "no content type"), ("2-html-type.http", "text/html")])
def test_metrics_under_another_content_type_are_read_with_a_warning(shared: Path, file: str, words: str) -> None:
    page = parse(*http(shared, file))
    assert [s.value for s in page.samples] == [4.0]
    assert words in page.warnings[0]


def test_a_login_page_is_refused_as_html(shared: Path) -> None:
    with pytest.raises(SourceError, match=r"HTML \(text/html\)"):
        parse(*http(shared, "3-login.http"))


def test_an_empty_page_says_so(shared: Path) -> None:
    assert parse(*http(shared, "4-empty.http")).warnings == ("0 samples",)


def test_html_is_refused_even_as_text() -> None:
    with pytest.raises(SourceError, match="HTML"):
        parse(b"\n  <!doctype html>\na 1\n", TEXT)


def test_json_is_refused_with_the_path_to_try() -> None:
    with pytest.raises(SourceError, match="no line") as caught:
        parse(b'[{"iter": 1}]', "application/json")
    assert "/prometheus/metrics" in caught.value.hint


def test_an_openmetrics_page_without_eof_is_cut_short() -> None:
    with pytest.raises(SourceError, match="# EOF"):
        parse(b"a 1\nb 2", OPENMETRICS)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('a 1\nb{x="} 2\n# EOF\n', 'line 2 of the OpenMetrics page cannot be read: b{x="} 2'),
        ("a 1\nb 2 1_0\n# EOF\n", "line 2 of the OpenMetrics page cannot be read: b 2 1_0"),
        ("# TYPE a meh\na 1\n# EOF\n", "line 1 of the OpenMetrics page cannot be read: # TYPE a meh"),
        ("a 1\n# EOF\nb 1\n", "line 3 of the OpenMetrics page stands after # EOF: b 1"),
    ],
)
def test_an_openmetrics_page_fails_at_its_first_line_that_cannot_be_read(body: str, words: str) -> None:
    memo = PageMemo()
    memo.parse(b"a 1\nb 2\n# EOF\n", OPENMETRICS)
    with pytest.raises(SourceError) as caught:
        memo.parse(body.encode(), OPENMETRICS)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("# TYPE a counter\na 1\n", "line 2: a sample of the counter a is called a_total or a_created"),
        ("a 1\na 2\n", "line 2: a second sample of a with the same labels"),
        ("a 1\nb 1\na 2\n", "line 3: the name a belongs to the family a of line 1, which has ended"),
        ('# TYPE a histogram\na_bucket{le="1"} 1\nb 1\n', "line 2: a label set of the histogram a has no last bucket"),
        ("# TYPE a:b gauge\na_b 1\n", "line 2: the metadata above say a:b, the sample is called a_b"),
        ("# TYPE a_seconds gauge\r\n# UNIT a_seconds seconds\r\na_seconds 1\r\nb 1 1\nb 1\n", "line 5: within one"),
    ],
)
def test_an_openmetrics_page_that_breaks_a_rule_is_read_with_a_warning_that_names_the_line(
    body: str, words: str
) -> None:
    memo = PageMemo()
    for _ in range(2):
        page = memo.parse(f"{body}# EOF\n".encode(), OPENMETRICS)
        assert len(page.warnings) == 1
        assert words in page.warnings[0]
        assert page.values


def test_starts_are_found_for_all_parts_of_a_histogram_and_for_no_other_series() -> None:
    page = parse(
        b'# TYPE h histogram\nh_bucket{m="x",le="1"} 1\nh_bucket{m="x",le="+Inf"} 1\nh_count{m="x"} 1\nh_sum{m="x"} 1\n'
        b'h_created{m="x"} 1.5e9\n# TYPE c counter\nc_total{m="y"} 1\nc_created{m="z"} 1.6e9\n# EOF\n',
        OPENMETRICS,
    )
    assert [page.start_s(series) for series in page.series] == [1.5e9] * 4 + [None]
