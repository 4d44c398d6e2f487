"""The section `store` of infractl.yaml, and the settings of a store that it makes."""

from datetime import timedelta
from typing import Any

import click
import msgspec

from infractl.configfile import ConfigFile
from store.errors import ConfigError, UsageError
from store.nearest import nearest
from store.settings import Retention, S3Settings, StoreSettings
from store.sizes import parse_size
from store.window import parse_duration


class Kept(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How long and how much of a table is kept."""

    age: str | None = None
    size: str | int | None = None


class S3(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where an S3-compatible storage is; credentials come from the AWS variables or the role of the machine."""

    endpoint: str | None = None
    region: str | None = None
    timeout: str | None = None


class Store(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How the store keeps, bounds and seals what it holds; durations like 6h, sizes like 4GiB."""

    hot: str | None = None
    lake: str | None = None
    s3: S3 = S3()
    node: str | None = None
    journal_limit: str | int | None = None
    min_free: str | int | None = None
    memory_limit: str | int | None = None
    threads: int | None = None
    spill_limit: str | int | None = None
    query_time: str | None = None
    query_rows: int | None = None
    query_memory: str | int | None = None
    queries: int | None = None
    retention: dict[str, Kept] = {}


_SIZES = {
    "journal_limit": "journal_limit_bytes",
    "min_free": "min_free_bytes",
    "memory_limit": "memory_limit_bytes",
    "spill_limit": "spill_limit_bytes",
    "query_memory": "query_memory_bytes",
}
_COUNTS = ("threads", "query_rows", "queries")


def store_settings(config: ConfigFile) -> StoreSettings:
    """Read the section. Raises ConfigError with file, line and key."""
    given: Store = config.section("store", Store) or Store()
    made: dict[str, Any] = {"lake": given.lake, "node": given.node}
    for key, field in _SIZES.items():
        if (size := getattr(given, key)) is not None:
            made[field] = _told(config, (key,), parse_size, size)
    for key in _COUNTS:
        if (count := getattr(given, key)) is not None:
            made[key] = _told(config, (key,), _positive, count)
    if given.hot is not None:
        made["hot"] = _told(config, ("hot",), parse_duration, given.hot)
    if given.query_time is not None:
        made["query_time_s"] = _told(config, ("query_time",), parse_duration, given.query_time).total_seconds()
    made["s3"] = _s3(config, given.s3)
    made["retention"] = {name: _kept(config, name, kept) for name, kept in given.retention.items()}
    return StoreSettings(**made)


def configured_store() -> StoreSettings:
    """Return the settings of the running command's configuration, the defaults outside of one."""
    context = click.get_current_context(silent=True)
    return store_settings(context.meta.get("infractl.config", ConfigFile()) if context else ConfigFile())


def _s3(config: ConfigFile, given: S3) -> S3Settings:
    made: dict[str, Any] = {"endpoint": given.endpoint, "region": given.region}
    if given.timeout is not None:
        made["timeout_s"] = _told(config, ("s3", "timeout"), parse_duration, given.timeout).total_seconds()
    return S3Settings(**made)


def _kept(config: ConfigFile, name: str, kept: Kept) -> Retention:
    from store.tables import BY_NAME

    if name not in BY_NAME:
        where = config.where("store", "retention", name)
        close = nearest(name, BY_NAME)
        raise ConfigError(
            f"{where}: there is no table {name!r}",
            f"did you mean {close}?" if close else "tables: " + ", ".join(BY_NAME),
        )
    path = ("retention", name)
    age: timedelta | None = None if kept.age is None else _told(config, (*path, "age"), parse_duration, kept.age)
    return Retention(age, None if kept.size is None else _told(config, (*path, "size"), parse_size, kept.size))


def _positive(count: int) -> int:
    if count < 1:
        raise UsageError(f"{count} is too few", "give a number from 1 on")
    return count


def _told(config: ConfigFile, path: tuple[str, ...], read: Any, value: Any) -> Any:
    """Read a value; a fault is named with its file, line and key."""
    try:
        return read(value)
    except UsageError as error:
        where = config.where("store", *path)
        raise ConfigError(f"{where}: store.{'.'.join(path)}: {error}", error.hint) from error
