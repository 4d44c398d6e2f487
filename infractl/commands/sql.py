"""`infractl sql`."""

from pathlib import Path
from typing import Any

import click

from infractl.render import FRAME_FORMATS
from infractl.settings import store_options
from store.errors import UsageError


@click.command()
@click.argument("text", metavar='"SELECT …"')
@click.option("--limit", type=click.IntRange(1), help="Return at most this many rows.")
@click.option("--format", type=click.Choice(FRAME_FORMATS), default="table", show_default=True)
@store_options
def command(text: str, limit: int | None, data: Path, server: str | None, **options: Any) -> None:
    """Run one read-only SELECT over the stored tables (docs/tables.md)."""
    import polars as pl

    from infractl.access import open_access
    from infractl.render import render_frame
    from store.limits import truncated

    access = open_access(data, server)
    try:
        table = access.sql(text, limit)
    finally:
        access.close()
    if limit is None and (cut := truncated(table)):
        click.echo(f"only part of the rows: {cut}", err=True)
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise UsageError(f"sql: two columns are called {twice[0]!r}", "name them apart with AS")
    frame = pl.DataFrame(pl.from_arrow(table))
    click.echo(render_frame(frame, options["format"]), nl=False)
