"""`status` and `doctor` over a fleet: from the file, and through a running server that knows its targets."""

from datetime import UTC, datetime
from pathlib import Path

import orjson

from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from infractl.fleet import fleet
from infractl.fleet_text import DEVICES, ENGINES, remarks, table
from store.database import Database
from tests.collector.prometheus.server import serve as page_server
from tests.infractl.serving import serving, wait_for
from tests.infractl.test_cli import run

GPUS = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 87
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 612.4
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 40960
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 40960
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 2e9
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",Hostname="n1"} 1e9
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",modelName="NVIDIA H100",Hostname="n1"} 40
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="1",UUID="GPU-b",modelName="NVIDIA H100",Hostname="n1"} 1
"""
ENGINE = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 4
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.1
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.9
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="1.0"} 10
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="+Inf"} 100
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 900
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 100
"""


def _store(folder: Path, now: datetime) -> None:
    with Database(folder) as database:
        for job, text in (("dcgm", GPUS), ("vllm", ENGINE)):
            labels = {"job": job, "instance": f"{job}:1", "service": "chat"}
            database.append([to_batch("test", parse(text.encode()), now, labels, honor_labels=False)])


def test_status_tells_every_device_with_the_words_of_its_contract(tmp_path: Path):
    _store(tmp_path / "data", datetime.now(UTC))
    status = orjson.loads(run("status", "--json", "--data", "data", cwd=tmp_path).stdout)
    first, second = status["devices"]
    assert (first["name"], first["util_pct"], first["p2p_bw_gbps"], first["power_watts"]) == (
        "NVIDIA H100",
        87,
        3,
        612.4,
    )
    assert first["memory_used_bytes"] == 40960 * 2**20
    assert first["temperature_celsius"] is None  # not reported is not zero
    assert (second["state"], second["row_remap_failed"]) == ("critical", True)
    text = run("status", "--data", "data", cwd=tmp_path).stdout
    assert "critical: GPU 1 on n1" in text


def test_status_tells_every_engine_and_refuses_a_quantile_beyond_the_last_bucket(tmp_path: Path):
    now = datetime.now(UTC)
    _store(tmp_path, now)
    with Database(tmp_path) as database:
        found = fleet(database, now)
    [engine] = found["engines"]
    assert (engine["requests_running"], engine["kv_usage_ratio"], engine["hottest_engine"]) == (7, 0.5, "1")
    shown = table(found["engines"], ENGINES)
    assert "> 1 s" in shown
    assert "0.50 (engine 1: 0.90)" in shown
    assert "waiting" not in shown  # not exposed: no column rather than a zero
    assert "critical" in table(found["devices"], DEVICES)
    assert any("scraped once" in line for line in remarks(found))


def test_an_empty_store_has_no_fleet(tmp_path: Path):
    with Database(tmp_path) as database:
        assert fleet(database, datetime.now(UTC)) == {}


def test_a_running_server_tells_its_fleet_and_what_the_doctor_finds(tmp_path: Path):
    with page_server() as engine:
        engine.answer.body = ENGINE.encode()
        config = (
            "scrape_configs:\n- job_name: vllm\n  scrape_interval: 1s\n  static_configs:\n"
            f"  - targets: ['{engine.address}', '127.0.0.1:1']\n    labels: {{service: chat}}\n"
            "collectors: {host: {every: 1s}}\n"
        )
        with serving(tmp_path, config=config) as server:
            status = wait_for(lambda: _complete(orjson.loads(server.cli("status", "--json").stdout)))
            made = orjson.loads(server.cli("doctor", "--json", "--slo", "ttft_seconds=2s").stdout)
    assert status["engines"][0]["requests_running"] == 7
    assert {target["job"] for target in status["targets"]} == {"vllm", "host"}
    told = {(advice["check"], advice["subject"]) for advice in made["advice"]}
    assert ("targets", "vllm 127.0.0.1:1") in told
    facts = [advice["fact"] for advice in made["advice"] if advice["check"] == "histograms"]
    assert any("the share of ttft_seconds within 2 s lies between 10.0% and 100.0%" in fact for fact in facts)


def _complete(status: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]] | None:
    down = any(target["up"] is False for target in status["targets"])
    return status if down and status.get("engines") and status.get("hosts") else None
