"""Numbers in labels: the bound of a bucket, the quantile of a summary."""

from math import inf, isnan


def bound(text: str | None) -> float | None:
    """Read the label `le`; None where it is no number, or writes infinity otherwise than +Inf."""
    value = number_in_label(text)
    return None if value is None or isnan(value) or (value == inf and text != "+Inf") else value


def quantile(text: str | None) -> float | None:
    """Read the label `quantile`; None where it is not from 0 to 1."""
    value = number_in_label(text)
    return value if value is not None and 0 <= value <= 1 else None


def number_in_label(text: str | None) -> float | None:
    """Read a number; None where it is none, or absent."""
    try:
        return None if text is None or "_" in text else float(text)
    except ValueError:
        return None
