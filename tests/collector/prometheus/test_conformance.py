"""How far the parser agrees with the public conformance suites, and why it differs where it does."""

import base64
import gzip
import json
import re
from collections import Counter
from pathlib import Path

from collector.prometheus.text import TEXT, parse
from store.errors import SourceError

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
LENIENT = {
    "bad_blank_line": "blank lines are harmless",
    "bad_clashing_names": "metadata is a hint; samples are kept",
    "bad_counter_values": "values are stored as exposed (a NaN counter becomes null)",
    "bad_exemplar": "exemplars are skipped, not checked",
    "bad_grouping": "order does not matter to the store",
    "bad_help": "HELP is not kept",
    "bad_histograms": "buckets are stored as exposed; analyses check them",
    "bad_info_and_stateset": "values are stored as exposed",
    "bad_invalid_labels": "no blank after }: read, as older exporters write it",
    "bad_metadata": "unknown comments are passed over; metadata counts wherever it stands",
    "bad_missing_or_extra_commas": "a trailing comma is harmless",
    "bad_missing_or_invalid_labels": "le and quantile are stored as exposed",
    "bad_repeated_metadata": "the last TYPE counts",
    "bad_stateset": "values are stored as exposed",
    "bad_type": "untyped and trailing blanks are understood",
    "bad_unit": "UNIT is not kept",
    "bad_value": "extra blanks are harmless",
}
LENIENT_TEXT = {
    "bla 3.14": "a last line without newline is whole when the HTTP body is",
    'metric{label="\\t"} 3.14': "an unknown escape stands for itself",
    "# HELP metric two": "HELP is not kept",
    "# TYPE metric untyped": "the last TYPE counts",
    "metric 4.12\n# TYPE metric counter": "TYPE counts wherever it stands",
    'metric_bucket{le="bla"} 3.14': "le is stored as exposed",
    'metric{quantile="bla"} 3.14': "quantile is stored as exposed",
}


def rows(path: Path):
    for line in path.read_text().splitlines():
        row = json.loads(line)
        content = row["content"]
        row["body"] = content.encode() if row["encoding"] == "utf-8" else base64.b64decode(content)
        yield row


def accepts(body: bytes, content_type: str) -> bool:
    try:
        return not parse(body, content_type).rejected
    except SourceError:
        return False


def test_every_valid_openmetrics_page_is_read_and_each_leniency_has_a_reason(shared: Path) -> None:
    found: Counter[str] = Counter()
    for row in rows(shared / "data/openmetrics_suite/cases.jsonl"):
        read = accepts(row["body"], OPENMETRICS)
        if read == row["should_parse"]:
            found["agree"] += 1
            continue
        assert not row["should_parse"], f"{row['name']} is valid and was refused"
        assert any(row["name"].startswith(prefix) for prefix in LENIENT), row["name"]
    assert found["agree"] >= 102  # of 211; all 44 valid ones among them


def test_the_text_format_corpus_is_read_and_each_leniency_has_a_reason(shared: Path) -> None:
    agree = 0
    for row in rows(shared / "data/prom_text_edge/common_expfmt_fuzz_corpus.jsonl"):
        if accepts(row["body"], TEXT) == row["should_parse"]:
            agree += 1
            continue
        assert not row["should_parse"], row["name"]
        assert any(key in row["content"] for key in LENIENT_TEXT), row["content"]
    assert agree >= 19  # of 26


def test_captures_of_other_projects_are_read_to_the_last_line(shared: Path) -> None:
    folder = shared / "data/prom_text_edge"
    for path in sorted([*folder.glob("*.prom"), *folder.glob("netdata*.txt"), *folder.glob("*.gz")]):
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        page = parse(body)
        lines = [line for line in body.decode().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(page.samples) + page.created == len(lines), path.name
        assert page.rejected == (), path.name


def test_openmetrics_captures_are_read_to_the_last_line(shared: Path) -> None:
    for path in sorted((shared / "data/prom_text_edge").glob("*.om.txt")):
        body = path.read_bytes().rstrip() + b"\n"
        body = body if body.endswith(b"# EOF\n") else body + b"# EOF\n"
        page = parse(body, OPENMETRICS)
        assert len(page.samples) + page.created == len(re.findall(rb"^[^#\n]", body, re.MULTILINE)), path.name
        assert page.rejected == (), path.name
