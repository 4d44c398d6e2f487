"""Sections budgets and planned_changes of infractl.yaml, as the lines that `analyze cost` takes."""

from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec

from analytics.cost.budgets import ALERT, Budget, amount, parse
from analytics.cost.changes import Change
from analytics.cost.changes import parse as parse_change
from infractl.configfile import ConfigFile
from store.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


class BudgetEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One entry of the section budgets."""

    name: str
    amount: int | float | str
    currency: str
    period: str = "month"
    where: dict[str, str] = {}
    by: list[str] = []
    alert: float | str = ALERT


class ChangeEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One entry of the section planned_changes."""

    start: Any
    end: Any
    where: dict[str, str] = {}
    note: str = ""
    level: bool = False


def budget_texts(config: ConfigFile) -> tuple[str, ...]:
    """Budgets as the lines that `analyze cost --budgets` takes. Raises ConfigError naming file, line and key."""
    entries: list[BudgetEntry] = config.section("budgets", list[BudgetEntry]) or []
    found: dict[str, str] = {}
    for i, entry in enumerate(entries):
        made = _budget(entry, f"{config.where('budgets', i)}: budgets[{i}]")
        if made.name in found:
            where = config.where("budgets", i, "name")
            raise ConfigError(f"{where}: two budgets are named {made.name!r}", "give each a name of its own")
        found[made.name] = made.text()
    return tuple(found.values())


def _budget(entry: BudgetEntry, where: str) -> Budget:
    try:
        value = amount(str(entry.amount), entry.name)
        alert = entry.alert if isinstance(entry.alert, str) else f"{entry.alert!r}"
        text = Budget(
            entry.name, value, entry.currency, entry.period, tuple(entry.where.items()), tuple(entry.by)
        ).text()
        made = parse(f"{text} alert {alert}")
    except UsageError as error:
        raise ConfigError(f"{where}: {error}", error.hint) from error
    if (made.name, made.where, made.by) != (entry.name, tuple(entry.where.items()), tuple(entry.by)):
        fact = f"{where}: name, where and by cannot hold what a line reads as something else"
        raise ConfigError(fact, "no colon in the name; no ' and ', ' by ', ' where ' or comma in labels and values")
    return made


def change_texts(config: ConfigFile, zone: "ZoneInfo") -> tuple[str, ...]:
    """Planned changes as the lines that `analyze cost --changes` takes; times without an offset are of the zone.

    Raises ConfigError naming file, line and key.
    """
    entries: list[ChangeEntry] = config.section("planned_changes", list[ChangeEntry]) or []
    return tuple(
        _change(entry, f"{config.where('planned_changes', i)}: planned_changes[{i}]", zone).text()
        for i, entry in enumerate(entries)
    )


def _change(entry: ChangeEntry, where: str, zone: "ZoneInfo") -> Change:
    pairs = tuple(entry.where.items())
    try:
        times = parse_change(f"{_time(entry.start)}..{_time(entry.end)}", zone.key)
        made = parse_change(Change(times.start, times.end, pairs, entry.note, entry.level).text())
    except UsageError as error:
        raise ConfigError(f"{where}: {error}", error.hint) from error
    if (made.where, made.note) != (pairs, entry.note):
        fact = f"{where}: where and note cannot hold what a line reads as something else"
        raise ConfigError(fact, "no double quotes; no ' and ' in labels and values")
    return made


def _time(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
