"""Reference pages derived from what is declared: docs/tables.md, docs/analyses.md, docs/cli.md's command list."""

from copy import copy
from typing import Any

import click

from analytics.analysis import Analysis
from analytics.result import Trigger
from infractl.main import HELP_OPTIONS
from store.columns import Column, Table
from store.window import format_duration


def tables_page(tables: tuple[Table, ...]) -> str:
    """Write the data dictionary as Markdown."""
    parts = ["# Tables", "", "Written from `store/tables.py`. Times are UTC. `infractl sql` reads all of these.", ""]
    for table in tables:
        key = ", ".join(f"`{name}`" for name in table.key)
        parts += [f"## {table.name}", "", f"{table.doc} Key: {key}.", "", *_columns(table.columns, sql=True), ""]
    return "\n".join(parts)


def analyses_page(analyses: list[Analysis[Any]]) -> str:
    """Describe every analysis with parameters, frames, signals and triggers, as Markdown."""
    parts = [
        "# Analyses",
        "",
        "Written from `analytics/`. Each runs as `infractl analyze NAME`, on `serve`'s schedule,",
        "",
    ]
    parts[2] += " at `/api/v1/analyses/NAME` and on the dashboard."
    for analysis in analyses:
        parts += [f"## {analysis.name}", "", f"{analysis.title}.", "", analysis.doc.strip(), ""]
        often, long = format_duration(analysis.every), format_duration(analysis.lookback)
        parts += [f"`serve` runs it every {often} over the last {long} unless configured otherwise.", ""]
        parts += ["| parameter | default | meaning |", "|---|---|---|", *_params(analysis), ""]
        for name, columns in analysis.frames.items():
            parts += [f"### Frame `{name}`", "", *_columns(columns, sql=False), ""]
        if analysis.signals:
            parts += ["### Signals", "", "| metric | labels | meaning |", "|---|---|---|"]
            parts += [f"| `{s.metric}` | {', '.join(s.labels)} | {s.doc} |" for s in analysis.signals] + [""]
        if analysis.triggers:
            parts += ["### Triggers", "", "| alert | holds while | severity | runbook |", "|---|---|---|---|"]
            parts += [_trigger(trigger) for trigger in analysis.triggers] + [""]
    return "\n".join(parts)


def commands_page(commands: dict[str, click.Command]) -> str:
    """Write the help text of every command as Markdown."""
    parts = ["# Commands", "", "Written from `infractl X --help`.", ""]
    for name, command in commands.items():
        parts += [f"## infractl {name}", "", "```text", _help(command, f"infractl {name}"), "```", ""]
        for inner in _children(command):
            title = f"infractl {name} {inner.name}"
            parts += [f"### {title}", "", "```text", _help(inner, title), "```", ""]
    return "\n".join(parts)


def _children(command: click.Command) -> list[click.Command]:
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command, info_name=command.name, help_option_names=HELP_OPTIONS)
    found = [command.get_command(context, name) for name in command.list_commands(context)]
    return [child for child in found if child is not None]


def _help(command: click.Command, path: str) -> str:
    command = copy(command)
    command._help_option = None  # noqa: SLF001 - click keeps the names that whoever asked first had for --help
    context = click.Context(
        command, info_name=path, max_content_width=110, terminal_width=110, help_option_names=HELP_OPTIONS
    )
    return command.get_help(context)


def _columns(columns: tuple[Column, ...], *, sql: bool) -> list[str]:
    rows = [f"| `{c.name}` | {c.kind.sql if sql else c.kind} | {c.unit} | {c.doc} |" for c in columns]
    return ["| column | type | unit | meaning |", "|---|---|---|---|", *rows]


def _params(analysis: Analysis[Any]) -> list[str]:
    from dataclasses import fields

    rows = []
    for spec in fields(analysis.params):
        shown = ",".join(map(str, spec.default)) if isinstance(spec.default, tuple) else spec.default
        rows.append(f"| `--{spec.name.replace('_', '-')}` | `{shown}` | {spec.metadata.get('doc', '')} |")
    return rows


def _trigger(trigger: Trigger) -> str:
    sign = ">" if trigger.above else "<"
    runbook = f"[{trigger.runbook}](../rules/runbooks/{trigger.runbook}.md)"
    return f"| {trigger.name} | `{trigger.signal.metric} {sign} {trigger.bound!r}` | {trigger.severity} | {runbook} |"
