"""Presets: spellings, meanings, and the rules that every data file keeps."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from collector.presets.catalog import load, lookup
from collector.presets.names import key
from collector.presets.preset import Metric, PresetFile, presets_of

BASE_UNITS = {"", "s", "bytes", "bytes/s", "ratio", "hz", "celsius", "watts", "joules", "tokens", "requests"} | {
    "preemptions", "items", "flops"
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["vllm:prompt_tokens_total", "vllm:prompt_tokens", "vllm_prompt_tokens_total", "ray_vllm_prompt_tokens_total"],
)
def test_every_spelling_of_a_name_is_found(name: str) -> None:
    preset = lookup(name)
    assert preset is not None
    assert (preset.source, preset.canonical, preset.semantic) == ("vllm", "prompt_tokens_total", "cumulative")


def test_an_unknown_name_is_none() -> None:
    assert lookup("node_load1") is None


def test_the_histogram_that_ends_in_total_is_one() -> None:
    parts = [lookup(f"vllm:iteration_tokens_total_{part}") for part in ("bucket", "sum", "count")]
    assert [p and p.canonical for p in parts] == [f"iteration_tokens_{part}" for part in ("bucket", "sum", "count")]
    assert lookup("vllm:iteration_tokens_total") is None


def test_only_the_sum_of_a_histogram_has_the_unit() -> None:
    parts = [lookup(f"vllm:time_to_first_token_seconds_{part}") for part in ("bucket", "sum", "count")]
    assert [p and p.unit for p in parts] == ["", "s", ""]
    assert {p and p.combine for p in parts} == {"sum"}


def test_an_alias_yields_to_every_newer_name() -> None:
    file = PresetFile("t", {"new": Metric("c", "level", "sum", aliases=("older", "oldest"))})
    found = presets_of("t", file)
    assert [found[n].yields_to for n in ("new", "older", "oldest")] == [
        frozenset(),
        frozenset({"new"}),
        frozenset({"new", "older"}),
    ]


def test_metrics_with_different_added_labels_do_not_yield() -> None:
    free, used = lookup("DCGM_FI_DEV_FB_FREE"), lookup("DCGM_FI_DEV_FB_USED")
    assert free is not None
    assert used is not None
    assert (free.yields_to, used.yields_to) == (frozenset(), frozenset())
    assert (free.labels, used.labels) == ({"state": "free"}, {"state": "used"})


def test_no_two_entries_claim_one_name() -> None:
    claims = Counter(
        key(spelling + part)
        for file in load().values()
        for name, metric in file.metrics.items()
        for spelling in (name, *metric.aliases)
        for part in (("_bucket", "_sum", "_count") if metric.histogram else ("",))
    )
    assert {name: n for name, n in claims.items() if n > 1} == {}


@pytest.mark.parametrize("source", sorted(load()))
def test_a_data_file_keeps_the_naming_rules(source: str) -> None:
    for name, metric in load()[source].metrics.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.canonical), name
        assert metric.unit in BASE_UNITS, name
        assert metric.scale > 0, name
        counter = metric.semantic == "cumulative" and not metric.histogram
        assert metric.canonical.endswith("_total") == counter, name
        assert not (metric.unit == "ratio" and metric.combine == "sum"), name
        if metric.valid:
            assert metric.valid[0] < metric.valid[1], name
        for other in metric.yields_to:
            assert lookup(other) is not None, other


def test_one_canonical_name_has_one_unit_and_one_meaning() -> None:
    meanings: dict[str, set[object]] = {}
    for file in load().values():
        for metric in file.metrics.values():
            meanings.setdefault(metric.canonical, set()).add((metric.unit, metric.semantic, metric.combine))
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_every_default_field_of_dcgm_exporter_is_known(shared: Path) -> None:
    lines = (shared / "data/dcgm_counters/default-counters.csv").read_text().splitlines()
    fields = [
        line.split(",")[0].strip()
        for line in lines
        if re.match(r"\s*DCGM_", line) and not re.search(r",\s*label,", line)
    ]
    unknown = {name for name in fields if lookup(name) is None}
    assert len(fields) > 20
    assert unknown == {"DCGM_FI_DEV_VGPU_LICENSE_STATUS"}


def test_every_metric_of_a_real_vllm_is_known(shared: Path) -> None:
    import gzip

    with gzip.open(shared / "data/vllm_real/vllm_metrics.jsonl.gz", "rt") as lines:
        text = json.loads(next(lines))["text"]
    names = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line.startswith("vllm:")}
    unknown = {name for name in names if not name.endswith("_created") and lookup(name) is None}
    assert len(names) > 100
    assert unknown == set()
