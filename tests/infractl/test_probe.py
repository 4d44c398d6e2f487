"""`infractl probe` as people meet it: what it prints, stores, refuses, and with which code it ends."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from infractl.configfile import load
from infractl.probing import configured_probes
from store.database import Database
from store.errors import ConfigError
from tests.collector.probe.server import FIRST_S, NEXT_S, Engine, Script, engine
from tests.infractl.serving import command_line, environment, wait_for
from tests.infractl.test_cli import run
from tests.rules.servers import free_port


@pytest.fixture
def served() -> Iterator[Engine]:
    with engine() as made:
        yield made


def stored(folder: Path, query: str) -> list[dict[str, object]]:
    with Database(folder / "infractl-data") as database:
        found: list[dict[str, object]] = database.sql(query).to_pylist()
        return found


def test_a_round_is_printed_and_stored(served: Engine, tmp_path: Path) -> None:
    url = f"http://{served.address}/v1"
    done = run("probe", url, "--count", "3", "--service", "chat", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = orjson.loads(done.stdout)
    [row] = told["frames"]["urls"]
    assert {key: row[key] for key in ("url", "model", "attempts", "ok", "errors", "new_connections")} == {
        "url": url, "model": "tiny-2", "attempts": 3, "ok": 3, "errors": "", "new_connections": 3,
    }  # fmt: skip
    assert row["output_tokens"] == 9
    times = {time["time"]: time for time in told["frames"]["times"]}
    assert {name: time["n"] for name, time in times.items()} == {"tcp": 3, "ttfb": 3, "ttft": 3, "itl": 6, "e2e": 3}
    assert times["ttft"]["max_s"] >= times["ttft"]["p50_s"] >= FIRST_S
    assert times["e2e"]["p50_s"] >= FIRST_S + 2 * NEXT_S
    assert all(time["p99_s"] is None for time in times.values())
    assert "fewer than 100 values" in told["notes"][0]
    query = "SELECT count(*) n, min(service) service, sum(output_tokens)::INT tokens FROM spans "
    [sums] = stored(tmp_path, query + "WHERE operation = 'chat'")
    assert sums == {"n": 3, "service": "chat", "tokens": 9}
    assert stored(tmp_path, "SELECT count(*) n FROM token_arrivals") == [{"n": 3}]


def test_p99_is_given_from_a_hundred_values_on(served: Engine, tmp_path: Path) -> None:
    args = ("--count", "100", "--no-store", "--format", "json")
    done = run("probe", f"tcp://{served.address}", *args, cwd=tmp_path)
    told = orjson.loads(done.stdout)
    for time in told["frames"]["times"]:
        assert time["n"] == 100
        assert time["p50_s"] <= time["p99_s"] <= time["max_s"]
    assert told["notes"] == []
    assert not (tmp_path / "infractl-data").exists()


def test_failures_are_told_by_code_with_their_traces(served: Engine, tmp_path: Path) -> None:
    served.script.status = 429
    url = f"http://{served.address}/v1"
    done = run("probe", url, "--count", "2", cwd=tmp_path)
    assert done.returncode == 0
    assert "HTTP_429 2" in done.stdout
    assert "2 of 2 attempts" in done.stdout
    [trace, *_] = stored(tmp_path, "SELECT trace_id FROM spans WHERE error_code = 'HTTP_429' ORDER BY ts")
    assert str(trace["trace_id"]) in done.stdout
    assert run("probe", url, "--fail-on-error", "--no-store", cwd=tmp_path).returncode == 1


def test_nothing_that_answers_is_an_unreachable_source(served: Engine, tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}/v1"
    done = run("probe", dead, "--count", "2", "--model", "m", cwd=tmp_path)
    assert done.returncode == 4
    assert "CONNECTION_REFUSED 2" in done.stdout
    assert stored(tmp_path, "SELECT count(*) n FROM spans WHERE operation = 'chat'") == [{"n": 2}]
    assert run("probe", dead, f"tcp://{served.address}", "--no-store", cwd=tmp_path).returncode == 0


def test_every_format_shows_both_tables(served: Engine, tmp_path: Path) -> None:
    served.script = Script(first_s=0, next_s=0)
    for form, marks in (("csv", ("# urls", "# times")), ("md", ("## urls", "## times")), ("table", ("urls", "times"))):
        done = run("probe", f"http://{served.address}/v1", "--no-store", "--format", form, cwd=tmp_path)
        for mark in (*marks, "ttft", "tiny-2"):
            assert mark in done.stdout, form


def test_the_key_of_the_environment_goes_to_endpoints_of_models_unless_a_header_says_who_asks(
    served: Engine, tmp_path: Path
) -> None:
    url, key = f"http://{served.address}", {"OPENAI_API_KEY": "s3cret"}
    done = run("probe", f"{url}/v1", "--count", "1", cwd=tmp_path, **key)
    assert {one.headers.get("authorization") for one in served.asked} == {"Bearer s3cret"}
    assert "s3cret" not in done.stdout + done.stderr
    run("probe", f"{url}/health", "--count", "1", cwd=tmp_path, **key)
    assert "authorization" not in served.asked[-1].headers
    run("probe", f"{url}/v1", "--header", "Authorization=Basic x", "--count", "1", cwd=tmp_path, **key)
    assert served.asked[-1].headers["authorization"] == "Basic x"
    assert "s3cret" not in str(stored(tmp_path, "SELECT * FROM spans"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nonsense",), "no address to probe"),
        ((), "nothing to probe"),
        (("http://h/", "--model", "m"), "no URL asks a model"),
        (("http://h/v1", "--body", "[1]"), "--body"),
        (("http://h/v1", "--header", "x"), "--header"),
        (("http://h/v1", "--every", "0s"), "no time to wait"),
        (("http://h/v1", "--timeout", "x"), "timeout"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_way_out(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    done = run("probe", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize("fault", ["", "hang"])
def test_rounds_are_repeated_until_interrupted(served: Engine, tmp_path: Path, fault: str) -> None:
    options = "--model", "m", "--every", "100ms", "--count", "1", "--format", "csv"
    args = command_line("probe", f"http://{served.address}/v1", *options)
    process = subprocess.Popen(args, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: served.opened >= 3)
        asked = len(served.asked)
        served.script.fault = fault
        wait_for(lambda: len(served.asked) > asked)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert out.count("# urls") >= 2
    assert len(stored(tmp_path, "SELECT 1 FROM spans WHERE operation = 'chat'")) == out.count("# urls")


def configured(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "probes.yaml"
    file.write_text(text)
    return file


def test_probes_of_the_configuration_are_read_with_their_keys(tmp_path: Path) -> None:
    text = "probes:\n- url: http://h:8000/v1\n  every: 60s\n  model: m\n  service: chat\n  count: 2\n- url: tcp://h:1\n"
    first, second = configured_probes(load(configured(tmp_path, text)))
    assert (first.every_s, first.config.model, first.config.service, first.config.count) == (60.0, "m", "chat", 2)
    assert second.config.service == "infractl-probe"
    assert configured_probes(load(configured(tmp_path, "data: x\n"))) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("probes:\n- url: http://h/v1\n  cuont: 1\n", ("line 3", "probes[0].cuont", "count")),
        ("probes:\n- url: http://h/v1\n- url: h\n", ("line 3", "probes[1]", "no address")),
        ("probes:\n- url: http://h/v1\n  every: soon\n", ("line 3", "every", "duration")),
        ("probes:\n- every: 1s\n", ("line 2", "url")),
    ],
)
def test_a_fault_of_the_configuration_names_line_and_key(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        configured_probes(load(configured(tmp_path, text)))
    for word in words:
        assert word in f"{caught.value} {caught.value.hint}"
