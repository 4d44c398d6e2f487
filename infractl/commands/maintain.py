"""`infractl maintain`."""

from pathlib import Path
from typing import Any

import click

from infractl.settings import store_options
from store.errors import ExitCode, UsageError

_TASKS = ("seal", "rollups", "snapshot", "retention", "compact", "sweep")


@click.command()
@click.option("--seal", is_flag=True, help="Move hours that are old enough into Parquet.")
@click.option("--rollups", is_flag=True, help="Build the 5-minute and hourly rollups.")
@click.option("--snapshot", is_flag=True, help="Copy the small tables, trim the journal.")
@click.option("--retention", is_flag=True, help="Drop what is over its age or size.")
@click.option("--compact", is_flag=True, help="Merge the files of an hour.")
@click.option("--sweep", is_flag=True, help="Delete files that nobody reads any more.")
@click.option("--verify", is_flag=True, help="Read everything that is stored; exit code 3 when something is damaged.")
@click.option("--rebuild", is_flag=True, help="Make the database anew from lake, snapshot and journal.")
@click.option("--backup", type=click.Path(path_type=Path), metavar="DIR", help="Write a consistent copy into DIR.")
@click.option("--restore", type=click.Path(path_type=Path), metavar="DIR", help="Make an empty --data from a copy.")
@store_options
def command(data: Path, server: str | None, **asked: Any) -> None:
    """Do the store's own work now, as serve does at intervals: all tasks, or those named."""
    from infractl.access import open_access
    from infractl.storage import configured_store

    if asked["restore"] or asked["rebuild"]:
        _offline(data, server, asked)
        return
    tasks = [name for name in _TASKS if asked[name]]
    others = asked["verify"] or asked["backup"]
    access = open_access(data, server, settings=configured_store())
    try:
        told = access.maintain(tasks if tasks or others else list(_TASKS), asked["verify"], asked["backup"])
    finally:
        access.close()
    for line in told["lines"]:
        click.echo(line)
    if told["flaws"]:
        click.get_current_context().exit(int(ExitCode.STORE))


def _offline(data: Path, server: str | None, asked: dict[str, Any]) -> None:
    """Do what needs the directory for itself."""
    from infractl.storage import configured_store
    from store.backup import restore
    from store.database import Database

    if server:
        raise UsageError("--rebuild and --restore work on --data, not through a server", "stop the server first")
    if asked["restore"]:
        found = restore(asked["restore"], data, configured_store())
        click.echo(f"{found.total_rows} rows restored into {data}")
        return
    with Database(data, configured_store(), rebuild=True) as database:
        for notice in database.notices[-1:]:
            click.echo(notice.what)
        click.echo(f"{sum(database.counts().values())} rows are there")
