"""`Form`: how one kind of bill names its columns, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from collector.files.bills.columns import Columns


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of bill. Column names are plain ones (`columns.plain`); the first of several with a value counts.

    `needs` tell the form and stand together in no other. `fields` feed columns of `costs`. `identity` are the columns
    that make a line one line: what is charged, to whom and for when, never how much, so that a line that comes again
    with another amount restates the one before. `categories` are its words for FOCUS' charge categories, `corrections`
    those that restate. `days` says that a line is of one day and its end is not stated. `tag_prefixes` begin the names
    of columns that are tags, `written` of those that hold what people or models wrote. `derive` computes what no column
    says. `source` names the form, by its columns where versions differ.
    """

    source: Callable[[Columns], str]
    needs: frozenset[str]
    fields: Mapping[str, tuple[str, ...]]
    identity: tuple[str, ...]
    categories: Mapping[str, str] = field(default_factory=dict)
    corrections: frozenset[str] = frozenset()
    provider: str | None = None
    days: bool = False
    tags: tuple[str, ...] = ("tags",)
    tag_prefixes: tuple[str, ...] = ("Tags.", "tags.")  # objects in JSON
    written: tuple[str, ...] = ()
    derive: Callable[[Columns, pl.DataFrame], dict[str, pl.Series]] | None = None
