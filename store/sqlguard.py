"""The second wall around SQL that a person wrote: one SELECT over tables of the store, no files, settings or secrets.

The first wall is DuckDB itself (external access disabled, configuration locked, a READ ONLY transaction), but it must
let the views read sealed Parquet files, so a person could name them too. Here DuckDB parses the statement, and every
part of it has to be of a kind that is known to be harmless: what a later DuckDB adds is refused until it is listed.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from store.errors import UsageError
from store.nearest import nearest

if TYPE_CHECKING:
    import duckdb

TEXT_LIMIT = 256 * 1024  # bytes; the tree of a longer statement takes seconds and hundreds of MB


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TABLE_FUNCTIONS = _names(
    """
    range generate_series unnest repeat json_each json_tree duckdb_columns duckdb_constraints
    duckdb_functions duckdb_indexes duckdb_keywords duckdb_memory duckdb_schemas duckdb_tables
    duckdb_types duckdb_views icu_calendar_names pg_timezone_names pragma_database_size
    pragma_storage_info pragma_table_info pragma_version
    """
)
REFUSED_FUNCTIONS = _names(
    """
    combine current_setting currval finalize getenv getvariable json_execute_serialized_sql nextval
    pg_sleep setval sleep_ms to_aggregate_state write_log
    """
)
SYSTEM_VIEWS = _names(
    """
    duckdb_columns duckdb_constraints duckdb_indexes duckdb_schemas duckdb_tables duckdb_types
    duckdb_views sqlite_master sqlite_schema pg_am pg_attrdef pg_attribute pg_class pg_collation
    pg_constraint pg_depend pg_description pg_enum pg_index pg_indexes pg_namespace pg_proc pg_tables
    pg_type pg_views
    """
)
_SCHEMAS = frozenset({"main", "system", "temp", "pg_catalog", "information_schema", "infractl"})
_SHOWN = frozenset({'"tables"', '"schemas"', '"databases"', "__show_tables_expanded"})
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SOURCES = frozenset(
    {"EMPTY", "BASE_TABLE", "TABLE_FUNCTION", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "SHOW_REF", "PIVOT"}
)
_REST = _names(
    """
    ORDER_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER ORDER_DEFAULT ASCENDING
    DESCENDING GENERIC_TYPE_INFO DECIMAL_TYPE_INFO LIST_TYPE_INFO STRUCT_TYPE_INFO ARRAY_TYPE_INFO
    ENUM_TYPE_INFO UNBOUND_TYPE_INFO STRING_TYPE_INFO INVALID_TYPE_INFO
    """
)
# Possessive, so that it matches in one way or not at all. A comment within a comment does not match: DuckDB's comments
# nest, and a text that reads differently to DuckDB than to this expression must not pass.
_SPACE = r"(?>\s|--[^\n\r]*(?:\r?\n|$)|/\*(?:(?!/\*|\*/).)*+\*/)*+"
_OPTIONS = rf"(?:\((?:[\s,]*(?:ANALYZE|FORMAT\s+\w+)\b)+\s*\){_SPACE})?"
_EXPLAIN = re.compile(
    rf"{_SPACE}EXPLAIN\b{_SPACE}(?:ANALYZE\b{_SPACE})?{_OPTIONS}", re.IGNORECASE | re.DOTALL | re.ASCII
)
_PATH = re.compile(r"[^\w \-$]|\.")
_IMPORT = "infractl import FILE reads a file into the store"
_READS = "sql only reads: the store is changed by collectors and import"

Scope = frozenset[str]


def check(text: str, cursor: "duckdb.DuckDBPyConnection") -> None:
    """Raise UsageError unless the text is one SELECT (EXPLAIN, DESCRIBE, SHOW, SUMMARIZE) over tables of the store.

    Tables are those of the cursor's database; a table of DuckDB itself may be read where it says nothing of files,
    settings, secrets or what other people asked.
    """
    tree = _parsed(text, cursor)
    tables = {name.lower() for (name,) in cursor.execute(_TABLES).fetchall()}
    waiting: list[tuple[Any, Scope]] = [(tree, frozenset())]
    while waiting:
        part, scope = waiting.pop()
        if isinstance(part, Mapping):
            _check_part(part, scope, tables)
            waiting.extend(_children(part, scope))
        elif isinstance(part, list):
            waiting.extend((item, scope) for item in part)


_TABLES = (
    "SELECT table_name FROM duckdb_tables() WHERE NOT internal "
    "UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
)


def _parsed(text: str, cursor: "duckdb.DuckDBPyConnection") -> list[Any]:
    """Parse a text that is one SELECT or EXPLAIN of one, and return DuckDB's tree of it."""
    import duckdb
    import orjson

    _check_text(text)
    try:
        found = duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise UsageError(f"sql: {str(error).strip().splitlines()[0]}", "see docs/tables.md for the tables") from error
    if len(found) != 1:
        raise UsageError(f"sql takes one SELECT statement, not {len(found)}", "run them one by one")
    if found[0].type == duckdb.StatementType.EXPLAIN:
        text = _explained(text)
    elif found[0].type == duckdb.StatementType.MULTI:
        raise UsageError("PIVOT needs the values that become columns", "write it like PIVOT t ON a IN ('x', 'y')")
    elif found[0].type != duckdb.StatementType.SELECT:
        raise UsageError(f"sql takes one SELECT statement, not {found[0].type.name}", _READS)
    (told,) = cursor.execute("SELECT json_serialize_sql($1::VARCHAR)", [text]).fetchone() or ("{}",)
    try:
        tree = orjson.loads(told)
    except orjson.JSONDecodeError as error:  # more than 1,024 levels of JSON
        raise UsageError("the statement is nested too deeply", "split it with WITH … AS (…)") from error
    if tree.get("error", True) or len(tree["statements"]) != 1:
        raise UsageError(f"sql: {tree.get('error_message', 'not one statement')}", _READS)
    return list(tree["statements"])


