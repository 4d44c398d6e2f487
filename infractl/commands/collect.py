"""`infractl collect`: read sources now, or again and again, without the rest of `serve`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from infractl.render import FRAME_FORMATS
from infractl.settings import current_config, report_zone, store_options
from store.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import polars as pl

    from infractl.collecting import Outcome
    from infractl.pushing import Pusher


@click.command()
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@click.option("--once", is_flag=True, help="Read every source once and say what came.")
@click.option("--every", metavar="TIME", help="Read again and again, until interrupted  [default: as configured]")
@click.option("--label", metavar="K=V", multiple=True, help="Label of every series, as service=chat-api.")
@click.option("--push", metavar="URL", help="Send to this infractl serve, through a spool below --data; no store here.")
@click.option("--push-header", metavar="'NAME: VALUE'", multiple=True, help="Header of what is sent, for a proxy.")
@click.option("--spool-limit", metavar="SIZE", default="1GiB", show_default=True, help="Size of the spool at most.")
@click.option("--format", type=click.Choice(FRAME_FORMATS), default="table", show_default=True)
@store_options
def command(sources: Sequence[str], once: bool, every: str | None, label: Sequence[str], **given: Any) -> None:
    """Read metrics into the store: from URLs, GPUs, this host, or jobs of infractl.yaml.

    SOURCE is the address of a page (http://127.0.0.1:8000/metrics), nvml, amd or host for this machine, or the job_name
    of scrape_configs. Without one, all that infractl.yaml names are read.
    """
    from collector.files import parse_pairs
    from infractl.access import open_access
    from infractl.collecting import collect_forever, collect_once
    from infractl.render import render_frame
    from infractl.sources import chosen

    if once and every:
        raise UsageError("--once and --every exclude each other", "keep one")
    found = chosen(current_config(), sources, parse_pairs("--label", label, comma=False), every)
    access = _pusher(given) if given["push"] else open_access(given["data"], given["server"], create=True)
    try:
        if not once:
            collect_forever(found, access)
            return
        outcomes = collect_once(found, access)
        click.echo(render_frame(_table(outcomes), given["format"], report_zone()), nl=False)
    finally:
        access.close()
    if given["push"] and getattr(access, "waiting", 0):
        raise SystemExit(ExitCode.SOURCE)
    if not outcomes or not all(outcome.health.up for outcome in outcomes):
        raise SystemExit(ExitCode.SOURCE)


def _pusher(given: dict[str, Any]) -> "Pusher":
    from infractl.pushing import Pusher, headers
    from store.sizes import parse_size

    if given["server"]:
        raise UsageError("--push and --server exclude each other", "--push sends through a spool, --server at once")
    limit = parse_size(given["spool_limit"])
    return Pusher(given["push"], given["data"] / "spool", limit, headers(given["push_header"]))


def _table(outcomes: "Sequence[Outcome]") -> "pl.DataFrame":
    """One row per target: what came, how much of it is understood, or why nothing came."""
    import polars as pl

    rows = [
        {
            "target": f"{o.health.job} {o.health.instance}",
            "up": bool(o.health.up),
            "samples": o.health.samples,
            "series": o.series,
            "understood": o.understood,
            "kind": ", ".join(o.titles),
            "remark": o.health.last_error or o.health.warning,
        }
        for o in outcomes
    ]
    return pl.DataFrame(rows)
