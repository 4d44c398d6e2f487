"""The section `store` says how the store is kept; a fault is named with its line."""

from datetime import timedelta
from pathlib import Path

import pytest

from infractl.configfile import load
from infractl.storage import configured_store, store_settings
from store.errors import ConfigError
from store.settings import Retention, S3Settings, StoreSettings


def _config(tmp_path: Path, text: str):
    (tmp_path / "infractl.yaml").write_text(text)
    return load(tmp_path / "infractl.yaml")


def test_every_key_is_read(tmp_path: Path):
    config = _config(
        tmp_path,
        """store:
  hot: 2h
  lake: s3://bucket/prefix
  s3: {endpoint: "http://127.0.0.1:9000", region: eu-1, timeout: 5s}
  node: gpu-7
  journal_limit: 4GiB
  min_free: 1GiB
  memory_limit: 2GiB
  threads: 3
  spill_limit: 20GiB
  query_time: 5s
  query_rows: 10
  query_memory: 100MB
  queries: 2
  retention:
    spans: {age: 14d, size: 50GB}
""",
    )
    made = store_settings(config)
    assert (made.hot, made.lake, made.node, made.threads) == (timedelta(hours=2), "s3://bucket/prefix", "gpu-7", 3)
    assert (made.journal_limit_bytes, made.min_free_bytes, made.memory_limit_bytes) == (4 * 2**30, 2**30, 2 * 2**30)
    assert (made.spill_limit_bytes, made.query_memory_bytes) == (20 * 2**30, 100_000_000)
    assert (made.query_time_s, made.query_rows, made.queries) == (5.0, 10, 2)
    assert made.s3 == S3Settings("http://127.0.0.1:9000", "eu-1", 5.0)
    assert made.retention == {"spans": Retention(timedelta(days=14), 50 * 10**9)}


def test_without_the_section_the_defaults_hold(tmp_path: Path):
    assert store_settings(_config(tmp_path, "serve: {}\n")) == StoreSettings()
    assert configured_store() == StoreSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("store:\n  hot: soon\n", r"line 2: store\.hot"),
        ("store:\n  min_free: lots\n", r"line 2: store\.min_free"),
        ("store:\n  threads: 0\n", r"line 2: store\.threads"),
        ("store:\n  retention:\n    span: {age: 1d}\n", r"line 3: there is no table 'span'"),
        ("store:\n  retention:\n    spans: {age: never}\n", r"line 3: store\.retention\.spans\.age"),
        ("store:\n  hots: 1h\n", "line 2"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, told: str):
    with pytest.raises(ConfigError, match=told):
        store_settings(_config(tmp_path, text))
