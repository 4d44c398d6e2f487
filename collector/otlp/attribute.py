"""One attribute with all that follows from its name and value, so that a value sent a thousand times is read once."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from collector.otlp.arrivals import ARRIVAL_NAMES
from collector.otlp.content import ContentOptions, kept_value
from collector.otlp.dialects import Converter, Index
from collector.otlp.parameters import COLUMN as PARAMETERS

_LEFT_OUT = ""


class Attribute(NamedTuple):
    """A name, its value as stored, and the column that it fills (None: none) at which rank with what."""

    key: str
    value: Any
    cut: bool
    column: str | None
    rank: int
    converted: Any


class Promoted(NamedTuple):
    """Column values, the attribute each came from, those that fill no column, and whether a value was cut."""

    found: dict[str, Any]
    origin: dict[str, Attribute]
    rest: dict[str, Any]
    cut: bool


def prepare(key: str, value: Any, options: ContentOptions, names: Index) -> Attribute:
    """Cut a value or leave it out, as `options` say, and read it as the column of its name.

    Arrays of arrival times are read whole: they are stored in a table of their own. So are parameters, where they fit.
    """
    entry = names.get(key)
    kept = kept_value(key, value, options)
    if kept is None:
        return _of_content(key, value, entry)
    stored, cut = kept
    if entry is None:
        return Attribute(key, stored, cut, None, 0, None)
    column, rank, read = entry
    whole = column in ARRIVAL_NAMES or column == PARAMETERS
    converted = read(value if whole else stored)
    if converted is None:
        return Attribute(key, stored, cut, None, 0, None)
    return Attribute(key, stored, cut and not whole, column, rank, converted)


def _of_content(key: str, value: Any, entry: tuple[str, int, Converter] | None) -> Attribute:
    """Read the columns that content holds; its text is left out."""
    converted = entry[2](value) if entry else None
    if entry is None or converted is None:
        return Attribute(key, None, False, _LEFT_OUT, 0, None)
    return Attribute(key, None, False, entry[0], entry[1], converted)


def prepare_all(attributes: Mapping[str, Any], options: ContentOptions, names: Index) -> list[Attribute]:
    """Prepare the attributes of one span or resource."""
    return [prepare(key, value, options, names) for key, value in attributes.items()]


def promote(attributes: Iterable[Attribute]) -> Promoted:
    """Split attributes of different names into columns and the rest.

    A name that loses to a better one, and a value that does not convert, stay in the rest.
    """
    found: dict[str, Any] = {}
    held: dict[str, Attribute] = {}
    rest: dict[str, Any] = {}
    cut = False
    for attribute in attributes:
        key, value, shortened, column, rank, converted = attribute
        if shortened:
            cut = True
        if column is None:
            rest[key] = value
        elif column in held:
            best, other = (held[column], attribute) if held[column].rank <= rank else (attribute, held[column])
            found[column], held[column] = best.converted, best
            rest[other.key] = other.value
        elif column:
            found[column], held[column] = converted, attribute
    return Promoted(found, held, rest, cut)
