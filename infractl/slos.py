"""Service level objectives of infractl.yaml: section slos, and files in OpenSLO v1 named by openslo."""

from pathlib import Path

import msgspec

from analytics.slo.objective import Slo, objective, of_parts, parse
from infractl.configfile import ConfigFile
from infractl.openslo import read_openslo
from store.errors import ConfigError, UsageError
from store.window import parse_duration


class SloEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One objective of the section slos."""

    name: str
    sli: str
    objective: float | str
    window: str = "30d"
    where: dict[str, str] = {}


def slo_texts(config: ConfigFile) -> tuple[str, ...]:
    """Objectives as the lines that `analyze slo --slos` takes. Raises ConfigError naming file and line."""
    entries: list[SloEntry] = config.section("slos", list[SloEntry]) or []
    files: list[str] = config.section("openslo", list[str]) or []
    found = [_of_entry(entry, f"{config.where('slos', i)}: slos[{i}]") for i, entry in enumerate(entries)]
    folder = config.path.parent if config.path else Path()
    for i, name in enumerate(files):
        read = read_openslo(folder / name, f"{config.where('openslo', i)}: openslo[{i}]")
        found += [_made(one.where, one.name, one.sli, one.target, one.window, one.labels) for one in read]
    names = [slo.name for slo in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{config.where('slos')}: two SLOs are named {twice!r}", "give each a name of its own")
    return tuple(slo.text() for slo in found)


def _of_entry(entry: SloEntry, where: str) -> Slo:
    target = entry.objective if isinstance(entry.objective, str) else repr(entry.objective)
    return _made(where, entry.name, entry.sli, target, entry.window, entry.where)


def _made(where: str, name: str, sli: str, target: str, window: str, labels: dict[str, str]) -> Slo:
    try:
        made = of_parts(name, sli, objective(target), parse_duration(window), tuple(labels.items()))
        return parse(made.text())  # what a line cannot say (a colon in the name, a comma) is refused here
    except UsageError as error:
        raise ConfigError(f"{where}: {error}", error.hint) from error
