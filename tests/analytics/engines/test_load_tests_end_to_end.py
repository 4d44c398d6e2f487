"""Files of load tests through `infractl import` and `infractl analyze engines`, as a user runs them."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from infractl.commands.analyze import command as analyze
from infractl.commands.import_ import command as import_
from tests.collector.files.benchmarks.artefacts import AIPERF, GUIDELLM, VLLM

WHEN = ("--time", "2026-11-30T12:00:00Z")


def answered(data: Path, *files: Path) -> dict[str, Any]:
    for file in files:
        done = CliRunner().invoke(import_, [str(file), *WHEN, "--data", str(data)])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(analyze, ["engines", "--data", str(data), "--since", "90d", "--format", "json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_files_of_three_tools_stand_side_by_side(tmp_path: Path) -> None:
    files = []
    for name, content in (("profile_export_aiperf.json", AIPERF), ("benchmarks.json", GUIDELLM), ("vllm.json", VLLM)):
        files.append(tmp_path / name)
        files[-1].write_text(json.dumps(content))
    found = answered(tmp_path / "d", *files)
    tests = {row["tool"]: row for row in found["frames"]["tests"]}
    assert set(tests) == {"aiperf", "guidellm", "vllm_bench"}
    assert tests["aiperf"]["ttft_p99_s"] == pytest.approx(4.11933)
    assert tests["aiperf"]["e2e_p50_s"] == pytest.approx(5.7999)
    assert tests["vllm_bench"]["ttft_p99_s"] == pytest.approx(0.199)
    assert any("ITL is not the same in aiperf, guidellm, vllm_bench" in note for note in found["notes"])


def test_a_real_load_sweep_gives_its_best_rate(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "data" / "inference_perf_results").glob("vllm__stage_*_lifecycle_metrics.json"))
    found = answered(tmp_path / "d", *files)
    (row,) = found["frames"]["best_rate"]
    assert row["best_rate"] == pytest.approx(92.19, abs=0.01)
    assert row["p99_s"] == pytest.approx(1.38055, abs=1e-4)