def _explained(text: str) -> str:
    """Return the statement that an EXPLAIN explains."""
    found = _EXPLAIN.match(text)
    if found is None:
        raise UsageError("EXPLAIN must come first", "leave out the comments before it")
    return text[found.end() :]


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError("the statement holds half a character (a lone surrogate)", "send UTF-8") from error
    if size > TEXT_LIMIT:
        raise UsageError(f"the statement is {size:,} bytes, at most {TEXT_LIMIT:,} are read", "join with a table")
    if "\0" in text:
        raise UsageError("the statement holds a null byte", "send it as text")


def _children(part: Mapping[str, Any], scope: Scope) -> Iterator[tuple[Any, Scope]]:
    """Parts of a part, each with the names that WITH gives it: a common table sees those before it, not itself."""
    inner = scope
    for entry in (part.get("cte_map") or {}).get("map", ()):
        yield entry["value"], inner
        inner |= {entry["key"].lower()}
    own = frozenset({str(part["cte_name"]).lower()}) if part.get("cte_name") else frozenset()
    for key, value in part.items():
        if key != "cte_map":
            yield value, inner if key in ("left", "query") else inner | own


def _check_part(part: Mapping[str, Any], scope: Scope, tables: Collection[str]) -> None:
    kind = part.get("type")
    if part.get("class") == "FUNCTION":
        _check_function(part)
    if "class" in part or not isinstance(kind, str):
        return
    if kind == "BASE_TABLE":
        _check_table(part["qualified_name"]["path"], scope, tables)
    elif kind == "TABLE_FUNCTION":
        _check_table_function(part["function"])
    elif kind == "SHOW_REF":
        _check_shown(part, tables)
    elif kind.endswith("_QUERY_NODE"):
        raise UsageError(f"sql takes no {kind.removesuffix('_QUERY_NODE')}", _READS)
    elif kind not in _NODES | _SOURCES | _REST:
        raise UsageError(f"sql does not take {kind.lower().replace('_', ' ')}", "write it as a plain SELECT")


def _check_function(part: Mapping[str, Any]) -> None:
    name = str(part["function_name"]).lower()
    if name in REFUSED_FUNCTIONS or name.startswith("__"):
        raise UsageError(f"sql does not call {name}()", "settings, sequences and logs are not for queries")


def _check_table_function(function: Mapping[str, Any]) -> None:
    name = str(function.get("function_name", "")).lower()
    if name not in TABLE_FUNCTIONS:
        raise UsageError(f"sql does not read from {name}()", f"sql reads the tables of the store only; {_IMPORT}")


def _check_shown(part: Mapping[str, Any], tables: Collection[str]) -> None:
    name = str(part.get("table_name") or "")
    if name and part.get("query") is None and name not in _SHOWN and name.strip('"').lower() not in tables:
        raise UsageError(f"sql does not show {name}", "SHOW TABLES and DESCRIBE table tell what there is")


def _check_table(path: list[str], scope: Scope, tables: Collection[str]) -> None:
    name, schema = path[-1].lower(), [part.lower() for part in path[:-1]]
    shown = ".".join(path)
    if _PATH.search(name) and name not in tables:
        raise UsageError(f"sql does not read the file {shown!r}", f"sql reads the tables of the store only; {_IMPORT}")
    if not schema and name in scope:
        return
    known = schema[-1:] == ["information_schema"] or name in tables or name in SYSTEM_VIEWS
    if not known or not _SCHEMAS.issuperset(schema):
        raise UsageError(f"there is no table {shown!r}", nearest(name, tables, f"tables: {', '.join(sorted(tables))}"))
