"""A collector without a store loses nothing, sends in order, and stores nothing twice."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from infractl import pushing
from infractl.main import cli
from infractl.pushing import Pusher
from store.batch import Batch
from store.database import Database
from store.errors import UsageError
from tests.infractl.serving import free_port, serving

NOON = datetime(2026, 11, 30, 12)
LIMIT = 1 << 30


def _samples(first: int, count: int = 10) -> Batch:
    rows = {
        "series_id": [1] * count,
        "ts": [NOON + timedelta(seconds=first + i) for i in range(count)],
        "value": [float(first + i) for i in range(count)],
    }
    return Batch("test", {"metric_samples": pl.DataFrame(rows, schema_overrides={"series_id": pl.UInt64})})


def _until(reached: Callable[[], bool]) -> None:
    patience = time.monotonic() + 30
    while not reached() and time.monotonic() < patience:
        time.sleep(0.05)
    assert reached()


def _values(data: Path) -> list[float]:
    with Database(data) as database:
        return sorted(database.table("metric_samples")["value"])


def test_what_was_spooled_while_the_server_was_away_comes_in_order_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(pushing, "PATIENCE_S", 0.2)
    away = Pusher(f"http://127.0.0.1:{free_port()}", tmp_path / "spool", LIMIT, {})
    for n in range(120):
        away.append([_samples(10 * n)])
    away.close()
    assert "120 batches wait" in capsys.readouterr().err
    with serving(tmp_path / "server") as server:
        back = Pusher(server.url, tmp_path / "spool", LIMIT, {})
        back.append([_samples(1200)])
        _until(lambda: back.waiting == 0)
        back.close()
        third = Pusher(server.url, tmp_path / "spool", LIMIT, {})
        assert third.waiting == 0  # nothing is sent again after a restart
        third.append([_samples(1205)])
        _until(lambda: third.waiting == 0)
        third.close()
    assert _values(server.data) == [float(i) for i in range(1215)]
    with Database(server.data) as database:
        assert database.table("ingest_batch").sort("sequence", "min_ts")["min_ts"].is_sorted()


def test_a_batch_that_the_server_refuses_is_kept_aside_and_holds_nothing_up(tmp_path: Path):
    bad = Batch("test", {"metric_samples": pl.DataFrame({"no_such_column": [1]})})
    with serving(tmp_path / "server") as server:
        pusher = Pusher(server.url, tmp_path / "spool", LIMIT, {})
        pusher.append([_samples(0), bad, _samples(10)])
        _until(lambda: pusher.waiting == 0)
        pusher.close()
        assert pusher.refused == 1
        assert len(list((tmp_path / "spool" / "refused").iterdir())) == 1
    assert len(_values(server.data)) == 20


def test_a_full_spool_counts_what_it_cannot_take_and_tells_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pushing, "PATIENCE_S", 0.1)
    small = Pusher(f"http://127.0.0.1:{free_port()}", tmp_path / "spool", 4000, {})
    stored = [sum(small.append([_samples(10 * n)])[0].stored.values()) for n in range(10)]
    small.close()
    assert 0 < sum(stored) < 100
    with serving(tmp_path / "server") as server:
        back = Pusher(server.url, tmp_path / "spool", 4000, {})
        back._lost.update(small._lost)
        _until(lambda: back.waiting == 0)
        back.append([_samples(500)])
        _until(lambda: back.waiting == 0)
        back.close()
    with Database(server.data) as database:
        drops = database.table("ingest_drops")
        assert drops["reason"].to_list() == [pushing.SPOOL_FULL]
        assert drops["rows"].sum() + sum(stored) == 100


def test_collect_once_without_a_server_spools_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pushing, "PATIENCE_S", 0.1)
    url = f"http://127.0.0.1:{free_port()}"
    done = CliRunner().invoke(cli, ["collect", "host", "--once", "--push", url, "--data", str(tmp_path)])
    assert done.exit_code == 4
    assert "wait in" in done.output
    with serving(tmp_path / "server") as server:
        again = CliRunner().invoke(cli, ["collect", "host", "--once", "--push", server.url, "--data", str(tmp_path)])
        assert again.exit_code == 0, again.output
    with Database(server.data) as database:
        assert database.sql("SELECT count(DISTINCT ts) AS n FROM metric_samples").column(0)[0].as_py() == 2


def test_a_header_must_be_one():
    assert pushing.headers(["Authorization: Bearer x"]) == {"Authorization": "Bearer x"}
    with pytest.raises(UsageError):
        pushing.headers(["Authorization"])
