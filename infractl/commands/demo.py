"""`infractl demo`: the sample data through the whole way, then the dashboard."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from analytics.result import Result
    from store.database import Database


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("infractl-demo"),
    show_default=True,
    help="Directory for the demo's own DuckDB file.",
)
@click.option("--no-serve", is_flag=True, help="Stop after the findings.")
@click.option("--port", default=8050, show_default=True, help="Dashboard, API and /metrics; 0 takes a free one.")
def command(data: Path, no_serve: bool, port: int) -> None:
    """Load the sample data, run every analysis, print the findings, serve the dashboard."""
    from store.database import Database

    with Database(data) as database:
        _load(database)
        results = _analyze(database)
        _report(results)
    if not no_serve:
        _serve(data, port, results)


def _load(database: "Database") -> None:
    from sample_data.load import batches

    stored = sum(sum(receipt.stored.values()) for batch in batches() for receipt in database.append([batch]))
    rows = {name: n for name, n in database.counts().items() if not name.startswith("ingest")}
    click.echo(f"{stored} rows of sample data stored; now " + ", ".join(f"{n} {name}" for name, n in rows.items()))


def _analyze(database: "Database") -> "list[Result]":
    from analytics.catalog import ANALYSES
    from infractl.priced import PricedReader
    from infractl.runner import run_named

    return [run_named(PricedReader(database), name, {}, None) for name in ANALYSES]


def _report(results: "list[Result]") -> None:
    """Print the findings, then the labelled incidents with what matched them."""
    from analytics.result import distinct
    from infractl.render import sentence
    from sample_data.load import incidents, report

    findings = [finding for result in results for finding in result.findings]
    for result in results:
        click.echo(f"\n{result.analysis} ({result.window})")
        for finding in distinct(result.findings):
            click.echo("  " + sentence(finding))
        if not result.findings:
            click.echo("  no findings")
    click.echo("\nThe incidents that are in the sample data, and what was found of them:")
    for line in report(findings, incidents()):
        click.echo("  " + line)


def _serve(data: Path, port: int, results: "list[Result]") -> None:
    """Serve with the clock at the end of the sample data, so that they are the present."""
    from analytics.catalog import ANALYSES
    from infractl.commands.serve import announce
    from infractl.configfile import AnalysisSchedule, Telemetry
    from infractl.server.process import Options, serve

    end = results[0].window.end
    options = Options(
        data=data,
        port=port,
        otlp_http_port=None,
        otlp_grpc_port=None,
        telemetry=Telemetry(traces=False),
        schedules={name: AnalysisSchedule(every="1h") for name in ANALYSES},  # data that do not change
        clock=lambda: end,
        initial=tuple(results),
    )
    click.echo("\nServing the dashboard over the sample data; Ctrl-C ends it.", err=True)
    serve(options, announce)
