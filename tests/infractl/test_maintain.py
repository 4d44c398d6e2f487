"""`infractl maintain` does the store's own work, with the file or through the server that owns it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

from infractl.main import cli
from infractl.server.upkeep import Upkeep
from store.batch import Batch
from store.database import Database
from store.upkeep import TASKS, upkeep
from tests.infractl.serving import serving

OLD = datetime(2026, 11, 1, 12)


def _spans(start: datetime, count: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trace_id": [f"{i:032x}" for i in range(count)],
            "span_id": [f"{i:016x}" for i in range(count)],
            "ts": [start + timedelta(minutes=i) for i in range(count)],
            "service": ["chat"] * count,
            "operation": ["chat"] * count,
            "e2e_s": [1.0] * count,
        }
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    now = datetime.now(UTC).replace(tzinfo=None)
    with Database(tmp_path / "data") as database:
        database.append([Batch("t", {"spans": _spans(now - timedelta(days=2), 180)})])
    return tmp_path / "data"


def _run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def test_all_tasks_run_and_no_row_is_lost(data: Path):
    done = _run("maintain", "--data", str(data))
    assert done.exit_code == 0, done.output
    assert all(name in done.output for name in TASKS)
    assert "failed" not in done.output
    assert list((data / "lake" / "spans").rglob("*.parquet"))
    with Database(data) as database:
        assert database.counts()["spans"] == 180
        assert database.counts()["rollup_requests"] > 0


def test_verify_says_that_all_is_well_and_names_what_is_damaged(data: Path):
    _run("maintain", "--seal", "--data", str(data))
    assert "are as they were written" in _run("maintain", "--verify", "--data", str(data)).output
    file = next((data / "lake" / "spans").rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[100] ^= 0xFF  # in a page: the footer, which is read at every start, is well
    file.write_bytes(content)
    broken = _run("maintain", "--verify", "--data", str(data))
    assert broken.exit_code == 3
    assert file.name in broken.output


def test_a_backup_is_restored_elsewhere(data: Path, tmp_path: Path):
    assert _run("maintain", "--backup", str(tmp_path / "copy"), "--data", str(data)).exit_code == 0
    restored = _run("maintain", "--restore", str(tmp_path / "copy"), "--data", str(tmp_path / "new"))
    assert restored.exit_code == 0, restored.output
    with Database(tmp_path / "new") as database:
        assert database.counts()["spans"] == 180


def test_a_rebuild_makes_the_same_rows(data: Path):
    _run("maintain", "--data", str(data))
    done = _run("maintain", "--rebuild", "--data", str(data))
    assert done.exit_code == 0, done.output
    with Database(data) as database:
        assert database.counts()["spans"] == 180


def test_a_running_server_does_it_and_tells_status_and_metrics(tmp_path: Path):
    with serving(tmp_path) as server:
        done = _run("maintain", "--seal", "--verify", "--data", str(server.data), "--server", server.url)
        assert done.exit_code == 0, done.output
        assert "nothing to seal" in done.output
        unknown = httpx.post(server.url + "/api/v1/maintain", json={"tasks": ["sael"]}, trust_env=False)
        assert unknown.status_code == 400
        assert "did you mean seal?" in unknown.text
        page = httpx.get(server.url + "/metrics", trust_env=False).text
        assert 'infractl_store_bytes{part="journal"}' in page
        assert 'infractl_upkeep_last_success_timestamp_seconds{task="seal"}' in page
        status = httpx.get(server.url + "/api/v1/status", trust_env=False).json()
        assert status["store"]["free_bytes"] > 0
        assert "memory" in _run("status", "--data", str(server.data), "--server", server.url).output


def test_a_task_that_fails_is_told_and_the_next_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from store.lake import seal

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(seal, "seal", broken)
    with Database(tmp_path) as database:
        first, second = upkeep(database, datetime.now(UTC), ["seal", "retention"])
    assert "No space left" in str(first.error)
    assert second.error is None


def test_the_thread_does_each_task_and_keeps_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import time

    from infractl.server import upkeep as module

    monkeypatch.setattr(module, "FIRST_S", 0.0)
    with Database(tmp_path) as database:
        running = Upkeep(database)
        running.start()
        patience = time.monotonic() + 30
        while set(running.done) != set(TASKS) and time.monotonic() < patience:
            time.sleep(0.05)
        running.stop()
        assert {name: done.error for name, (_, done) in running.done.items()} == dict.fromkeys(TASKS)
        assert json.dumps({str(k): str(v) for k, v in running.gauges().items()})
