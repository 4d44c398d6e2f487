"""Tables in files: every shape reads as the same rows; a broken one names file and line."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.files.content import Format, open_content, stem_of
from collector.files.rows import Rows, read_rows
from store.errors import ExitCode, SourceError

ROWS = [{"t": 1, "name": "a", "x": 1.5}, {"t": 2, "name": "b", "x": None}]


def rows_of(path: Path, body: str | bytes) -> Rows:
    path.write_bytes(body.encode() if isinstance(body, str) else body)
    return read_rows(open_content(path))


def refusal(path: Path, body: str | bytes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        rows_of(path, body)
    assert caught.value.code == ExitCode.SOURCE
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(ROWS),
        json.dumps({"rows": ROWS, "count": 2}),
        json.dumps({"1": ROWS[0], "2": ROWS[1]}),
        json.dumps({"0": ROWS[0], "1": ROWS[1]}),
        "\n".join(json.dumps(row) for row in ROWS),
        "\n\n".join(json.dumps(row) for row in ROWS) + "\n",
        "t,name,x\n1,a,1.5\n2,b,\n",
        "\ufefft;name;x\r\n1;a;1.5\r\n\r\n2;b;NaN\r\n",
        't\tname\tx\n1\t"a"\t1.5\n2\tb\tN/A\n',
        '[{"t": 1, "name": "a", "x": 1.5}, {"t": 2, "name": "b", "x": NaN}]',
    ],
)
def test_every_shape_reads_as_the_same_rows(tmp_path: Path, body: str) -> None:
    frame = rows_of(tmp_path / "rows", body).frame
    assert frame.to_dicts() == ROWS
    assert frame.schema == {"t": pl.Int64, "name": pl.String, "x": pl.Float64}


def test_parquet_and_gzip_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    pl.DataFrame(ROWS).write_parquet(tmp_path / "rows.parquet")
    packed = gzip.compress((tmp_path / "rows.parquet").read_bytes())
    assert rows_of(tmp_path / "anything", packed).frame.to_dicts() == ROWS


def test_an_id_that_no_column_repeats_is_kept_as_key(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "a", '{"r1": {"x": 1}, "r2": {"x": 2}}').frame["key"].to_list() == ["r1", "r2"]


def test_objects_in_objects_become_dotted_columns(tmp_path: Path) -> None:
    frame = rows_of(tmp_path / "a", '[{"usage": {"prompt": {"tokens": 5}}, "empty": {}}]').frame
    assert frame.to_dicts() == [{"usage.prompt.tokens": 5, "empty": "{}"}]


def test_nested_and_mixed_values_stay_json_text(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "a", '[{"m": [{"k": 1}], "l": [1, 2], "s": 429}, {"m": "q", "l": [], "s": "late"}]')
    assert rows.json == {"m"}
    assert rows.frame["l"].to_list() == [[1, 2], []]
    assert rows.frame["s"].to_list() == ["429", "late"]


def test_numbers_beyond_64_bits_become_floats(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "a", '[{"n": 1}, {"n": 100000000000000000000000}, {"n": 1e999}]')
    assert rows.frame["n"].to_list() == [1.0, 1e23, float("inf")]


def test_leading_zeros_mark_an_id(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "a.csv", "id,n\n007,1\n08,2\n").frame["id"].to_list() == ["007", "08"]


@pytest.mark.parametrize(
    ("body", "place", "fact"),
    [
        ('{"a":1}\n{"a":2}\n{"a":\n{"a":4}\n', ":3:", "broken JSON"),
        ('[{"a":1},\n{"a":2},\n{"a":}]\n', ":3:", "broken JSON"),
        ('{"a":1}\n[2]\n', ":2:", "no JSON object"),
        ('[{"a":1}, 5]', " row 2:", "no JSON object"),
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", ":3:", "2 cells where the header has 3"),
        ("a,b\n1,2,3\n", ":2:", "3 cells where the header has 2"),
        ('a,b\n1,"2\n3,4\n', ":2:", "unexpected end of data"),
        ('a,b\n"1\n1",2\n3\n', ":4:", "1 cells where the header has 2"),
        ("a,a\n1,2\n", ":1:", "two columns are called 'a'"),
        ("1,2\n3,4\n", ":1:", "numbers where column names should be"),
        (b"a,b\n1,\xff\n", ":2:", "no UTF-8"),
        ('{"a":"\\ud800"}\n', ":1:", "half a surrogate pair"),
        ("[" * 100_000, ":1:", "nested too deep"),
    ],
)
def test_a_broken_file_names_file_line_and_fact(tmp_path: Path, body: str | bytes, place: str, fact: str) -> None:
    path = tmp_path / "log.txt"
    text = str(refusal(path, body))
    assert text.startswith(f"{path}{place}")
    assert fact in text


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        (gzip.compress(b"a,b\n1,2\n" * 999)[:-20], "the gzip stream is broken or cut short"),
        (b"PAR1garbage that is no Parquet file at all", "broken Parquet file"),
        (b"", "is empty"),
        (b"a,b\n", "holds no rows"),
        (b"[]", "holds no rows"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "packed with zstd"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "neither text, Parquet nor OTLP"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_says_why(tmp_path: Path, body: bytes, fact: str) -> None:
    path = tmp_path / "log"
    text = str(refusal(path, body))
    assert str(path) in text
    assert fact in text


def test_a_missing_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        open_content(tmp_path / "none.csv")


def test_a_row_is_named_by_the_line_it_starts_at(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "a.csv", 'a,b\n"x\ny",1\n\nz,2\n')
    assert [rows.where(0), rows.where(1)] == [f"{tmp_path}/a.csv:2", f"{tmp_path}/a.csv:5"]


@pytest.mark.parametrize(
    ("body", "format_"),
    [
        ('{"resourceSpans": []}', Format.OTLP_JSON),
        ('{"resource_spans": []}', Format.OTLP_JSON),
        ("# HELP up x\n", Format.PROMETHEUS),
        ('up{job="a b"} 1 1700000000000\n', Format.PROMETHEUS),
        ("go_goroutines 7\n", Format.PROMETHEUS),
        ("a b\n1 2\n", Format.CSV),
        ("time,value\n", Format.CSV),
        ("\n\n  [1]", Format.JSON),
        ("\n\x0a\x00\x12", Format.OTLP_PROTOBUF),
    ],
)
def test_formats_are_told_from_content(tmp_path: Path, body: str, format_: Format) -> None:
    path = tmp_path / "x"
    path.write_text(body)
    assert open_content(path).format is format_


@pytest.mark.parametrize(
    ("name", "stem"), [("client.jsonl.gz", "client"), ("a.b.csv", "a.b"), ("trace", "trace"), ("m.PROM", "m")]
)
def test_the_stem_drops_endings_that_say_how_a_file_is_written(name: str, stem: str) -> None:
    assert stem_of(Path(name)) == stem


values = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
nested = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), nested, min_size=1), min_size=1, max_size=4))
def test_any_json_objects_become_a_frame_or_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, found: list[object]
) -> None:
    path = tmp_path_factory.mktemp("json") / "rows"
    try:
        rows = rows_of(path, json.dumps(found))
    except SourceError:
        return
    assert rows.frame.height == len(found)
