"""Own prices in infractl.yaml, imported lists, and what status and doctor say of models without a price."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from infractl.commands.config import command as config
from infractl.commands.doctor import command as doctor
from infractl.commands.import_ import command as import_
from infractl.commands.status import command as status
from infractl.configfile import load
from infractl.pricing import own_prices
from store.batch import Batch
from store.database import Database
from store.errors import ConfigError

AT = datetime(2026, 11, 30, 12)
MODELS = (("openai", "gpt-4o"), ("openai", "m-listed"), ("openai", "m-own"), ("vllm", "m-unknown"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {
            "trace_id": f"{number:032x}", "span_id": f"{number:016x}", "ts": AT + timedelta(seconds=number),
            "operation": "chat", "provider": provider, "model": model, "input_tokens": 1000, "output_tokens": 10,
            "service": "chat",
        }
        for number, (provider, model) in enumerate(MODELS, 1)
    ]  # fmt: skip
    from store.tables import SPANS

    with Database(tmp_path / "data") as database:
        database.append([Batch("test", {"spans": SPANS.conform(pl.DataFrame(rows))})])
    (tmp_path / "mine.yaml").write_text("- {model: m-own, input_per_1m: 1, output_per_1m: 2}\n")
    (tmp_path / "infractl.yaml").write_text("prices:\n  file: mine.yaml\n")
    entry = {"litellm_provider": "openai", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}
    (tmp_path / "list.json").write_text(json.dumps({"m-listed": entry}))
    return tmp_path


def run(folder: Path, command: object, *args: str) -> Result:
    result = CliRunner().invoke(command, [*args, "--data", str(folder / "data")])  # type: ignore[arg-type]
    assert result.exception is None, result.exception
    return result


def test_a_list_imported_again_adds_nothing_and_a_changed_price_keeps_the_old_one(folder: Path) -> None:
    for _ in range(2):
        run(folder, import_, str(folder / "list.json"))
    text = (folder / "list.json").read_text()
    (folder / "list.json").write_text(text.replace("1e-06", "3e-06"))
    line = json.loads(run(folder, import_, str(folder / "list.json"), "--format", "json").stdout)[0]
    assert (line["kind"], line["stored"], line["duplicates"]) == ("prices", 1, 0)
    with Database(folder / "data") as database:
        found = database.table("prices").sort("valid_from").select("valid_from", "input_per_1m").rows()
    assert [figure for _, figure in found] == [1.0, 3.0]
    assert found[0][0] == datetime(1970, 1, 1)
    assert abs(datetime.now(UTC).replace(tzinfo=None) - found[1][0]) < timedelta(minutes=10)


def test_status_says_whose_price_each_model_has(folder: Path) -> None:
    run(folder, import_, str(folder / "list.json"))
    told = json.loads(run(folder, status, "--json", "--config", str(folder / "infractl.yaml")).stdout)["prices"]
    assert {row["model"]: row["source"] for row in told} == {
        "gpt-4o": "genai-prices", "m-listed": "imported", "m-own": "override", "m-unknown": "unpriced",
    }  # fmt: skip
    assert "unpriced" in run(folder, status).stdout


def test_the_doctor_names_unpriced_models_with_the_entry_to_add(folder: Path) -> None:
    made = json.loads(run(folder, doctor, "--json", "--config", str(folder / "infractl.yaml")).stdout)
    advice = {a["subject"]: a for a in made["advice"] if a["check"] == "unpriced"}
    assert sorted(advice) == ["m-listed", "m-unknown"]
    assert "1 requests, 1010 tokens are unpriced" in advice["m-unknown"]["fact"]
    lines = "\n".join(advice["m-unknown"]["lines"])
    (folder / "more.yaml").write_text(lines.replace("PRICE", "0.5"))
    assert [entry.names for entry in own_prices(load(folder / "more.yaml"))] == [("m-unknown",)]
    (folder / "more.yaml").write_text(lines)
    with pytest.raises(ConfigError, match="'PRICE' is no number"):
        own_prices(load(folder / "more.yaml"))


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("prices:\n  fil: x\n", "line 2: unknown key 'prices.fil'", "did you mean file?"),
        (
            "prices:\n  entries:\n    - model: m\n      inptu_per_1m: 1\n",
            "line 4: prices.entries[0]: unknown key",
            "input_per_1m",
        ),
        ("prices:\n  entries:\n    - model: m\n", "line 3: prices.entries[0]: no price", "input_per_1m"),
        (
            "prices:\n  file: wrong.yaml\n",
            "wrong.yaml:2 entry 1: unknown key 'ouput_per_1m'",
            "did you mean output_per_1m?",
        ),
        ("prices:\n  file: none.yaml\n", "cannot read", "check the path"),
    ],
)
def test_a_fault_in_own_prices_is_named_with_file_and_line(folder: Path, text: str, fact: str, hint: str) -> None:
    (folder / "wrong.yaml").write_text("- model: m\n  ouput_per_1m: 1\n")
    (folder / "infractl.yaml").write_text(text)
    error = CliRunner().invoke(config, ["validate", str(folder / "infractl.yaml")]).exception
    assert isinstance(error, ConfigError)
    assert fact in str(error)
    assert hint in error.hint


def test_config_show_has_the_section(folder: Path) -> None:
    result = CliRunner().invoke(config, ["show", "--config", str(folder / "infractl.yaml")])
    assert "mine.yaml" in result.stdout
