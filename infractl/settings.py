"""Options shared by commands, and how the configuration file becomes their defaults."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from infractl.commands.catalog import COMMANDS
from infractl.configfile import (
    DEFAULT_FILE,
    AnalysisSchedule,
    ConfigFile,
    Content,
    Telemetry,
    dotted,
    load,
    nearest_key,
)
from store.errors import ConfigError, UsageError
from store.zone import DEFAULT, zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

F = TypeVar("F", bound=Callable[..., Any])

GLOBAL_KEYS = ("data", "server")
SECTIONS = (
    "global", "scrape_configs", "collectors", "kv_events", "probes", "prices", "content", "telemetry", "analyses",
    "slos", "openslo", "budgets", "planned_changes", "store",
)  # fmt: skip
ELSEWHERE = {
    "rule_files": "infractl rules build writes rules for your Prometheus, which is where they are named",
    "scrape_config_files": "move their jobs to scrape_configs",
    "alerting": "infractl rules push --alertmanager-url URL sends alerts where no Prometheus does",
    "remote_write": "infractl receives remote write, see docs/sources/push.md",
    "remote_read": "infractl asks no other store; let that one send by remote write, see docs/sources/push.md",
    "storage": "infractl stores below data, and the command line of your Prometheus says where that does",
    "tracing": "infractl's own traces go to telemetry.endpoint",
    "otlp": "infractl receives OTLP on serve.otlp_http_port and serve.otlp_grpc_port",
    "runtime": "it is about Go",
}
"""Sections of a Prometheus file that infractl does not read, and where in infractl what they are about is."""
ZONE_VARIABLE = "INFRACTL_TIME_ZONE"
DEFAULT_DATA = Path("infractl-data")


def config_option(command: F) -> F:
    """Add --config FILE, read before the other options, so that its keys are their defaults."""
    return click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="INFRACTL_CONFIG",
        is_eager=True,
        callback=_apply,
        help=f"Configuration file [default: {DEFAULT_FILE} where it exists]",
    )(command)


def data_option(command: F) -> F:
    """Add --data DIR, the directory that holds everything stored."""
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_DATA,
        envvar="INFRACTL_DATA",
        show_default=True,
        help="Directory with the DuckDB file.",
    )(command)


def server_option(command: F) -> F:
    """Add --server URL, to ask a running serve instead of opening the file."""
    return click.option(
        "--server",
        metavar="URL",
        envvar="INFRACTL_SERVER",
        help="Ask this running infractl serve instead of opening --data.",
    )(command)


def store_options(command: F) -> F:
    """Add --config, --data and --server."""
    return config_option(data_option(server_option(command)))


def zone_option(command: F) -> F:
    """Add --time-zone ZONE, the report zone: of printed times, of days, and of times given without an offset."""
    return click.option(
        "--time-zone",
        metavar="ZONE",
        default=DEFAULT.key,
        envvar=ZONE_VARIABLE,
        show_default=True,
        callback=lambda _context, _option, name: zone(name),
        help="Report zone: of printed times, of days, and of times given without an offset.",
    )(command)


def report_zone() -> "ZoneInfo":
    """Return the report zone of a command that has no --time-zone of that meaning."""
    return report_zone_of(current_config())


def report_zone_of(config: ConfigFile) -> "ZoneInfo":
    """Return the report zone by environment and file."""
    given = config.values.get("global") or {}
    return zone(os.environ.get(ZONE_VARIABLE) or given.get("time_zone") or DEFAULT.key)


def check_zone(config: ConfigFile) -> None:
    """Refuse a global.time_zone that is none, naming file, line and the nearest."""
    given = config.values.get("global") or {}
    try:
        zone(str(given.get("time_zone", DEFAULT.key)))
    except UsageError as error:
        raise ConfigError(f"{config.where('global', 'time_zone')}: global.time_zone: {error}", error.hint) from error


def current_config() -> ConfigFile:
    """Return the configuration file of the running command (empty where there is none)."""
    found: ConfigFile = click.get_current_context().meta.get("infractl.config", ConfigFile())
    return found


def content(config: ConfigFile) -> Content:
    """Section content."""
    found: Content | None = config.section("content", Content)
    return found or Content()


def telemetry(config: ConfigFile) -> Telemetry:
    """Section telemetry."""
    found: Telemetry | None = config.section("telemetry", Telemetry)
    return found or Telemetry()


def schedules(config: ConfigFile, reported: "ZoneInfo | None" = None) -> dict[str, AnalysisSchedule]:
    """Section analyses: schedule by analysis name; an unknown name is refused.

    Parameters that other sections give are filled in, and the report zone (of the file unless another is given).
    """
    from analytics.catalog import ANALYSES

    found: dict[str, AnalysisSchedule] = config.section("analyses", dict[str, AnalysisSchedule]) or {}
    for name in found:
        if name not in ANALYSES:
            where = config.where("analyses", name)
            raise ConfigError(f"{where}: there is no analysis {name!r}", nearest_key(name, ANALYSES))
    made = {name: found.get(name, AnalysisSchedule()) for name in ANALYSES}
    within = reported or report_zone_of(config)
    for name, one in made.items():
        params = {**configured(config, name, within), **one.params}
        made[name] = AnalysisSchedule(one.every, one.since, params)
    return made


def configured(config: ConfigFile, name: str, within: "ZoneInfo") -> dict[str, Any]:
    """Parameters that an analysis has from sections of the file of their own, and the report zone if it takes one."""
    from dataclasses import fields

    from analytics.catalog import load as load_analysis

    found: dict[str, Any] = {}
    known = {field.name for field in fields(load_analysis(name).params)}
    if "zone" in known:
        found["zone"] = within.key
    if "slos" in known:
        from infractl.slos import slo_texts

        found["slos"] = slo_texts(config)
    if known & {"budgets", "changes"}:
        from infractl.budgets import budget_texts, change_texts

        found |= {"budgets": budget_texts(config), "changes": change_texts(config, within)}
    if "exclude" in known:  # what a person has said is no anomaly holds wherever the question is asked
        given: dict[str, AnalysisSchedule] = config.section("analyses", dict[str, AnalysisSchedule]) or {}
        found["exclude"] = given[name].params.get("exclude", ()) if name in given else ()
    return {key: value for key, value in found.items() if key in known}


def check_top_level(config: ConfigFile) -> None:
    """Refuse a top-level key nobody reads, naming the nearest; of a Prometheus file's, what to do instead."""
    foreign = [key for key in config.values if key in ELSEWHERE and config.values[key]]
    if foreign:
        raise _elsewhere(config, foreign)
    known = {*GLOBAL_KEYS, *SECTIONS, *COMMANDS}
    for key in config.values:
        if key not in known and key not in ELSEWHERE:
            raise ConfigError(f"{config.where(key)}: unknown key {key!r}", nearest_key(key, known))


