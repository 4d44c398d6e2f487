"""`Column` and `Table`: a field is declared once; DDL, schema, dictionary and JSON typing derive from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from store.errors import StoreError

if TYPE_CHECKING:
    import polars as pl


class Kind(StrEnum):
    """Type of a column.

    `JSON` is a JSON object kept as text: unlike MAP or VARIANT it reads the same in DuckDB, Spark and polars. `INTS`
    and `IDS` are lists. `MONEY` is an exact decimal with 18 places (see store.money).
    """

    TEXT = "text"
    INT = "int"
    ID = "id"
    FLOAT = "float"
    BOOL = "bool"
    TIME = "time"
    JSON = "json"
    INTS = "ints"
    IDS = "ids"
    MONEY = "money"

    @property
    def sql(self) -> str:
        """DuckDB type name."""
        return _SQL[self]

    def polars(self) -> "pl.DataType":
        """Return the polars type; times are naive UTC in microseconds."""
        import polars as pl

        types: dict[Kind, pl.DataType] = {
            Kind.TEXT: pl.String(),
            Kind.JSON: pl.String(),
            Kind.INT: pl.Int64(),
            Kind.ID: pl.UInt64(),
            Kind.FLOAT: pl.Float64(),
            Kind.BOOL: pl.Boolean(),
            Kind.TIME: pl.Datetime("us"),
            Kind.INTS: pl.List(pl.Int64),
            Kind.IDS: pl.List(pl.UInt64),
            Kind.MONEY: pl.Decimal(38, 18),
        }
        return types[self]


_SQL = {
    Kind.TEXT: "VARCHAR",
    Kind.INT: "BIGINT",
    Kind.ID: "UBIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.BOOL: "BOOLEAN",
    Kind.TIME: "TIMESTAMP",
    Kind.JSON: "VARCHAR",
    Kind.INTS: "BIGINT[]",
    Kind.IDS: "UBIGINT[]",
    Kind.MONEY: "DECIMAL(38,18)",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One field: name, kind, unit (base units: s, bytes, ratio, USD; empty for none) and what it means."""

    name: str
    kind: Kind
    doc: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table.

    `key` makes ingest idempotent; `time` bounds the search for an earlier copy of a row. A row that is there already is
    left as it is but for the columns in `refreshed`, which take a newer value that is not null. Rows of a `sealed`
    table move from the database into Parquet files, hour by hour.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    time: str | None = None
    refreshed: tuple[str, ...] = ()
    sealed: bool = False
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {c.name: c for c in self.columns})

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in stored order."""
        return tuple(self._by_name)

    @property
    def stored(self) -> str:
        """Name in the database; of a sealed table, whose own name is a view, that of its hot rows."""
        return f"hot_{self.name}" if self.sealed else self.name

    @property
    def ddl(self) -> str:
        """CREATE TABLE statement. No PRIMARY KEY: it costs as much as the anti-join and 4x the file."""
        fields = ", ".join(f'"{c.name}" {c.kind.sql}' for c in self.columns)
        return f'CREATE TABLE IF NOT EXISTS "{self.stored}" ({fields})'

    def schema(self) -> "pl.Schema":
        """Return the polars schema of a conforming frame."""
        import polars as pl

        return pl.Schema({c.name: c.kind.polars() for c in self.columns})

    def conform(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        """Order and cast `frame` to this table; columns it lacks become null.

        Raises StoreError for a column the table does not have or a value that does not fit its type.
        """
        import polars as pl

        extra = [name for name in frame.columns if name not in self._by_name]
        if extra:
            raise StoreError(f"table {self.name} has no column {extra[0]!r}", f"columns: {', '.join(self.names)}")
        given = frame.schema  # polars builds it anew at every access
        exprs = [_cast(n, given[n], t) if n in given else pl.lit(None, t).alias(n) for n, t in self.schema().items()]
        try:
            return frame.select(exprs)
        except pl.exceptions.PolarsError as error:
            raise StoreError(f"a row does not fit table {self.name}: {error}") from error


def _cast(name: str, given: "pl.DataType", wanted: "pl.DataType") -> "pl.Expr":
    """Cast a column; a float becomes the decimal that it is written as, not the nearest of its binary value."""
    import polars as pl

    column = pl.col(name)
    if given == wanted:
        return column
    return (
        column.fill_nan(None).cast(pl.String).cast(wanted)
        if wanted.is_decimal() and given.is_float()
        else column.cast(wanted)
    )
