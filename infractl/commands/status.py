"""`infractl status`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infractl.settings import current_config, store_options, zone_option

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@zone_option
@store_options
def command(data: Path, server: str | None, as_json: bool, time_zone: "ZoneInfo", **_: Any) -> None:
    """Print sources, rows, refused rows by reason, store size and lock holder."""
    import orjson

    from infractl.access import open_access
    from infractl.pricing import own_prices
    from infractl.render import status_text

    access = open_access(data, server, prices=own_prices(current_config()))
    try:
        status = access.status()
    finally:
        access.close()
    click.echo(orjson.dumps(status).decode() if as_json else status_text(status, time_zone), nl=as_json)
