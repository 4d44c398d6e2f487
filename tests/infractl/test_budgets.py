"""Sections budgets and planned_changes: what they give an analysis, and how a mistake is named."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from infractl.budgets import budget_texts, change_texts
from infractl.configfile import ConfigFile, load
from infractl.settings import check_top_level
from store.errors import ConfigError

UTC = ZoneInfo("UTC")


def config(tmp_path: Path, text: str) -> ConfigFile:
    path = tmp_path / "infractl.yaml"
    path.write_text(text)
    made = load(path)
    check_top_level(made)
    return made


def test_budgets_become_lines(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "budgets:\n"
        "  - {name: llm, amount: 1999.99, currency: USD, where: {service: chat}, by: [tenant, env], alert: 90%}\n"
        '  - {name: all, amount: "1e6", currency: eur, period: year, alert: 0.5}\n',
    )
    assert budget_texts(made) == (
        "llm: 1999.99 USD per month where service=chat by tenant and env alert 90%",
        "all: 1000000 EUR per year alert 50%",
    )
    assert budget_texts(ConfigFile()) == ()


@pytest.mark.parametrize(
    ("entry", "line", "why"),
    [
        ("{name: a, amount: 5}", 2, "missing required field currency"),
        ("{name: a, amount: 5, currency: USD, perod: year}", 2, "unknown key 'budgets[0].perod'"),
        ("{name: a, amount: -5, currency: USD}", 2, "amount cannot be '-5'"),
        ("{name: a, amount: 5, currency: Dollar}", 2, "currency cannot be 'Dollar'"),
        ("{name: a, amount: 5, currency: USD, period: week}", 2, "period cannot be 'week'"),
        ("{name: a, amount: 5, currency: USD, alert: 300%}", 2, "alert cannot be '300%'"),
        ('{name: "a: b", amount: 5, currency: USD}', 2, "budgets[0]: "),
        ("{name: a, amount: 5, currency: USD, where: {k: x by y}}", 2, "cannot hold"),
        (
            "{name: a, amount: 5, currency: USD}\n  - {name: a, amount: 6, currency: USD}",
            3,
            "two budgets are named 'a'",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_key_and_remedy(tmp_path: Path, entry: str, line: int, why: str) -> None:
    with pytest.raises(ConfigError) as told:
        budget_texts(config(tmp_path, f"budgets:\n  - {entry}\n"))
    assert f"infractl.yaml, line {line}: " in str(told.value) or f"line {line}" in str(told.value)
    assert why in str(told.value)
    assert told.value.hint


def test_planned_changes_become_lines_in_utc_whatever_yaml_makes_of_their_times(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "planned_changes:\n"
        "  - {start: 2026-12-01T00:00Z, end: 2026-12-03T00:00Z, where: {service: chat}, note: migration}\n"
        "  - {start: 2026-12-01, end: 2026-12-03, level: true}\n"
        "  - {start: 2026-12-01 06:00:00, end: 2026-12-01 08:00:00+01:00}\n",
    )
    assert change_texts(made, ZoneInfo("Europe/Berlin")) == (
        '2026-12-01T00:00:00Z..2026-12-03T00:00:00Z service=chat "migration"',
        "2026-11-30T23:00:00Z..2026-12-02T23:00:00Z level",
        "2026-12-01T05:00:00Z..2026-12-01T07:00:00Z",
    )


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{start: 2026-12-01}", "missing required field end"),
        ("{start: soon, end: later}", "is not a time"),
        ("{start: 2026-12-03, end: 2026-12-01}", "ends before it starts"),
        ("{start: 2026-12-01, end: 2026-12-03, note: 'a \"b\"'}", "planned_changes[0]"),
        ("{start: 2026-12-01, end: 2026-12-03, wher: {a: b}}", "unknown key 'planned_changes[0].wher'"),
    ],
)
def test_a_mistake_in_a_change_is_named_too(tmp_path: Path, entry: str, why: str) -> None:
    with pytest.raises(ConfigError) as told:
        change_texts(config(tmp_path, f"planned_changes:\n  - {entry}\n"), UTC)
    assert "line 2" in str(told.value)
    assert why in str(told.value)
    assert told.value.hint
