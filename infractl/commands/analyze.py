"""`infractl analyze NAME|--all`: one subcommand per analysis, its options from the analysis' parameters."""

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import click

from analytics.catalog import ANALYSES
from infractl.render import FORMATS
from infractl.settings import configured, current_config, store_options, zone_option
from store.errors import ExitCode
from store.zone import utc_window

SEVERITIES = ("info", "warning", "critical")


class AnalysisGroup(click.Group):
    """Analyses by name; options of one are read from its Params when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in catalog order."""
        del ctx
        return list(ANALYSES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of one analysis. Raises UsageError naming the nearest for an unknown one."""
        del ctx
        from analytics.catalog import load

        return _command(load(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the analyses without importing one."""
        del ctx
        with formatter.section("Analyses (infractl analyze NAME --help for parameters)"):
            formatter.write_dl([(name, text) for name, text in ANALYSES.items()])


def _options(command: Any) -> Any:
    """Options every analysis has."""
    for option in reversed(
        (
            click.option("--since", metavar="DURATION", help="The time before now, like 24h or 7d."),
            click.option("--window", metavar="A..B", help="From A to B (in the report zone unless with an offset)."),
            click.option("--where", metavar="K=V", multiple=True, help="Keep rows with K=V; repeatable."),
            click.option("--format", type=click.Choice(FORMATS), default="table", show_default=True),
            click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file."),
            click.option("--fail-on", type=click.Choice(SEVERITIES), help="Exit 1 on findings this bad or worse."),
        )
    ):
        command = option(command)
    return command


@click.group(cls=AnalysisGroup, invoke_without_command=True)
@click.option("--all", "every", is_flag=True, help="Run every analysis.")
@_options
@zone_option
@store_options
def command(every: bool, **options: Any) -> int | None:
    """Run an analysis and print what it found.

    Without --since or --window the window ends at the newest row stored.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand:
        return None
    if not every:
        raise click.UsageError("name an analysis, or --all", ctx)
    return _answer(list(ANALYSES), {}, options)


def _command(analysis: Any) -> click.Command:
    """Build the click command of an analysis."""
    own = [f for f in fields(analysis.params) if f.name != "where"]

    def callback(**values: Any) -> int:
        params = {f.name: values.pop(f.name) for f in own if values[f.name] is not None}
        return _answer([analysis.name], params, values)

    made = click.Command(analysis.name, callback=callback, help=analysis.doc, short_help=analysis.title)
    made.params = [_option(f) for f in own]
    wrapped: click.Command = _options(zone_option(store_options(made)))
    return wrapped


def _option(field: "Field[Any]") -> click.Option:
    default = None if field.default is MISSING else field.default
    shown = ",".join(default) if isinstance(default, tuple) else default
    text = field.metadata.get("doc", "") + (f"  [default: {shown}]" if shown not in (None, "") else "")
    choices = field.metadata.get("choices")
    flag = "--" + field.name.replace("_", "-")
    return click.Option([flag, field.name], default=None, type=click.Choice(choices) if choices else str, help=text)


def _answer(names: Sequence[str], params: dict[str, Any], options: dict[str, Any]) -> int:
    """Run, render, write; exit code 1 when a finding is as bad as --fail-on, that of the error where one failed."""
    from analytics.result import Severity
    from infractl.access import Access, open_access
    from infractl.pricing import own_prices
    from infractl.render import render
    from infractl.report import ask_all, html_of, text_of
    from infractl.unasked import NoStore, asks_nothing

    window = _window(options)
    asked = params | {"where": [_pair(text) for text in options["where"]]}
    config, zone = current_config(), options["time_zone"]
    if len(names) == 1 and asks_nothing(names[0], asked):
        access: NoStore | Access = NoStore()
    else:
        access = open_access(options["data"], options["server"], prices=own_prices(config))
    try:
        results, failures = ask_all(
            names, lambda name: access.analyze(name, configured(config, name, zone) | asked, window)
        )
    finally:
        access.close()
    form = options["format"]
    if form == "html":
        text = html_of(results, failures, options["server"] or str(options["data"]), zone)
    else:
        text = text_of(results, failures, form, zone) if len(names) > 1 else render(results[0], form, zone)
    if options["output"]:
        options["output"].write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)
    for failure in failures:
        click.echo(f"infractl: error: {failure.name}: {failure.fact}", err=True)
        if failure.hint:
            click.echo(f"hint: {failure.hint}", err=True)
    limit = Severity(options["fail_on"]).rank if options["fail_on"] else None
    worst = max((r.worst.rank for r in results if r.worst), default=-1)
    if failures:
        return failures[0].code
    return ExitCode.FINDINGS if limit is not None and worst >= limit else ExitCode.OK


def _window(options: dict[str, Any]) -> str | None:
    if options["since"] and options["window"]:
        raise click.UsageError("give --since or --window, not both")
    chosen: str | None = options["since"] or options["window"]
    return chosen and utc_window(chosen, options["time_zone"])


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--where takes K=V, not {text!r}")
    return key, value
