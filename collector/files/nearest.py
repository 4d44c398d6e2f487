"""The hint for a misspelt name."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """Return 'did you mean X?', or an empty text where nothing known is close."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}?" if close else ""
