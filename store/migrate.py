"""Brings a database of an earlier version to this one: columns and tables are only ever added."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.columns import Kind, Table
from store.errors import StoreError

if TYPE_CHECKING:
    import duckdb

SCHEMA_VERSION = 2
"""1: everything in one file. 2: sealed tables keep their hot rows in hot_<name>; amounts of money are decimals."""


def migrate(con: "duckdb.DuckDBPyConnection", tables: Sequence[Table], name: str) -> None:
    """Create what is missing in one transaction. Raises StoreError for a file (`name`) of a newer infractl."""
    con.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
    found = con.execute("SELECT max(version) FROM schema_version").fetchone()
    version = found[0] if found else None
    if version is not None and version > SCHEMA_VERSION:
        raise StoreError(
            f"{name} was written by a newer infractl (schema {version}, this one knows {SCHEMA_VERSION})",
            "upgrade infractl",
        )
    con.execute("BEGIN")
    present = {row[0] for row in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for table in tables:
        if table.stored != table.name and table.name in present:
            con.execute(f'ALTER TABLE "{table.name}" RENAME TO "{table.stored}"')
        con.execute(table.ddl)
        _add_columns(con, table)
    if version != SCHEMA_VERSION:
        con.execute("INSERT INTO schema_version VALUES (?)", [SCHEMA_VERSION])
    con.execute("COMMIT")


def _add_columns(con: "duckdb.DuckDBPyConnection", table: Table) -> None:
    described = con.execute(f'DESCRIBE "{table.stored}"').fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    for column in table.columns:
        if column.name not in types:
            con.execute(f'ALTER TABLE "{table.stored}" ADD COLUMN "{column.name}" {column.kind.sql}')
        elif column.kind is Kind.MONEY and types[column.name] == "DOUBLE":
            con.execute(
                f'ALTER TABLE "{table.stored}" ALTER COLUMN "{column.name}" TYPE {column.kind.sql} '
                f'USING TRY_CAST(CAST("{column.name}" AS VARCHAR) AS {column.kind.sql})'  # through its digits: exact
            )
