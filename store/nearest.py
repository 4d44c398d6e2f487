"""The hint for a misspelt name."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return 'did you mean X?', or `otherwise` where nothing known is close."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}?" if close else otherwise
