"""`infractl import`: what it stores, says and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from infractl.commands.import_ import command
from store.database import Database
from store.errors import InfractlError, SourceError, UsageError

LOG = "ts,first_ms,latency_s,status\n2026-11-30 12:00:00,250,2,200\n2026-11-30 12:00:01,0,0,429\nnever,1,1,200\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.csv"
    path.write_text(LOG)
    return path


def run(data: Path, *args: object) -> Result:
    result = CliRunner().invoke(command, [*map(str, args), "--data", str(data), "--format", "json"])
    assert result.exception is None or isinstance(result.exception, InfractlError | SystemExit)
    return result


def imported(data: Path, *args: object) -> list[dict[str, Any]]:
    result = run(data, *args)
    assert result.exit_code == 0, result.output
    lines: list[dict[str, Any]] = json.loads(result.stdout)
    return lines


def test_a_file_is_stored_and_the_second_time_is_a_duplicate(tmp_path: Path, log: Path) -> None:
    args = (log, "--map", "ttft_s=first_ms", "--label", "service=chat")
    [line] = imported(tmp_path / "data", *args)
    assert line == {
        "file": str(log), "kind": "requests", "stored": 2, "duplicates": 0, "refused": 1,
        "from": "2026-11-30T12:00:00Z", "to": "2026-11-30T12:00:01Z",
    }  # fmt: skip
    assert [(s["stored"], s["duplicates"]) for s in imported(tmp_path / "data", *args)] == [(0, 2)]
    with Database(tmp_path / "data") as store:
        rows = store.table("spans").select("service", "ttft_s", "e2e_s", "error_code").rows()
        drops = store.table("ingest_drops").select("source", "reason", "rows").rows()
    assert rows == [("chat", 0.25, 2.0, None), ("chat", None, None, "HTTP_429")]
    assert drops == [("import:gateway.csv", "unreadable time", 1)] * 2


def test_talk_goes_to_stderr_and_says_how_the_file_was_read(tmp_path: Path, log: Path) -> None:
    talk = run(tmp_path / "data", log, "--map", "ttft_s=first_ms").stderr
    assert "mapping: ts=ts, e2e_s=latency_s (s), status=status, ttft_s=first_ms (ms)" in talk
    assert f"refused 1: unreadable time (first: {log}:4)" in talk


def test_a_broken_file_stores_nothing_of_itself_and_all_of_those_before_it(tmp_path: Path, log: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"ts": 1796040000, "ttft_s": 1}\n{"ts": 1796040001, "ttft_s": 1}\n{"ts"\n')
    result = run(tmp_path / "data", log, broken)
    assert isinstance(result.exception, SourceError)
    assert str(result.exception).startswith(f"{broken}:3: broken JSON")
    assert [line["file"] for line in json.loads(result.stdout)] == [str(log)]
    with Database(tmp_path / "data") as store:
        assert store.counts()["spans"] == 2


@pytest.mark.parametrize(
    ("args", "fact", "hint"),
    [
        (("--map", "ttft=first_ms"), "no field of a request is called 'ttft'", "did you mean ttft_s?"),
        (("--map", "ttft_s"), "--map 'ttft_s' is no pair", "write it like --map name=value"),
        (("--unit", "e2e_s=msec"), "unknown unit 'msec'", "did you mean ms"),
        (("--time-zone", "Berlin"), "no time zone is called 'Berlin'", "Europe/Berlin"),
        (("--start", "noon"), "'noon' is not a time", "2026-11-30"),
    ],
)
def test_a_wrong_option_names_the_next_step(
    tmp_path: Path, log: Path, args: tuple[str, ...], fact: str, hint: str
) -> None:
    error = run(tmp_path / "data", log, *args).exception
    assert isinstance(error, UsageError)
    assert fact in str(error)
    assert hint in error.hint


def test_the_kind_can_be_stated(tmp_path: Path, log: Path) -> None:
    [line] = imported(tmp_path / "data", log, "--as", "series")
    assert (line["kind"], line["stored"]) == ("series", 6)
