"""`infractl config init|show|validate`."""

import os
from pathlib import Path
from typing import Any

import click

from infractl.configfile import DEFAULT_FILE, ConfigFile, load
from infractl.settings import (
    SECTIONS,
    ZONE_VARIABLE,
    check_top_level,
    check_zone,
    command_defaults,
    content,
    schedules,
    telemetry,
)
from store.errors import UsageError

FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Write, show and check infractl.yaml."""


@command.command()
@click.argument("file", type=FILE, default=DEFAULT_FILE)
def init(file: Path) -> None:
    """Write a commented infractl.yaml; an existing file is left alone."""
    from importlib.resources import files

    if file.exists():
        raise UsageError(f"{file} exists already", "name another file, or edit that one")
    file.write_text(files("infractl").joinpath("infractl.example.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    click.echo(f"wrote {file}", err=True)


@command.command()
@click.argument("file", type=FILE, default=DEFAULT_FILE)
def validate(file: Path) -> None:
    """Check every key; the first fault is named with file, line and the nearest known key."""
    _check(load(file))
    click.echo(f"{file} is fine", err=True)


@command.command()
@click.option("--config", "file", type=FILE, help=f"Configuration file [default: {DEFAULT_FILE} where it exists]")
def show(file: Path | None) -> None:
    """Print every option with its value and where that came from; passwords, tokens and keys read <secret>."""
    from tabulate import tabulate

    config = load(file or Path(DEFAULT_FILE)) if file or Path(DEFAULT_FILE).is_file() else ConfigFile()
    _check(config)
    click.echo(tabulate(_rows(config), headers=("key", "value", "from"), disable_numparse=True))


def _check(config: ConfigFile) -> None:
    """Check every section as the commands would."""
    from infractl.pricing import own_prices
    from infractl.probing import configured_probes
    from infractl.sources import kv_event_entries, local_targets, scrape_jobs
    from infractl.storage import store_settings

    check_top_level(config)
    check_zone(config)
    for name, made in _commands().items():
        command_defaults(config, made, (name,))
    scrape_jobs(config)
    local_targets(config)
    kv_event_entries(config)
    configured_probes(config)
    own_prices(config)
    content(config)
    telemetry(config)
    store_settings(config)
    _check_analyses(schedules(config), config)


def _check_analyses(schedules: dict[str, Any], config: ConfigFile) -> None:
    """Durations and parameters of every schedule, named with their line."""
    from analytics.catalog import load as load_analysis
    from store.errors import ConfigError
    from store.window import parse_duration

    for name, schedule in schedules.items():
        try:
            load_analysis(name).make_params(schedule.params)
            for text in (schedule.every, schedule.since):
                if text is not None:
                    parse_duration(text)
        except UsageError as error:
            raise ConfigError(f"{config.where('analyses', name)}: analyses.{name}: {error}", error.hint) from error


def _commands() -> dict[str, click.Command]:
    from importlib import import_module

    from infractl.commands.catalog import COMMANDS

    return {name: import_module(f"infractl.commands.{entry.module}").command for name, entry in COMMANDS.items()}


def _rows(config: ConfigFile) -> list[tuple[str, str, str]]:
    from collector.prometheus.masking import shown_config

    rows = [
        _row(config, name, option)
        for name, made in _commands().items()
        for option in made.params
        if isinstance(option, click.Option) and option.name not in ("config", "help")
    ]
    rows += [(name, config.values[name], config.where(name)) for name in SECTIONS if name in config.values]
    return [(key, str(shown_config(value, key.rpartition(".")[2])), where) for key, value, where in rows]


def _row(config: ConfigFile, name: str, option: click.Option) -> tuple[str, Any, str]:
    """One option: environment first, then the file, then the default."""
    key = str(option.name)
    variable = option.envvar if isinstance(option.envvar, str) else f"INFRACTL_{name}_{key}".upper()
    section = config.values.get(name) or {}
    written = next((k for k in (key, key.replace("_", "-")) if k in section), None)
    if variable in os.environ:
        return f"{name}.{key}", os.environ[variable], f"environment {variable}"
    if written is not None:
        return f"{name}.{key}", section[written], config.where(name, written)
    if key in ("data", "server") and key in config.values:
        return f"{name}.{key}", config.values[key], config.where(key)
    if variable == ZONE_VARIABLE and "time_zone" in (config.values.get("global") or {}):
        return f"{name}.{key}", config.values["global"]["time_zone"], config.where("global", "time_zone")
    default = option.get_default(click.Context(click.Command(name)))
    return f"{name}.{key}", "" if default is None else default, "default"
