"""Expressions of --map: exactly arithmetic over columns, and nothing else."""

import ast
import operator

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.files.expression import compile_expression
from store.errors import UsageError

SCHEMA = pl.Schema(
    {
        "a": pl.Float64,
        "b": pl.Int64,
        "t": pl.String,
        "gen tokens": pl.Int64,
        "usage.prompt": pl.Int64,
        "l": pl.List(pl.Int64),
    }
)
_PYTHON = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}

finite = st.floats(-1e6, 1e6, allow_nan=False)
leaves = st.sampled_from(["a", "c", "1", "2.5", "1e3"])
trees = st.recursive(
    leaves,
    lambda inner: st.builds("({}{}{})".format, inner, st.sampled_from("+-*/"), inner) | st.builds("-{}".format, inner),
)


def evaluate(node: ast.expr, row: dict[str, float]) -> float:
    """Arithmetic by Python itself, as a second implementation."""
    match node:
        case ast.Name(id=name):
            return row[name]
        case ast.Constant(value=value):
            return float(value)
        case ast.UnaryOp(operand=operand):
            return -evaluate(operand, row)
        case ast.BinOp(left=left, op=op, right=right):
            return _PYTHON[type(op)](evaluate(left, row), evaluate(right, row))
    raise AssertionError(ast.dump(node))


@given(trees, finite, finite)
def test_an_expression_has_the_value_that_python_gives_it(text: str, a: float, c: float) -> None:
    frame = pl.DataFrame({"a": [a], "c": [c]})
    try:
        wanted = evaluate(ast.parse(text, mode="eval").body, {"a": a, "c": c})
    except (ZeroDivisionError, OverflowError):
        return
    try:
        expression = compile_expression(text, frame.schema)
    except UsageError:
        assert not {"a", "c"} & {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        return
    found = frame.select(expression.value).item()
    assert found == pytest.approx(wanted, rel=1e-12, nan_ok=True)


@given(st.text(max_size=40))
def test_any_other_text_is_refused_with_a_usage_error(text: str) -> None:
    try:
        expression = compile_expression(text, SCHEMA)
    except UsageError:
        return
    assert set(expression.columns) <= set(SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["__import__('os').system('id')", "a if b else a", "a ** b", "[a]", "a < b", "(a := b)", "lambda: a", "l[0:1]",
     "l[b]", "a[0]", "l['x']", "l + 1", "f(a)", "True", "1 + 2", "", "a b", "a;b", "\0", "(" * 300, "a" + "+a" * 300],
)  # fmt: skip
def test_code_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        compile_expression(text, SCHEMA)


def test_an_unknown_column_names_the_nearest_one() -> None:
    with pytest.raises(UsageError) as caught:
        compile_expression("gen_tokens - b", SCHEMA)
    assert "no column 'gen_tokens'" in str(caught.value)
    assert caught.value.hint == "did you mean gen tokens?"


def test_a_name_with_other_characters_is_quoted_inside_arithmetic_and_plain_alone() -> None:
    frame = pl.DataFrame({"gen tokens": [5], "usage.prompt": [2]})
    assert compile_expression("gen tokens", frame.schema).plain
    assert frame.select(compile_expression('"gen tokens" - usage.prompt', frame.schema).value).item() == 3


def test_an_element_of_a_list_is_null_where_the_list_is_too_short() -> None:
    frame = pl.DataFrame({"l": [[7, 8], [], None]})
    assert frame.select(compile_expression("l[-1] - l[0]", frame.schema).value).to_series().to_list() == [1, None, None]


def test_nanoseconds_since_1970_stay_whole_numbers() -> None:
    frame = pl.DataFrame({"t": [1796055484845789327], "d": [1]}, schema={"t": pl.UInt64, "d": pl.UInt8})
    assert frame.select(compile_expression("t - d - 2", frame.schema).value).item() == 1796055484845789324


def test_unsigned_columns_go_below_zero() -> None:
    frame = pl.DataFrame({"a": [1], "b": [2]}, schema={"a": pl.UInt8, "b": pl.UInt8})
    assert frame.select(compile_expression("a - b", frame.schema).value).item() == -1


def test_a_text_that_is_no_number_is_marked() -> None:
    frame = pl.DataFrame({"t": ["1.5", "x", None], "b": [1, 1, 1]})
    expression = compile_expression("t + b", frame.schema)
    assert frame.select(expression.value).to_series().to_list() == [2.5, None, None]
    assert frame.select(expression.unparsed).to_series().to_list() == [False, True, False]
