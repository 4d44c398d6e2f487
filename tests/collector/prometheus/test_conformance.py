"""The checker judges the public conformance suites case by case as their authors do; a scrape reads what it can."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from collector.prometheus.conformance import violations
from collector.prometheus.text import TEXT, parse
from store.errors import SourceError

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
DIFFERENT_OPENMETRICS: dict[str, str] = {}  # case of the suite → why our verdict is another
DIFFERENT_TEXT: dict[str, str] = {}
READ_THOUGH_REFUSED = {  # what a scrape makes of the cases that a strict OpenMetrics reader refuses
    "bad_blank_line": "blank lines are harmless",
    "bad_clashing_names": "metadata is a hint",
    "bad_counter_values": "values are stored as exposed",
    "bad_exemplar": "exemplars are skipped",
    "bad_grouping": "order does not matter to the store",
    "bad_help": "HELP is not kept",
    "bad_histograms": "buckets are stored as exposed",
    "bad_info_and_stateset": "values are stored as exposed",
    "bad_invalid_labels_6": "no blank after }: read, as older exporters write it",
    "bad_metadata": "unknown comments are passed over; metadata counts wherever it stands",
    "bad_missing_or_extra_commas_2": "a trailing comma is harmless",
    "bad_missing_or_invalid_labels": "labels are stored as exposed",
    "bad_repeated_metadata": "the last TYPE counts",
    "bad_stateset": "values are stored as exposed",
    "bad_type_6": "trailing blanks are harmless",
    "bad_type_7": "untyped is an old word for unknown",
    "bad_unit": "UNIT is not kept",
    "bad_value_1": "blanks are harmless",
    "bad_value_2": "blanks are harmless",
    "bad_value_3": "blanks are harmless",
}
FAULTY_CAPTURES = {
    "datadog_triton.prom": "the last line does not end in a line feed",
    "datadog_vllm_v0_v1_union.prom": "the last line does not end in a line feed",
    "datadog_dcgm_exporter_t4.prom": "the last line does not end in a line feed",
    "netdata_testdata.txt": "the last line does not end in a line feed",
    "netdata_k8s_kubelet.prom": "the count of apiserver_storage_data_key_generation_latencies_microseconds is not",
    "llmd_epp_request_duration_seconds_metric.prom": 'has no last bucket le="+Inf"',  # it writes le="Inf"
    "llmd_epp_request_ttft_seconds_metric.prom": 'has no last bucket le="+Inf"',
    "prometheus_alltypes.5mfs.om.txt": "has buckets below zero and so can have no",
}


def rows(path: Path) -> Iterator[tuple[str, bytes, bool]]:
    for line in path.read_text().splitlines():
        row = json.loads(line)
        content = row["content"]
        body = content.encode() if row["encoding"] == "utf-8" else base64.b64decode(content)
        yield row["name"], body, row["should_parse"]


@pytest.mark.parametrize(
    ("file", "content_type", "different", "count"),
    [
        ("openmetrics_suite/cases.jsonl", OPENMETRICS, DIFFERENT_OPENMETRICS, 211),
        ("prom_text_edge/common_expfmt_fuzz_corpus.jsonl", TEXT, DIFFERENT_TEXT, 26),
    ],
)
def test_every_case_of_the_suites_is_judged_as_its_authors_do_but_for_those_listed(
    shared: Path, file: str, content_type: str, different: dict[str, str], count: int
) -> None:
    cases = list(rows(shared / "data" / file))
    found = {name for name, body, valid in cases if (not violations(body, content_type)) != valid}
    assert found == set(different)
    assert len({name for name, _, _ in cases}) == count


def test_a_scrape_reads_every_valid_openmetrics_page_without_a_warning(shared: Path) -> None:
    valid = [(name, body) for name, body, valid in rows(shared / "data/openmetrics_suite/cases.jsonl") if valid]
    pages = {name: parse(body, OPENMETRICS) for name, body in valid}
    assert {name: page.warnings for name, page in pages.items() if page.warnings not in ((), ("0 samples",))} == {}
    assert len(pages) == 44


def refusal(body: bytes) -> str:
    """Why a scrape refuses a page; empty where it reads it."""
    try:
        parse(body, OPENMETRICS)
    except SourceError as error:
        return str(error)
    return ""


def test_a_scrape_refuses_a_bad_openmetrics_page_naming_the_line_or_has_a_reason_to_read_it(shared: Path) -> None:
    cases = rows(shared / "data/openmetrics_suite/cases.jsonl")
    refusals = {name: refusal(body) for name, body, valid in cases if not valid}
    read = {name for name, why in refusals.items() if not why}
    named = {name for name, why in refusals.items() if re.search(r"^line \d+ of|cut short|no line of the answer", why)}
    assert read | named == set(refusals)
    assert read == {name for name in read if name.startswith(tuple(READ_THOUGH_REFUSED))}
    assert all(any(name.startswith(known) for name in read) for known in READ_THOUGH_REFUSED)


def test_the_text_corpus_is_refused_line_by_line_where_lines_cannot_be_read(shared: Path) -> None:
    cases = list(rows(shared / "data/prom_text_edge/common_expfmt_fuzz_corpus.jsonl"))
    for name, body, valid in cases:
        try:
            page = parse(body, TEXT)
        except SourceError:
            assert not valid, name
            continue
        if valid:
            assert page.rejected == (), name


def captures(shared: Path) -> Iterator[tuple[str, bytes, str]]:
    for folder in ("engine_metrics", "gpu_metrics_text", "host_metrics_text", "prom_text_edge"):
        for path in sorted((shared / "data" / folder).iterdir()):
            if path.suffix in (".prom", ".txt", ".gz") and path.name != "netdata_dcgm_all_fields_nonlabel.txt":
                body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                yield path.name, body, OPENMETRICS if ".om." in path.name else TEXT


def test_captures_of_real_exporters_break_no_rule_but_those_listed(shared: Path) -> None:
    found = {name: faults for name, body, kind in captures(shared) if (faults := violations(body, kind))}
    assert set(found) == set(FAULTY_CAPTURES)
    for name, reason in FAULTY_CAPTURES.items():
        assert any(reason in fault.reason for fault in found[name]), name


def test_captures_are_read_to_the_last_line(shared: Path) -> None:
    for name, body, kind in captures(shared):
        page = parse(body, kind)
        lines = [line for line in body.decode().split("\n") if line.strip() and not line.lstrip().startswith("#")]
        assert len(page.samples) + page.created == len(lines), name
        assert page.rejected == (), name


def test_telegraf_finds_the_same_values_and_times(shared: Path) -> None:
    path = shared / "data/prom_text_edge/telegraf_prometheus_testcases.jsonl"
    cases = [row for row in map(json.loads, path.read_text().splitlines()) if "input.txt" in row]
    for row in cases:
        points = [re.split(r"(?<!\\) ", line) for line in row["expected_v2.out"].splitlines()]
        theirs = sorted(
            (float(pair.split("=")[1]), int(point[2]) // 10**6 if len(point) > 2 else None)
            for point in points
            for pair in point[1].split(",")
        )
        ours = sorted((sample.value, sample.ts_ms) for sample in parse(row["input.txt"].encode()).samples)
        assert ours == theirs, row["case"]
    assert len(cases) == 8


LINES = [
    "# TYPE a histogram", "# TYPE a counter", "# TYPE a gauge", "# TYPE a summary", "# TYPE a info", "# HELP a x",
    "# TYPE a stateset", "# TYPE a gaugehistogram", "# UNIT a s", 'a_bucket{le="1"} 1', 'a_bucket{le="+Inf"} 1',
    'a_bucket{le="2"} 0 # {x="y"} 1', "a_sum 1", "a_count 1", "a_count 1.5", "a_total 1", "a_total -1", "a_total NaN",
    "a 1", "a 2", 'a{a="b"} 1', "a_info 1", "a 1 5", "a 1 4", 'a{quantile="0.5"} 1', 'a{x="1"} 1', "a_gsum -1",
    "a_gcount 1", "b 1", "a_created 1", "a  1", 'a{x="1",} 1', "a 0x1", "",
]  # fmt: skip


@given(st.lists(st.sampled_from(LINES), max_size=7).map("\n".join))
@settings(max_examples=500)
def test_the_checker_agrees_with_the_parser_of_prometheus_client_on_any_page(body: str) -> None:
    page = f"{body}\n# EOF\n" if body else "# EOF\n"
    found = violations(page.encode(), OPENMETRICS)
    assume(not any("a second sample" in fault.reason for fault in found))  # which prometheus_client lets pass
    assert (not found) == accepted_by_peer(page)


def accepted_by_peer(page: str) -> bool:
    try:
        list(text_string_to_metric_families(page))
    except (ValueError, KeyError):
        return False
    return True


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ('# TYPE t histogram\nt_bucket{le="1"} 3\nt_sum 1\nt_count 3\n', 2, 'no last bucket le="+Inf"'),
        ('# TYPE t histogram\nt_bucket{le="1"} 3\nt_bucket{le="+Inf"} 2\n', 3, "counts less"),
        ('# TYPE t histogram\nt_bucket{le="2"} 3\nt_bucket{le="1"} 2\nt_bucket{le="+Inf"} 3\n', 3, "order of le"),
        ('# TYPE t histogram\nt_bucket{le="+Inf"} 3\nt_count 4\n', 3, "the count of t is not"),
        ("a 1\nb 1\na 2\n", 3, "a second sample of a"),
        ('a 1 # {x="y"} 1\n', 1, "exemplars"),
        ("a_total 1\n# TYPE a_total counter\n", 2, "after its samples"),
        ("a 1\nb\n", 2, "cannot be read"),
    ],
)
def test_faults_of_a_text_page_name_line_and_rule(body: str, line: int, words: str) -> None:
    faults = violations(body.encode())
    assert [fault.line for fault in faults] == [line]
    assert words in faults[0].reason


def test_a_page_of_trtllm_as_documented_is_flagged_for_its_missing_last_bucket() -> None:
    name = "trtllm_e2e_request_latency_seconds"
    body = f"""# HELP {name} Histogram of end to end request latency in seconds.
# TYPE {name} histogram
{name}_sum{{engine_type="undefined",model_name="undefined"}} 0.6
{name}_count{{engine_type="undefined",model_name="undefined"}} 1.0
{name}_bucket{{engine_type="undefined",le="0.3",model_name="undefined"}} 0.0
{name}_bucket{{engine_type="undefined",le="0.8",model_name="undefined"}} 1.0
"""
    assert violations(body.encode()) == [(5, f'a label set of the histogram {name} has no last bucket le="+Inf"')]


@given(st.binary(max_size=200), st.sampled_from([TEXT, OPENMETRICS]))
def test_any_bytes_can_be_judged(body: bytes, content_type: str) -> None:
    lines = body.count(b"\n") + 1
    assert all(1 <= fault.line <= lines + 1 for fault in violations(body, content_type))
