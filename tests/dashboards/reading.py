"""What a page says: the texts and links of a component tree."""

from collections.abc import Iterator
from typing import Any


def parts(tree: Any) -> Iterator[Any]:
    """Walk a component tree: components and texts, outermost first."""
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from parts(item)
    elif tree is not None:
        yield tree
        yield from parts(getattr(tree, "children", None))


def text(tree: Any) -> str:
    """Return all words of a tree, in reading order."""
    return " ".join(str(part) for part in parts(tree) if isinstance(part, (str, int, float)))


def links(tree: Any) -> list[str]:
    """Return where the tree's links lead."""
    return [part.href for part in parts(tree) if getattr(part, "href", None)]


def figures(tree: Any) -> list[str]:
    """Return the names of the tree's figures."""
    return [part.id["name"] for part in parts(tree) if type(part).__name__ == "Graph"]
