"""`infractl status`."""

from pathlib import Path
from typing import Any

import click

from infractl.settings import store_options


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_options
def command(data: Path, server: str | None, as_json: bool, **_: Any) -> None:
    """Print sources, rows, refused rows by reason, store size and lock holder."""
    import orjson

    from infractl.access import open_access
    from infractl.render import status_text

    access = open_access(data, server)
    try:
        status = access.status()
    finally:
        access.close()
    click.echo(orjson.dumps(status).decode() if as_json else status_text(status), nl=as_json)