def _elsewhere(config: ConfigFile, keys: list[str]) -> ConfigError:
    """Return the error for sections that only Prometheus reads: all at once, so that a file is mended at once."""
    first, *others = keys
    more = "".join(f", {key} (line {config.lines[(key,)]}) too" for key in others)
    instead = "; ".join(f"{key}: {ELSEWHERE[key]}" for key in keys)
    return ConfigError(f"{config.where(first)}: {first} is for Prometheus itself{more}", f"take it out. {instead}")


def command_defaults(config: ConfigFile, command: click.Command, path: tuple[str, ...]) -> dict[str, Any]:
    """Options of a command (and of its subcommands below it) as the file gives them at `path`.

    An unknown key is refused, naming the nearest.
    """
    section: Any = config.values
    for name in path:
        section = (section or {}).get(name)
    if section is not None and not isinstance(section, dict):
        fact = f"{config.where(*path)}: {dotted(path)} must be a mapping of its options"
        raise ConfigError(fact, f"see infractl {' '.join(path)} --help")
    found: dict[str, Any] = {key: config.values[key] for key in GLOBAL_KEYS if key in config.values}
    options = {p.name for p in command.params if isinstance(p, click.Option)} - {"config", "help", None}
    context = click.Context(command)
    children = command.list_commands(context) if isinstance(command, click.Group) else []
    for key, value in (section or {}).items():
        if key in children and isinstance(command, click.Group):
            child = command.get_command(context, key)
            assert child is not None
            found[key] = command_defaults(config, child, (*path, key))
        elif key.replace("-", "_") in options:
            found[key.replace("-", "_")] = value
        else:
            known = [*(str(name) for name in options), *children]
            raise ConfigError(
                f"{config.where(*path, key)}: unknown key '{dotted((*path, key))}'", nearest_key(key, known)
            )
    return found


def _apply(ctx: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """Load the file (once for a command and its subcommand) and make it the defaults of the command being parsed."""
    del option
    path = value or Path(DEFAULT_FILE)
    config: ConfigFile | None = ctx.meta.get("infractl.config")
    if value is not None or config is None:
        if value is None and not path.is_file():
            return None
        config = load(path)
        check_top_level(config)
        check_zone(config)
        ctx.meta["infractl.config"] = config
    chain = _chain(ctx)[1:]
    if chain and chain[0].info_name in COMMANDS:
        merged = command_defaults(config, chain[0].command, (chain[0].info_name,))
        for inner in chain[1:]:
            merged = {**merged, **(merged.get(inner.info_name or "") or {})}
        ctx.default_map = {**_reported(config, ctx.command), **merged}
    return config.path


def _reported(config: ConfigFile, command: click.Command) -> dict[str, Any]:
    """Return global.time_zone as the default of a command's report zone; another --time-zone is not meant."""
    given = config.values.get("global") or {}
    reports = any(option.envvar == ZONE_VARIABLE for option in command.params)
    return {"time_zone": given["time_zone"]} if reports and "time_zone" in given else {}


def _chain(ctx: click.Context) -> list[click.Context]:
    """Contexts from the root to this one."""
    chain = [ctx]
    while chain[0].parent is not None:
        chain.insert(0, chain[0].parent)
    return chain
