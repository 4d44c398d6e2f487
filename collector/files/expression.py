"""Small arithmetic over columns for --map ('record_time-total_chunk_time'): parsed, never evaluated as Python."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from store.errors import UsageError
from store.nearest import nearest

_LIMIT = 500  # characters: far above any real mapping, far below what makes the parser recurse too deep
_OPERATORS: dict[type[ast.operator], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_HINT = 'names, numbers, + - * /, column[0] of a list; put a name with other characters in "quotes"'


@dataclass(frozen=True, slots=True)
class Expression:
    """A column or arithmetic over columns.

    `plain` says that it is one column as it stands; `unparsed` is true in rows where a text column of it holds no
    number (then `value` is null).
    """

    text: str
    columns: tuple[str, ...]
    plain: bool
    value: pl.Expr
    unparsed: pl.Expr


def compile_expression(text: str, schema: pl.Schema) -> Expression:
    """Turn `text` into an expression over columns of `schema`.

    A text that is the name of a column is that column, whatever characters it has. Text columns count as numbers inside
    arithmetic. Raises UsageError for an unknown column (with the nearest) or anything but the grammar of the hint.
    """
    if text in schema:
        return Expression(text, (text,), True, pl.col(text), pl.lit(False))
    if len(text) > _LIMIT:
        raise UsageError(f"the expression is longer than {_LIMIT} characters", "compute the column before importing")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"{text!r} is neither a column nor an expression over columns", _columns_hint(schema)
        ) from error
    seen: dict[str, pl.Expr] = {}
    value = _compile(tree, schema, seen)
    if not seen:
        raise UsageError(f"{text!r} names no column", _columns_hint(schema))
    plain = tuple(seen) == (_dotted(tree),)
    if plain:
        return Expression(text, tuple(seen), True, pl.col(next(iter(seen))), pl.lit(False))
    return Expression(text, tuple(seen), False, value, pl.any_horizontal(list(seen.values())))


def number(name: str, schema: pl.Schema) -> tuple[pl.Expr, pl.Expr]:
    """Return a column as numbers, and where it holds a text that is none.

    Raises UsageError for a column of lists, times or bytes.
    """
    column = pl.col(name)
    kind = schema[name]
    if kind.is_integer() or isinstance(kind, pl.Boolean):
        return column.cast(pl.Int64, strict=False), pl.lit(False)  # unsigned ones would wrap below zero
    if kind.is_numeric():
        return column.cast(pl.Float64), pl.lit(False)
    if isinstance(kind, pl.String):
        value = column.str.strip_chars().cast(pl.Float64, strict=False)
        return value, column.is_not_null() & value.is_null()
    raise UsageError(f"column {name!r} holds {kind}, not numbers", _HINT)


def _compile(node: ast.expr, schema: pl.Schema, seen: dict[str, pl.Expr]) -> pl.Expr:
    """Compile one node; `seen` collects the columns and where each is no number."""
    name = _dotted(node)
    if name is not None:
        if name not in schema:
            raise UsageError(f"the file has no column {name!r}", nearest(name, schema) or _columns_hint(schema))
        value, seen[name] = number(name, schema)
        return value
    match node:
        case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
            whole = isinstance(constant, int) and abs(constant) < 2**63
            return pl.lit(constant, pl.Int64() if whole else pl.Float64())
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_compile(left, schema, seen), _compile(right, schema, seen))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compile(operand, schema, seen)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _compile(operand, schema, seen)
        case ast.Subscript(value=of, slice=index):
            return _item(of, index, schema, seen)
    raise UsageError(f"{ast.unparse(node)!r} is not allowed in an expression", _HINT)


def _item(of: ast.expr, index: ast.expr, schema: pl.Schema, seen: dict[str, pl.Expr]) -> pl.Expr:
    """`column[0]`, `column[-1]`: an element of a list; null where the list is too short."""
    name = _dotted(of)
    try:
        at = ast.literal_eval(index)
    except ValueError:
        at = None
    if name is None or not isinstance(schema.get(name), pl.List) or type(at) is not int:
        raise UsageError(f"{ast.unparse(of)!r} is no list column, or the index no whole number", _HINT)
    seen[name] = pl.lit(False)
    return pl.col(name).list.get(at, null_on_oob=True)


def _dotted(node: ast.expr) -> str | None:
    """Column name of a node: a name, a dotted name ('usage.prompt_tokens') or a quoted one."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=str() as name):
            return name
        case ast.Attribute(value=of, attr=ending):
            before = _dotted(of)
            return None if before is None else f"{before}.{ending}"
    return None


def _columns_hint(schema: pl.Schema) -> str:
    return f"columns: {', '.join(schema)}"
