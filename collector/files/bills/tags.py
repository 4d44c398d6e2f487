"""Tags of bill lines, in each spelling of the providers, and what they say of environment, service and tenant."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson
import polars as pl

from collector.files.bills.columns import Columns, plain
from collector.files.bills.form import Form
from store.columns import Kind
from store.tables import COSTS

_MEANINGS = {
    "environment": ("environment", "env", "stage", "deploymentenvironment", "deploymentenvironmentname"),
    "service": ("service", "servicename", "application", "app", "component"),
    "tenant": ("tenant", "team", "customer", "project", "costcenter", "businessunit"),
}
"""Tag keys by column of `costs`, in order of preference."""

_OWNERS = ("user:", "user_", "aws:", "system:")  # who set a tag, as AWS writes it before the key
_FIXED = {"line_id", "category", "tokens_kind", "quality", "source"}
LABELLED = frozenset(column.name for column in COSTS.columns if column.kind is Kind.TEXT) - _FIXED
"""Columns of `costs` that --label may set."""


def read_tags(columns: Columns, form: Form) -> list[dict[str, str]]:
    """Return the tags of every line."""
    lines: list[dict[str, str]] = [{} for _ in range(columns.height)]
    for name in columns.real(form.tags):
        table = columns.rows.frame[name]
        known: dict[str, dict[str, str]] = {}
        for line, value in zip(lines, table, strict=True):
            if value is not None:
                key = value if isinstance(value, str) else repr(value)
                if key not in known:
                    known[key] = parse_tags(value)
                line.update(known[key])
    for name in tag_columns(columns, form):
        key = next(name.removeprefix(prefix) for prefix in form.tag_prefixes if name.startswith(prefix))
        for line, value in zip(lines, columns.rows.frame[name], strict=True):
            if value not in (None, ""):
                line[key] = str(value)
    return lines


def tag_columns(columns: Columns, form: Form) -> list[str]:
    """Names of the columns that are one tag each."""
    return [name for name in columns.rows.frame.columns if name.startswith(form.tag_prefixes)]


def parse_tags(value: Any) -> dict[str, str]:
    """Read tags: JSON, Azure's JSON without its braces, or a list of keys and values. What is none of these is kept."""
    if isinstance(value, str):
        value = _json(value)
    if isinstance(value, Mapping):
        return {str(key): _word(item) for key, item in value.items() if item is not None}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return _pairs(value)
    return {"tags": str(value)} if value else {}


def meanings(lines: list[dict[str, str]]) -> dict[str, pl.Series]:
    """Return environment, service and tenant as the tags say."""
    found: dict[str, list[str | None]] = {field: [] for field in _MEANINGS}
    for line in lines:
        keys = {_key(key): value for key, value in reversed(line.items())}
        for field, names in _MEANINGS.items():
            found[field].append(next((keys[name] for name in names if keys.get(name)), None))
    return {field: pl.Series(field, values, pl.String) for field, values in found.items()}


def as_json(lines: list[dict[str, str]]) -> pl.Series:
    """Return tags as JSON text, null where there are none."""
    return pl.Series("tags", [orjson.dumps(line).decode() if line else None for line in lines], pl.String)


def _json(text: str) -> Any:
    text = text.strip()
    for attempt in (text, "{" + text + "}"):
        try:
            return json.loads(attempt)
        except json.JSONDecodeError:
            continue
    return None if text.lower() in ("", "null") else text


def _pairs(items: Iterable[Any]) -> dict[str, str]:
    """Read [{key, value}, …], as Parquet writes maps; words alone are kept together."""
    pairs: dict[str, str] = {}
    words: list[str] = []
    for item in items:
        if not isinstance(item, Mapping):
            words.append(_word(item))
        elif item.get("key") is not None and item.get("value") is not None:
            pairs[str(item["key"])] = _word(item["value"])
    return pairs | ({"tags": ",".join(words)} if words else {})


def _word(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


@lru_cache(maxsize=4096)
def _key(key: str) -> str:
    """Plain key without who set it: 'user:Env' and OCI's 'namespace.env' are env."""
    lower = key.lower()
    owner = next((owner for owner in _OWNERS if lower.startswith(owner)), "")
    return plain(lower[len(owner) :].rpartition(".")[2])
