"""Which column feeds which field, and in which unit: from --map and --unit, else from names that are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from collector.files.dialects import Dialect, dialect_of
from collector.files.expression import Expression, compile_expression
from collector.files.options import ImportOptions
from collector.files.units import unit_of_name
from store.errors import UsageError
from store.nearest import nearest


@dataclass(frozen=True, slots=True)
class Source:
    """Where one field comes from, and the unit its values are in (None: the base unit of the field)."""

    field: str
    expression: Expression
    unit: str | None

    def __str__(self) -> str:
        return f"{self.field}={self.expression.text}" + (f" ({self.unit})" if self.unit else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The mapping of one file and where it was recognised from (empty: all of it was given)."""

    sources: tuple[Source, ...]
    recognised: str = ""

    def __getitem__(self, field: str) -> Source | None:
        return next((source for source in self.sources if source.field == field), None)

    @property
    def columns(self) -> frozenset[str]:
        """Columns that are a field just as they stand."""
        return frozenset(s.expression.columns[0] for s in self.sources if s.expression.plain)

    def __str__(self) -> str:
        return ", ".join(str(source) for source in self.sources)


def make_plan(schema: pl.Schema, options: ImportOptions, dialects: Iterable[Dialect], known: Mapping[str, str]) -> Plan:
    """Lay what `options` map over the dialect found over the `known` names (field → column).

    A column that --map uses as it stands is not recognised for another field; `--map field=` leaves a field out; a
    field that a label sets takes no column. Raises UsageError for an unknown column or a unit for a field without one.
    """
    dialect = dialect_of(schema, dialects)
    given = {name: text for name, text in options.mapping.items() if text}
    found = {**known, **(dialect.mapping if dialect else {})}
    out = {*options.mapping, *options.labels}
    taken = {*given.values()}
    guessed = {n: t for n, t in found.items() if n not in out and t not in taken and _usable(t, schema)}
    units = {**(dialect.units if dialect else {}), **options.units}
    sources = [_source(name, text, schema, units) for name, text in {**guessed, **given}.items()]
    _all_used(options.units, [source.field for source in sources])
    recognised = (dialect.name if dialect else "column names") if guessed else ""
    return Plan(tuple(sources), recognised)


def _usable(text: str, schema: pl.Schema) -> bool:
    """Tell whether a recognised column or expression fits this file: a column of lists is no field as it stands."""
    if text in schema:
        return not schema[text].is_nested()
    try:
        compile_expression(text, schema)
    except UsageError:
        return False
    return True


def _source(name: str, text: str, schema: pl.Schema, units: Mapping[str, str]) -> Source:
    expression = compile_expression(text, schema)
    stated = {unit_of_name(column) for column in expression.columns}
    return Source(name, expression, units.get(name) or (stated.pop() if len(stated) == 1 else None))


def _all_used(units: Mapping[str, str], fields: Sequence[str]) -> None:
    for name in units:
        if name not in fields:
            raise UsageError(
                f"--unit names {name}, which no column is mapped to",
                nearest(name, fields) or f"fields with a column: {', '.join(fields) or 'none'}",
            )
