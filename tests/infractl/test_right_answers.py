"""Public captures with a known answer, taken the whole way by the commands a person would type."""

import gzip
import re
import subprocess
from pathlib import Path

import orjson
import pytest

from tests.infractl.serving import command_line, environment, replaying, serving, wait_for

SCALES = (100, 300, 500, 600, 700, 900, 1000, 2000)
REQUESTS = (
    "--as", "requests", "--map",
    "ts=record_time-total_chunk_time,ttft_s=first_chunk_time,e2e_s=total_chunk_time,input_tokens=sampled_in_num",
)  # fmt: skip
ENGINE = (
    "--as", "series", "--map",
    "requests_waiting=num_pending,requests_running=num_running,kv_cache_usage_ratio=gpu_kvcache_usage",
    "--unit", "kv_cache_usage_ratio=percent",
)  # fmt: skip


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        command_line(*words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def burst(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that holds BurstGPT's requests, engine and GPU logs at eight load scales."""
    folder = tmp_path_factory.mktemp("burst")
    logs = shared / "data" / "burstgpt_vllm_replay"
    for scale in SCALES:
        label = ("--label", f"service=scale-{scale}")
        run(folder, "import", str(logs / f"detail_log_scale{scale}_prompt500.json.gz"), *REQUESTS, *label)
        run(folder, "import", str(logs / f"vllm_log_scale{scale}_prompt500.json.gz"), *ENGINE, *label)
        run(folder, "import", str(logs / f"gpu_log_scale{scale}_prompt500.json.gz"), "--as", "series", *label)
    return folder


def test_p99_of_burstgpt_has_the_independent_answer_and_names_pending_first(burst: Path):
    drivers = "requests_waiting,kv_cache_usage_ratio,input_tokens"
    words = ("analyze", "p99", "--target", "ttft_s", "--drivers", drivers, "--by", "none", "--format", "json")
    result = orjson.loads(run(burst, *words))
    slope = {row["term"]: row["estimate"] for row in result["frames"]["coefficients"]}
    fit = result["frames"]["fit"][0]
    assert (fit["tau"], fit["n"]) == (0.99, 3991)
    assert slope["(intercept)"] == pytest.approx(0.0408, rel=0.02)
    assert slope["requests_waiting"] == pytest.approx(0.4260, rel=0.02)
    assert slope["kv_cache_usage_ratio"] / 100 == pytest.approx(0.0627, rel=0.02)  # the log has percent, we have ratio
    assert slope["input_tokens"] == pytest.approx(3.8e-5, rel=0.1)
    assert fit["r1"] == pytest.approx(0.877, abs=0.002)
    shares = result["frames"]["contributions"]
    assert shares[0]["driver"] == "requests_waiting"
    assert sum(row["share"] for row in shares) == pytest.approx(1, abs=1e-12)
    assert any("low confidence" in note and "tail rows" in note for note in result["notes"])


def test_azure_tokens_have_their_published_quantiles(shared: Path, tmp_path: Path):
    run(tmp_path, "import", str(shared / "data" / "azure_llm_trace" / "AzureLLMInferenceTrace_conv.csv"))
    query = """SELECT quantile_cont(input_tokens, [0.5, 0.99]) i, quantile_cont(output_tokens, [0.5, 0.99]) o,
               count(*) n FROM spans"""
    assert orjson.loads(run(tmp_path, "sql", query, "--format", "json")) == [
        {"i": [1020.0, 4142.0], "o": [129.0, 601.0], "n": 19366}
    ]


WAITING = re.compile(rb"^vllm:num_requests_waiting\{[^}]*\} ([0-9.]+)$", re.MULTILINE)


def test_recorded_vllm_and_dcgm_pages_are_scraped_with_their_values(shared: Path, tmp_path: Path):
    with gzip.open(shared / "data" / "vllm_real" / "vllm_metrics.jsonl.gz", "rt") as lines:
        page = [orjson.loads(line)["text"].encode() for line in lines][60]  # amid the burst
    waiting = float(WAITING.findall(page)[0])
    assert waiting > 0
    gpus = [
        shared / "data" / "gpu_metrics_text" / f"{name}.prom"
        for name in ("datadog_dcgm_exporter_t4", "dcgm_exporter_readme_2")
    ]
    with (
        replaying([page]) as engine,
        replaying([gpus[0].read_bytes()]) as t4,
        replaying([gpus[1].read_bytes()]) as blank,
    ):
        config = f"""
scrape_configs:
- {{job_name: vllm, scrape_interval: 500ms, static_configs: [{{targets: ['{engine}']}}]}}
- {{job_name: t4, scrape_interval: 500ms, static_configs: [{{targets: ['{t4}']}}]}}
- {{job_name: blank, scrape_interval: 500ms, static_configs: [{{targets: ['{blank}']}}]}}
"""
        query = """SELECT job, name, any_value(canonical) c, max(value) v FROM metric_samples JOIN metric_series
                   USING (series_id) WHERE name IN ('vllm:num_requests_waiting', 'DCGM_FI_DEV_GPU_TEMP',
                   'DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_DEV_MEMORY_TEMP') GROUP BY 1, 2 ORDER BY 1, 2"""
        with serving(tmp_path, config) as served:
            rows = wait_for(lambda: (found := served.sql(query)) and len({row["job"] for row in found}) == 3 and found)
    values = {(row["job"], row["name"]): (row["c"], row["v"]) for row in rows}
    assert values["vllm", "vllm:num_requests_waiting"] == ("requests_waiting", waiting)
    assert values["t4", "DCGM_FI_DEV_GPU_TEMP"] == ("gpu_temperature_celsius", 25.0)
    assert values["t4", "DCGM_FI_DEV_POWER_USAGE"] == ("gpu_power_watts", 8.969)
    assert values["blank", "DCGM_FI_DEV_MEMORY_TEMP"] == ("gpu_temperature_celsius", None)


def test_the_fit_over_the_recorded_vllm_names_queueing_for_the_burst(tmp_path: Path):
    from sample_data.load import real
    from store.database import Database

    with Database(tmp_path / "infractl-data") as database:
        database.append(list(real()))
    window = ("--window", "2026-11-30T16:18:05Z..2026-11-30T16:21:30Z")  # warm-up, baseline, burst and its draining
    words = ("analyze", "p99", "--where", "service=vllm-tiny", *window, "--bucket", "10s", "--format", "json")
    result = orjson.loads(run(tmp_path, *words))
    shares = result["frames"]["contributions"]
    assert shares[0]["driver"].startswith("requests_waiting")
    assert shares[0]["share"] > 0.5
