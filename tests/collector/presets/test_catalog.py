"""Presets: spellings, meanings, the rules that every data file keeps, and what is said of a file that breaks them."""

import gzip
import json
import re
from pathlib import Path

import pytest

from collector.presets.catalog import Catalog, canonical, catalog, load, lookup, meaning
from collector.presets.names import key
from collector.presets.preset import HISTOGRAM_PARTS, Canonical, Preset
from collector.prometheus.series import Resolver
from collector.prometheus.text import parse
from store.errors import ConfigError

ADDABLE_RATIOS = {"gpu_process_utilization_ratio"}
"""Shares of one whole, which do add up."""


def one(name: str) -> Preset:
    (preset,) = lookup(name)
    return preset


def with_file(directory: Path, text: str, name: str = "mine") -> Catalog:
    (directory / f"{name}.toml").write_text(text)
    return load(directory)


@pytest.mark.parametrize(
    "name",
    ["vllm:prompt_tokens_total", "vllm:prompt_tokens", "vllm_prompt_tokens_total", "ray_vllm_prompt_tokens_total"],
)
def test_every_spelling_of_a_name_is_found(name: str) -> None:
    assert (one(name).source, one(name).canonical, one(name).semantic) == ("vllm", "prompt_tokens_total", "cumulative")


def test_an_unknown_name_has_no_meaning() -> None:
    assert lookup("room_temperature") == ()
    assert meaning("room_temperature", {}) is None


def test_a_canonical_name_means_itself() -> None:
    assert (one("gpu_power_watts").unit, one("gpu_power_watts").scale) == ("watts", 1.0)
    assert (one("ttft_seconds_sum").canonical, one("ttft_seconds_sum").unit) == ("ttft_seconds_sum", "s")
    assert lookup("ttft_seconds") == ()
    assert canonical("ttft_seconds_bucket") == Canonical("cumulative", "sum", "", False, "time to first token")


def test_every_canonical_name_means_itself_whatever_sources_call_theirs() -> None:
    for name, metric in catalog().canonical.items():
        for part in HISTOGRAM_PARTS if metric.histogram else ("",):
            preset = meaning(name + part, {})
            assert preset is not None
            assert (preset.canonical, preset.scale, preset.labels) == (name + part, 1.0, {})


def test_only_the_sum_of_a_histogram_has_the_unit() -> None:
    parts = [one(f"vllm:time_to_first_token_seconds_{part}") for part in ("bucket", "sum", "count")]
    assert [p.unit for p in parts] == ["", "s", ""]
    assert {(p.combine, p.semantic) for p in parts} == {("sum", "cumulative")}


def test_an_alias_yields_to_every_newer_name(tmp_path: Path) -> None:
    text = 'title = "t"\n[metrics]\nnew = { to = "requests_running", aliases = ["older", "oldest"] }\n'
    found = with_file(tmp_path, text)
    assert [found.lookup(n)[0].yields_to for n in ("new", "older", "oldest")] == [
        frozenset(),
        frozenset({"new"}),
        frozenset({"new", "older"}),
    ]
    assert found.renamed("oldest") == "new"
    assert found.renamed("new") is None


def test_metrics_with_different_added_labels_do_not_yield() -> None:
    free, used = one("DCGM_FI_DEV_FB_FREE"), one("DCGM_FI_DEV_FB_USED")
    assert (free.yields_to, used.yields_to) == (frozenset(), frozenset())
    assert (free.labels, used.labels) == ({"state": "free"}, {"state": "used"})


