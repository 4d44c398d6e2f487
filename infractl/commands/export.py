"""`infractl export`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infractl.settings import store_options, zone_option
from store.errors import UsageError
from store.zone import utc_window

if TYPE_CHECKING:
    import polars as pl


@click.command()
@click.argument("table")
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="FILE.parquet or FILE.csv"
)
@click.option("--since", metavar="DURATION", help="Only the time before now, like 24h.")
@click.option("--window", metavar="A..B", help="Only from A to B (in the report zone unless with an offset).")
@zone_option
@store_options
def command(table: str, output: Path, data: Path, server: str | None, **options: Any) -> None:
    """Write a table to a Parquet (zstd) or CSV file; its times are in UTC."""
    import polars as pl

    from infractl.access import open_access

    if output.suffix not in (".parquet", ".csv"):
        raise UsageError(f"--output cannot be {str(output)!r}", "give it the suffix .parquet or .csv")
    window: str | None = options["since"] or options["window"]
    text = _select(table, window and utc_window(window, options["time_zone"]))
    access = open_access(data, server)
    try:
        frame = pl.DataFrame(pl.from_arrow(access.sql(text, None, all_rows=True)))
    finally:
        access.close()
    part = output.with_name(output.name + ".part")
    if output.suffix == ".parquet":
        frame.write_parquet(part, compression="zstd")
    else:
        _flat(frame).write_csv(part)
    part.replace(output)
    click.echo(f"{frame.height} rows of {table} in {output}", err=True)


def _flat(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Write lists as JSON text, which CSV can hold, and money without the zeros behind its cents."""
    import polars as pl

    money = pl.selectors.decimal()
    frame = frame.with_columns(money.cast(pl.String).str.replace(r"(\.\d\d\d*?)0+$", "$1"))
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    texts = (pl.format("[{}]", pl.col(n).cast(pl.List(pl.String)).list.join(", ")).alias(n) for n in lists)
    return frame.with_columns(texts)


def _select(name: str, window: str | None) -> str:
    """SELECT of a table, bounded by time where asked. Raises UsageError."""
    from store.tables import BY_NAME
    from store.window import Window

    if name not in BY_NAME:
        raise UsageError(f"there is no table {name!r}", "tables: " + ", ".join(BY_NAME))
    time = BY_NAME[name].time
    if window is None:
        return f'SELECT * FROM "{name}"'
    if time is None:
        raise UsageError(f"table {name} has no time column", "leave out --since and --window")
    bounds = Window.parse(window, datetime.now(UTC))
    low, high = (at.replace(tzinfo=None).isoformat(" ") for at in (bounds.start, bounds.end))
    return f"SELECT * FROM \"{name}\" WHERE {time} >= TIMESTAMP '{low}' AND {time} < TIMESTAMP '{high}' ORDER BY {time}"
