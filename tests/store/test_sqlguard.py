"""SQL that a person wrote reads tables of the store and nothing else, however it is dressed up."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch
from store.database import Database
from store.errors import UsageError
from store.sqlguard import REFUSED_FUNCTIONS, TABLE_FUNCTIONS, check

MARK = "MARK-9f3a"
NOON = datetime(2026, 11, 30, 12)

HOSTILE = [
    # files by function, wherever it stands
    "SELECT * FROM read_text('{dir}/secret.txt')",
    "SELECT * FROM read_blob('{dir}/secret.txt')",
    "SELECT * FROM read_csv('{dir}/secret.csv')",
    "SELECT * FROM read_csv_auto('{dir}/secret.csv')",
    "SELECT * FROM READ_TEXT('{dir}/secret.txt')",
    "SELECT * FROM \"read_text\"('{dir}/secret.txt')",
    "SELECT * FROM main.read_text('{dir}/secret.txt')",
    "SELECT * FROM system.main.read_text('{dir}/secret.txt')",
    "SELECT * FROM read_parquet('{lake}/spans/x.parquet')",
    "SELECT * FROM read_parquet(['{lake}/spans/x.parquet'])",
    "SELECT * FROM parquet_scan('{lake}/spans/x.parquet')",
    "SELECT * FROM parquet_metadata('{lake}/spans/x.parquet')",
    "SELECT * FROM parquet_schema('{lake}/spans/x.parquet')",
    "SELECT * FROM parquet_kv_metadata('{lake}/spans/x.parquet')",
    "SELECT * FROM read_json('{dir}/secret.json')",
    "SELECT * FROM read_ndjson_objects('{dir}/secret.json')",
    "SELECT * FROM read_duckdb('{dir}/infractl.duckdb')",
    "SELECT * FROM sniff_csv('{dir}/secret.csv')",
    "SELECT * FROM glob('{dir}/*')",
    "FROM glob('{lake}/**')",
    "FROM read_text('{dir}/secret.txt') SELECT content",
    "WITH a AS (SELECT * FROM read_text('{dir}/secret.txt')) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a, read_text('{dir}/secret.txt')) FROM a",
    "SELECT (SELECT content FROM read_text('{dir}/secret.txt'))",
    "SELECT 1 WHERE EXISTS (FROM read_text('{dir}/secret.txt'))",
    "SELECT * FROM spans s, LATERAL (SELECT * FROM read_text('{dir}/secret.txt')) t",
    "SELECT * FROM spans POSITIONAL JOIN read_text('{dir}/secret.txt')",
    "SELECT 1 UNION ALL SELECT content FROM read_text('{dir}/secret.txt')",
    "SELECT 1 ORDER BY (SELECT size FROM read_text('{dir}/secret.txt'))",
    "SELECT 1 LIMIT (SELECT size FROM read_text('{dir}/secret.txt'))",
    "SELECT * FROM range((SELECT size FROM read_text('{dir}/secret.txt')))",
    "PIVOT read_text('{dir}/secret.txt') ON filename IN ('a')",
    "SELECT * FROM (PIVOT (FROM read_text('{dir}/secret.txt')) ON size IN (1))",
    "UNPIVOT (FROM read_text('{dir}/secret.txt')) ON content",
    "SELECT list_transform([1], lambda x: (SELECT content FROM read_text('{dir}/secret.txt')))",
    "SELECT COLUMNS(lambda c: (SELECT count(*) > 0 FROM read_text('{dir}/secret.txt'))) FROM spans",
    "EXPLAIN SELECT * FROM read_text('{dir}/secret.txt')",
    "EXPLAIN ANALYZE SELECT * FROM read_text('{dir}/secret.txt')",
    "EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM read_text('{dir}/secret.txt')",
    "/* EXPLAIN SELECT 1 */ SELECT * FROM read_text('{dir}/secret.txt')",
    "EXPLAIN /* SELECT 1 */ -- x\n SELECT * FROM read_text('{dir}/secret.txt')",
    "/* /* */ EXPLAIN SELECT '*/ EXPLAIN ANALYZE SELECT * FROM read_text(''{lake}/x'') --'",
    "/* /* */ EXPLAIN SELECT 1 -- */ EXPLAIN ANALYZE SELECT * FROM read_text('{dir}/secret.txt')",
    "--\r EXPLAIN ANALYZE SELECT * FROM read_text('{dir}/secret.txt') /* \n EXPLAIN SELECT 1 -- */",
    "EXPLAIN (SELECT * FROM read_text('{dir}/secret.txt'))",
    "EXPLAIN EXPLAIN SELECT * FROM read_text('{dir}/secret.txt')",
    "/*/*" + "/**/" * 5_000 + "*/*/ EXPLAIN SELECT * FROM read_text('{dir}/secret.txt')",
    "DESCRIBE SELECT * FROM read_csv('{dir}/secret.csv')",
    "SUMMARIZE SELECT * FROM read_csv('{dir}/secret.csv')",
    "SELECT * FROM (DESCRIBE FROM read_csv('{dir}/secret.csv'))",
    # files by name
    "SELECT * FROM '{dir}/secret.csv'",
    'SELECT * FROM "{dir}/secret.csv"',
    "FROM '{lake}/spans/x.parquet'",
    "DESCRIBE '{dir}/secret.csv'",
    "SUMMARIZE '{dir}/secret.csv'",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM 'https://127.0.0.1/x.csv'",
    "SELECT * FROM secret.csv",
    "SELECT * FROM '*.csv'",
    'WITH "{dir}/secret.csv" AS (FROM "{dir}/secret.csv") FROM "{dir}/secret.csv"',
    'SELECT * FROM (WITH "{dir}/secret.csv" AS (SELECT 1) SELECT 1), "{dir}/secret.csv"',
    "SELECT * FROM (WITH duckdb_logs AS (SELECT 1) SELECT 1), duckdb_logs",
    # SQL in SQL
    "SELECT * FROM query('SELECT * FROM read_text(''{dir}/secret.txt'')')",
    "SELECT * FROM query_table('{dir}/secret.csv')",
    "SELECT * FROM query_table(['spans'])",
    "SELECT * FROM histogram('{dir}/secret.csv', a)",
    "SELECT * FROM histogram_values('{dir}/secret.csv', a)",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    # settings, secrets, what others asked, pointers
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://b', 's3')",
    "SELECT * FROM duckdb_logs",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_variables()",
    "SELECT * FROM pg_settings",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT current_setting('temp_directory')",
    "SELECT getvariable('x')",
    "SELECT getenv('HOME')",
    "SHOW memory_limit",
    "SHOW VARIABLES",
    "SELECT write_log('x')",
    "SELECT pg_sleep(1000)",
    "SELECT * FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT nextval('x')",
    "SELECT finalize('x'::BLOB)",
    # not a SELECT, or not one
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE ingest_drops",
    "SELECT 1 --\n; DROP TABLE ingest_drops",
    "DELETE FROM spans",
    "EXPLAIN ANALYZE DELETE FROM hot_spans",
    "INSERT INTO ingest_drops (reason) VALUES ('x') RETURNING *",
    "WITH x AS (INSERT INTO ingest_drops (reason) VALUES ('x') RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM ingest_drops RETURNING *) SELECT * FROM x",
    "SELECT * FROM (INSERT INTO ingest_drops (reason) VALUES ('x') RETURNING *)",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM ingest_drops RETURNING *) SELECT * FROM x",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE MACRO m() AS TABLE FROM read_text('{dir}/secret.txt')",
    "SELECT 1 INTO x",
    "COPY spans TO '{dir}/out.csv'",
    "COPY (SELECT 1) TO '{dir}/out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{dir}/out.csv'",
    "EXPORT DATABASE '{dir}/out'",
    "IMPORT DATABASE '{dir}/out'",
    "ATTACH '{dir}/out.db'",
    "DETACH infractl",
    "USE infractl",
    "INSTALL httpfs",
    "LOAD '{dir}/secret.txt'",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET operator_memory_limit = '1TB'",
    "SET VARIABLE x = 1",
    "RESET threads",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CALL duckdb_settings()",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CREATE SECRET s (TYPE s3)",
    "PIVOT spans ON service",
    # text that is no statement
    "",
    ";",
    "not sql",
    "SELECT '\x00'",
    "SELECT 1 \x00; DROP TABLE ingest_drops",
    "SELECT '\ud800'",
    "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "SELECT " + "+".join(["1"] * 900),
    "SELECT " + "f(" * 5_000,
    "SELECT * FROM " + "(SELECT * FROM " * 800 + "spans" + ")" * 800,
    "SELECT 1 --" + "x" * 1_000_000,
    "SELECT * FROM \uff52ead_text('{dir}/secret.txt')",
    "SELECT * FROM \u2018{dir}/secret.csv\u2019",
    "SELECT * FROM \u202eread_text('{dir}/secret.txt')",
]

FRIENDLY = [
    "SELECT 1",
    "  select count(*) AS n from spans -- how many\n;",
    "FROM spans",
    "TABLE spans",
    "VALUES (1), (2)",
    "SELECT * FROM hot_spans",
    "SELECT * FROM main.spans",
    "SELECT * FROM infractl.main.ingest_batch",
    "FROM spans SELECT service",
    "SELECT * EXCLUDE (ttft_s) FROM spans s ORDER BY ts DESC NULLS LAST LIMIT 10 OFFSET 2",
    "SELECT DISTINCT ON (service) * FROM spans ORDER BY service, ts DESC",
    "SELECT service, row_number() OVER (PARTITION BY service ORDER BY ts) AS n FROM spans QUALIFY n = 1",
    "SELECT avg(ttft_s) OVER w FROM spans WINDOW w AS (ORDER BY ts RANGE INTERVAL 1 HOUR PRECEDING)",
    "SELECT quantile_cont(ttft_s, [0.5, 0.99]) FILTER (WHERE ttft_s > 0) FROM spans GROUP BY ALL",
    "WITH a AS (SELECT * FROM spans), b AS (FROM a) SELECT * FROM b JOIN a USING (ts)",
    "WITH a AS MATERIALIZED (SELECT 1 AS x) SELECT * FROM a",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
    "WITH spans AS (SELECT 1 AS x) FROM spans",
    "PIVOT spans ON service IN ('a', 'b') USING avg(ttft_s) GROUP BY host",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b",
    "SELECT m.value FROM spans ASOF JOIN metric_samples m ON spans.ts >= m.ts",
    "SELECT x FROM spans s, LATERAL (SELECT s.ttft_s * 2) t(x)",
    "SELECT x FROM token_arrivals a, unnest(a.offsets_us) u(x)",
    "SELECT unnest([1, 2, 3])",
    "SELECT * FROM range(10) r(i) POSITIONAL JOIN generate_series(1, 10) g",
    "SELECT * FROM spans USING SAMPLE 10%",
    "SELECT table_name FROM information_schema.tables",
    "SELECT * FROM duckdb_columns() WHERE table_name = 'spans'",
    "SELECT * FROM pragma_table_info('spans')",
    "DESCRIBE spans",
    "DESCRIBE SELECT 1",
    "SUMMARIZE spans",
    "SHOW TABLES",
    "EXPLAIN SELECT * FROM spans",
    "explain analyze SELECT count(*) FROM spans",
    "EXPLAIN (FORMAT json) SELECT 1",
    "/* why */ EXPLAIN -- slow?\n SELECT 1",
    "EXPLAIN (SELECT 1)",
    "-- a\r\n/* b */ EXPLAIN " + "/**/" * 5_000 + " SELECT 1",
    "SELECT list_transform([1, 2], lambda x: x + 1), [x * 2 FOR x IN [1, 2] IF x > 1]",
    "SELECT COLUMNS('t.*') FROM spans",
    "SELECT COLUMNS(lambda c: c LIKE 't%') FROM spans",
    "SELECT CASE WHEN ttft_s > 1 THEN 'slow' END, CAST(ts AS DATE), {{'a': 1}}.a, MAP {{'k': 1}}['k'] FROM spans",
    "SELECT CAST(1 AS DECIMAL(10, 2)), CAST([1] AS INT[]), CAST({{'a': 1}} AS STRUCT(a INT))",
    "SELECT CAST('a' AS ENUM ('a', 'b'))",
    "SELECT service, count(*) FROM spans GROUP BY ROLLUP (service)",
    "SELECT 1 AS x UNION ALL BY NAME SELECT 2 AS x EXCEPT SELECT 3",
    "SELECT * FROM spans WHERE service IN (SELECT service FROM spans) AND EXISTS (SELECT 1) LIMIT 10%",
    "SELECT json_extract_string(attributes, '$.a'), attributes->>'a' FROM spans",
    "SELECT time_bucket(INTERVAL 5 MINUTE, ts) AS b, avg(ttft_s) FROM spans GROUP BY b ORDER BY ALL",
    "SELECT * FROM spans SEMI JOIN metric_samples USING (ts)",
    "SELECT '{dir}/secret.csv' AS text, 'read_text' AS function",
    "SELECT 'naïve – 日本語' AS \"größe\"",
    "SELECT " + " + ".join(["1"] * 200),
    "SELECT * FROM spans WHERE trace_id IN (" + ", ".join(f"'{i:032x}'" for i in range(5_000)) + ")",
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("guarded")
    for name in ("secret.txt", "secret.json"):
        (folder / name).write_text(f'{{"a": "{MARK}"}}')
    (folder / "secret.csv").write_text(f"a\n{MARK}\n")
    with Database(folder) as made:
        (Path(made.lake) / "spans").mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"a": [MARK]}).write_parquet(Path(made.lake) / "spans" / "x.parquet")
        rows = {"ts": [NOON + timedelta(seconds=i) for i in range(3)], "ttft_s": [0.1, 0.2, 0.3]}
        ids = {"trace_id": [f"{i:032x}" for i in range(3)], "span_id": [f"{i:016x}" for i in range(3)]}
        made.append([Batch("t", {"spans": pl.DataFrame(ids | rows)}, {"bad": 1})])
        yield made


def ask(database: Database, text: str) -> list[dict[str, object]]:
    filled = text.replace("{lake}", database.lake.rstrip("/")).replace("{dir}", str(database.directory))
    filled = filled.replace("{{", "{").replace("}}", "}")
    with database.snapshot() as cursor:
        check(filled, cursor)
    rows: list[dict[str, object]] = database.sql(filled).to_pylist()
    return rows


def disk(database: Database) -> dict[str, bytes]:
    """Files of the data directory and what is in them, but for DuckDB's own and the journal's."""
    files = (path for path in database.directory.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if ".duckdb" not in path.name and "journal" not in str(path)}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:70])
def test_hostile_sql_is_refused_and_changes_nothing(database: Database, text: str):
    files, counts = disk(database), database.counts()
    with pytest.raises(UsageError) as caught:
        ask(database, text)
    assert MARK not in str(caught.value) + caught.value.hint
    assert caught.value.hint
    assert disk(database) == files
    assert database.counts() == counts


@pytest.mark.parametrize("text", FRIENDLY, ids=lambda text: text[:70])
def test_a_plain_question_is_answered(database: Database, text: str):
    assert isinstance(ask(database, text), list)


def test_the_refusal_names_the_function_or_the_table(database: Database):
    with pytest.raises(UsageError, match=r"read_text\(\)") as caught:
        ask(database, "SELECT * FROM read_text('x')")
    assert "infractl import" in caught.value.hint
    with pytest.raises(UsageError, match=r"the file 'prices\.csv'"):
        ask(database, "SELECT * FROM 'prices.csv'")
    with pytest.raises(UsageError, match="there is no table 'spanz'") as caught:
        ask(database, "SELECT * FROM spanz")
    assert caught.value.hint == "did you mean spans?"


def test_every_function_of_this_duckdb_that_sounds_dangerous_is_known(database: Database):
    """A canary: a later DuckDB may bring one that nobody has looked at."""
    with database.snapshot() as cursor:
        found = cursor.execute("SELECT DISTINCT function_name, function_type FROM duckdb_functions()").fetchall()
    sounds = re.compile("file|read_|write|setting|secret|env|sleep|exec|getvar|seqval|nextval|setval|attach|scan|url_")
    scalars = {name for name, kind in found if kind not in ("table", "table_macro", "pragma") and sounds.search(name)}
    harmless = {"parse_filename", "url_decode", "url_encode"}
    assert {name for name in scalars if not name.startswith("__")} - REFUSED_FUNCTIONS <= harmless
    readers = {name for name, kind in found if kind in ("table", "table_macro") and sounds.search(name)}
    assert not readers & TABLE_FUNCTIONS
