"""The command line as people and scripts meet it: exit codes, streams, one clear line per fault."""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from infractl.commands.catalog import COMMANDS
from store.batch import Batch
from store.database import Database
from store.tables import TOKEN_ARRIVALS
from tests.store.test_database import spans


def run(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infractl.main", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with Database(tmp_path / "data") as database:
        database.append([Batch("t", {"spans": spans(3)}, {"no_time": 2})])
    return tmp_path


def test_help_names_every_command(tmp_path: Path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"  {name} " in done.stdout


def test_help_imports_nothing_heavy(tmp_path: Path):
    code = (
        "import sys\nfrom infractl.main import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars','duckdb','numpy','scipy','dash','plotly','pyarrow','yaml','grpc','opentelemetry'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert "HEAVY []" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_complete_help(tmp_path: Path, name: str):
    done = run(name, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_sql_formats_agree(stored: Path):
    query = "SELECT ts, ttft_s, service FROM spans ORDER BY ts"
    csv = run("sql", query, "--data", "data", "--format", "csv", cwd=stored).stdout
    assert csv.splitlines() == ["ts,ttft_s,service"] + [f"2026-11-30T12:00:0{i}Z,{i},chat" for i in range(3)]
    rows = orjson.loads(run("sql", query, "--data", "data", "--format", "json", cwd=stored).stdout)
    assert rows[2] == {"ts": "2026-11-30T12:00:02Z", "ttft_s": 2.0, "service": "chat"}
    table = run("sql", query, "--data", "data", cwd=stored).stdout.split()
    assert [word for word in csv.replace(",", " ").split() if word not in table] == []


def test_status_counts_rows_and_refusals(stored: Path):
    status = orjson.loads(run("status", "--json", "--data", "data", cwd=stored).stdout)
    assert status["tables"]["spans"] == 3
    assert status["drops"] == [{"source": "t", "reason": "no_time", "rows": 2}]
    assert status["lock"]["server"] is None


def test_export_writes_what_was_stored(stored: Path):
    import polars as pl

    assert run("export", "spans", "--output", "out.parquet", "--data", "data", cwd=stored).returncode == 0
    assert pl.read_parquet(stored / "out.parquet")["ttft_s"].to_list() == [0.0, 1.0, 2.0]
    window = ("--window", "2026-11-30T12:00:01..2026-11-30T13:00")
    assert run("export", "spans", "--output", "out.csv", *window, "--data", "data", cwd=stored).returncode == 0
    assert pl.read_csv(stored / "out.csv").height == 2


def test_two_columns_of_one_name_are_refused_with_the_remedy(stored: Path):
    done = run("sql", "SELECT a.ts, b.ts FROM spans a JOIN spans b USING (span_id)", "--data", "data", cwd=stored)
    assert done.returncode == 2
    assert "two columns are called 'ts'" in done.stderr


def test_lists_are_whole_in_files_and_short_in_tables(tmp_path: Path):
    import polars as pl

    at = datetime(2026, 11, 30, 12)
    frame = pl.DataFrame({"trace_id": ["t"], "span_id": ["s"], "ts": [at], "offsets_us": [list(range(9))]})
    with Database(tmp_path / "data") as database:
        database.append([Batch("t", {"token_arrivals": TOKEN_ARRIVALS.conform(frame)})])
    query = "SELECT offsets_us FROM token_arrivals"
    assert "[0, 1, 2, 3, 4, 5, … 9 in all]" in run("sql", query, "--data", "data", cwd=tmp_path).stdout
    rows = orjson.loads(run("sql", query, "--data", "data", "--format", "json", cwd=tmp_path).stdout)
    assert rows == [{"offsets_us": list(range(9))}]
    assert run("export", "token_arrivals", "--output", "a.csv", "--data", "data", cwd=tmp_path).returncode == 0
    assert orjson.loads(pl.read_csv(tmp_path / "a.csv")["offsets_us"][0]) == list(range(9))
    assert run("export", "token_arrivals", "--output", "a.parquet", "--data", "data", cwd=tmp_path).returncode == 0
    assert pl.read_parquet(tmp_path / "a.parquet")["offsets_us"].to_list() == [list(range(9))]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("sqll",), 2, "did you mean sql?"),
        (("status", "--data", "nowhere"), 3, "nothing is stored in nowhere"),
        (("sql", "DROP TABLE spans", "--data", "data"), 2, "one SELECT"),
        (("sql", "SELECT * FROM spanz", "--data", "data"), 2, "spanz"),
        (("analyze", "p98", "--data", "data"), 2, "did you mean p99?"),
        (("analyze", "--data", "data"), 2, "name an analysis"),
        (("analyze", "overview", "--since", "yesterday", "--data", "data"), 2, "'yesterday' is not a duration"),
        (("analyze", "overview", "--where", "service", "--data", "data"), 2, "K=V"),
        (("export", "spanz", "--output", "x.csv", "--data", "data"), 2, "no table 'spanz'"),
        (("export", "spans", "--output", "x.xls", "--data", "data"), 2, ".parquet or .csv"),
        (("status", "--server", "http://127.0.0.1:9"), 4, "does not answer"),
        (("serve", "--base-path", "infra"), 2, "/infra/"),
        (("serve", "--config", "none.yaml"), 2, "none.yaml"),
        (("serve", "--port", "many"), 2, "many"),
    ],
)
def test_a_fault_is_one_line_with_a_hint_and_its_exit_code(stored: Path, args: tuple[str, ...], code: int, words: str):
    done = run(*args, cwd=stored)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines[0].startswith("infractl: error: ")
    assert words in done.stderr
    assert len(lines) <= 2
    assert "Traceback" not in done.stderr


def test_a_locked_file_names_its_owner(stored: Path):
    with Database(stored / "data"):
        done = run("status", "--data", "data", cwd=stored)
    assert done.returncode == 3
    assert f"in use by process {os.getpid()}" in done.stderr


def test_a_command_waits_for_another_to_let_go_of_the_file(stored: Path):
    import threading

    database = Database(stored / "data")
    threading.Timer(1.5, database.close).start()
    assert run("status", "--data", "data", cwd=stored).returncode == 0


def test_the_file_and_the_environment_give_defaults(stored: Path):
    (stored / "infractl.yaml").write_text("data: data\nsql:\n  format: csv\n")
    assert run("sql", "SELECT 1 AS x", cwd=stored).stdout == "x\n1\n"
    assert run("sql", "SELECT 1 AS x", cwd=stored, INFRACTL_SQL_FORMAT="json").stdout == '[{"x":1}]\n'


def test_the_file_sets_parameters_of_one_analysis(stored: Path):
    (stored / "infractl.yaml").write_text(
        "data: data\nanalyze:\n  format: json\n  p99: {tau: 0.9, where: [service=chat]}\n"
    )
    assert run("config", "validate", cwd=stored).returncode == 0
    done = run("analyze", "p99", cwd=stored)
    assert orjson.loads(done.stdout)["params"]["tau"] == 0.9
    assert orjson.loads(done.stdout)["params"]["where"] == [["service", "chat"]]
    (stored / "infractl.yaml").write_text("data: data\nanalyze:\n  p99: {tua: 0.9}\n")
    done = run("analyze", "p99", cwd=stored)
    assert done.returncode == 2
    assert "line 3: unknown key 'analyze.p99.tua'" in done.stderr
    assert "did you mean tau?" in done.stderr


def test_config_init_validate_show(tmp_path: Path):
    assert run("config", "init", cwd=tmp_path).returncode == 0
    assert run("config", "init", cwd=tmp_path).returncode == 2
    assert run("config", "validate", cwd=tmp_path).returncode == 0
    shown = run("config", "show", cwd=tmp_path).stdout
    assert "infractl.yaml, line" in shown
    assert "default" in shown


def test_config_validate_finds_a_wrong_option(tmp_path: Path):
    (tmp_path / "infractl.yaml").write_text("serve:\n  prot: 80\n")
    done = run("config", "validate", cwd=tmp_path)
    assert done.returncode == 2
    assert "line 2: unknown key 'serve.prot'" in done.stderr
    assert "did you mean port?" in done.stderr


@pytest.mark.parametrize(
    "option",
    [
        "--tau=2",
        "--tau=0",
        "--tau=x",
        "--tail-rows=0",
        "--resamples=-1",
        "--seed=-1",
        "--bucket=0s",
        "--bucket=soon",
        "--bucket=1ms",
    ],
)
def test_a_parameter_out_of_range_is_refused_with_its_range(stored: Path, option: str):
    done = run("analyze", "p99", option, "--data", "data", cwd=stored)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("infractl: error: ")
    assert "Traceback" not in done.stderr