def test_a_new_preset_is_one_data_file(tmp_path: Path) -> None:
    presets = with_file(
        tmp_path,
        """
        title = "My engine"
        names = ["mine_"]
        only = { replica = ["", "0"] }
        blank = [[-1, -1]]
        [copy]
        model = ["model_id"]
        [canonical]
        mine_mood_ratio = { semantic = "level", combine = "mean", unit = "ratio", help = "mood" }
        [metrics]
        mine_busy = "requests_running"
        mine_mood_percent = { to = "mine_mood_ratio", scale = 0.01, valid = [0, 100] }
        mine_latency_ms = { to = "e2e_seconds", scale = 0.001 }
        mine_state = [
            { when = { kind = ["queue"] }, to = "requests_waiting" },
            { when = { kind = ["limit"] }, to = "requests_max" },
        ]
        [[expect]]
        metrics = ["mine_busy"]
        lost = "load"
        remedy = "switch it on"
        """,
    )
    page = parse(
        b'mine_busy{model_id="m"} 2\nmine_busy{replica="1"} 2\nmine_mood_percent 40\nmine_state{kind="queue"} 3\n'
        b'mine_state{kind="other"} 9\nmine_latency_ms_bucket{le="250.0"} 1\nmine_latency_ms_bucket{le="+Inf"} 1\n'
    )
    rows = list(Resolver(presets=presets).resolve(page.series).rows.values())
    assert [(r["canonical"], r["unit"], r["scale"]) for r in rows] == [
        ("requests_running", "requests", 1.0),
        (None, None, None),
        ("mine_mood_ratio", "ratio", 0.01),
        ("requests_waiting", "requests", 1.0),
        (None, None, None),
        ("e2e_seconds_bucket", None, 1.0),
        ("e2e_seconds_bucket", None, 1.0),
    ]
    assert json.loads(rows[0]["labels"]) == {"model": "m", "model_id": "m"}
    assert [json.loads(r["labels"])["le"] for r in rows[-2:]] == ["0.25", "+Inf"]
    assert presets.sources({key(s.name) for s in page.series}) == ("mine",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[metrics]\nx = "requests_runing"', "metrics.x: no canonical metric 'requests_runing'"),
        ('[metrics]\nx = { to = "requests_running", scael = 2 }', "metrics.x: Object contains unknown field `scael`"),
        ('[metrics]\nx = { to = "requests_running", scale = 0 }', "metrics.x: scale is 0"),
        ('[metrics]\nx = { to = "requests_running", valid = [1, 0] }', "metrics.x: valid is [1.0, 0.0]"),
        ('[metrics]\nx = "requests_running"\nx_total = "requests_max"', "metrics.x_total: x_total is claimed twice"),
        ('[metrics]\n"vllm:num_requests_running" = "requests_max"', "vllm_num_requests_running is claimed by"),
        ('[canonical]\ny = { semantic = "level", combine = "sum", unit = "ms" }', "canonical.y: unit 'ms'"),
        ('[canonical]\ny = { semantic = "odd", combine = "sum" }', "canonical.y: Invalid enum value 'odd'"),
        ('[canonical]\nttft_seconds = { semantic = "level", combine = "sum" }', "ttft_seconds is declared elsewhere"),
        ("metrics = [", "preset mine.toml: Invalid value"),
        ("[[expect]]\nmetrics = []", "missing required field `lost`"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_file(tmp_path, f'title = "t"\n{text}\n')
    assert said in str(caught.value)
    assert re.search(r"preset (mine|vllm)\.toml", str(caught.value))
    assert caught.value.hint


def test_a_misspelt_canonical_name_gets_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        with_file(tmp_path, 'title = "t"\n[metrics]\nx = "requests_runing"\n')
    assert caught.value.hint == "did you mean requests_running?"


def test_canonical_metrics_keep_the_naming_rules() -> None:
    for name, metric in catalog().canonical.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert metric.help, name
        assert name.endswith("_total") == (metric.semantic == "cumulative" and not metric.histogram), name
        assert name.endswith("_info") <= (metric.semantic == "info"), name
        if metric.unit == "ratio" and not metric.histogram:
            assert metric.combine != "sum" or name in ADDABLE_RATIOS, name


@pytest.mark.parametrize("source", sorted(catalog().files))
def test_a_data_file_names_only_what_it_knows(source: str) -> None:
    file = catalog().files[source]
    known = catalog().keys[source]

    def knows(name: str) -> bool:
        return any(key(name + part) in known for part in ("", *HISTOGRAM_PARTS))

    assert file.title
    for name, metrics in file.metrics.items():
        for metric in metrics:
            assert all(knows(other) for other in metric.yields_to), name
    for expect in file.expect:
        assert expect.metrics
        assert all(knows(name) for name in expect.metrics), expect.metrics
    assert {name for name in file.removed if not knows(name)} == set()


def test_every_default_field_of_dcgm_exporter_is_known(shared: Path) -> None:
    lines = (shared / "data/dcgm_counters/default-counters.csv").read_text().splitlines()
    fields = [
        line.split(",")[0].strip()
        for line in lines
        if re.match(r"\s*DCGM_", line) and not re.search(r",\s*label,", line)
    ]
    unknown = {name for name in fields if not lookup(name)}
    assert len(fields) > 20
    assert unknown <= {"DCGM_FI_DEV_VGPU_LICENSE_STATUS"}


def test_every_metric_of_a_real_vllm_is_known(shared: Path) -> None:
    with gzip.open(shared / "data/vllm_real/vllm_metrics.jsonl.gz", "rt") as lines:
        text = json.loads(next(lines))["text"]
    names = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line.startswith("vllm:")}
    unknown = {name for name in names if not name.endswith("_created") and not lookup(name)}
    assert len(names) > 100
    assert unknown == set()
