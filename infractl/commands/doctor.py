"""`infractl doctor`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from infractl.settings import current_config, store_options
from store.errors import ExitCode, UsageError

SEVERITIES = ("info", "warning", "critical")


@click.command()
@click.argument("pages", metavar="[PAGE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--since", default="1h", show_default=True, help="How far back to look from the newest row.")
@click.option(
    "--slo", metavar="METRIC=TIME", multiple=True, help="Latency you want to tell, as ttft_seconds=500ms: is it?"
)
@click.option(
    "--dcgm-counters",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Look at this counters file of dcgm-exporter too.",
)
@click.option("--fail-on", type=click.Choice(SEVERITIES), help="Exit with 1 for advice at or above this severity.")
@store_options
def command(pages: Sequence[str], as_json: bool, slo: Sequence[str], **options: Any) -> None:
    """Print what is missing, stale, renamed, mistyped, counted twice or unmeasurable, with the line to add.

    Looks at what is stored; with a PAGE (a URL, or a file with what a target answered) at that alone, before anything
    is configured.
    """
    import orjson

    from infractl.doctor.counters_file import check_counters
    from infractl.doctor.examine import answers, examine
    from infractl.doctor.report import report_text, with_advice

    limits_s, file = _limits(slo), options["dcgm_counters"]
    made = examine(answers(pages), datetime.now(UTC), limits_s) if pages else _of_store(options, limits_s)
    made = with_advice(made, check_counters(file)) if file else made
    click.echo(orjson.dumps(made).decode() if as_json else report_text(made), nl=as_json)
    worst = max((SEVERITIES.index(advice["severity"]) for advice in made["advice"]), default=-1)
    if options["fail_on"] and worst >= SEVERITIES.index(options["fail_on"]):
        raise SystemExit(ExitCode.FINDINGS)


def _of_store(options: Mapping[str, Any], limits_s: Mapping[str, float]) -> dict[str, Any]:
    from infractl.access import open_access
    from infractl.doctor.facts import nothing
    from infractl.doctor.report import report
    from infractl.pricing import own_prices
    from store.database import FILE_NAME

    if options["server"] is None and not (options["data"] / FILE_NAME).exists():
        return report(nothing(datetime.now(UTC)))
    access = open_access(options["data"], options["server"], prices=own_prices(current_config()))
    try:
        return access.doctor(options["since"], limits_s)
    finally:
        access.close()


def _limits(texts: Sequence[str]) -> dict[str, float]:
    """Read METRIC=TIME pairs to seconds by canonical histogram."""
    from collector.presets.catalog import canonical
    from store.window import parse_duration

    found = {}
    for text in texts:
        name, _, limit = text.partition("=")
        known = canonical(name)
        if known is None or not known.histogram or known.unit != "s" or not limit:
            raise UsageError(f"--slo {text!r} names no latency histogram", "write it like --slo ttft_seconds=500ms")
        found[name] = parse_duration(limit).total_seconds()
    return found
