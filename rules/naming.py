"""Names that Prometheus and Alertmanager accept, made from any text, without two texts silently becoming one."""

import re
from collections.abc import Iterable, Mapping

VALUE_CHARS = 256
"""Longer label values are cut: they are for reading and grouping, and Alertmanager repeats them in every post."""


def metric_name(text: str) -> str:
    """Return `text` with every character outside [a-zA-Z0-9_:] as an underscore."""
    return _no_leading_digit(re.sub(r"[^a-zA-Z0-9_:]", "_", text))


def label_name(text: str) -> str:
    """Return `text` as a label name; two leading underscores, which Prometheus reserves, become one."""
    return re.sub(r"^__+", "_", _no_leading_digit(re.sub(r"[^a-zA-Z0-9_]", "_", text)))


def label_names(texts: Iterable[str]) -> dict[str, str]:
    """Map each text to a label name of its own.

    A text that is a valid name keeps it; of the others, in alphabetical order, one that meets a taken name gets _2, _3.
    """
    names = {text: text for text in texts if label_name(text) == text}
    taken = set(names)
    for text in sorted(set(texts) - names.keys()):
        base = label_name(text)
        free = next(n for n in _variants(base) if n not in taken)
        names[text] = free
        taken.add(free)
    return names


def alert_labels(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return attributes as alert labels: valid distinct names, no empty values, long ones cut with an ellipsis."""
    filled = {k: str(v) for k, v in attributes.items() if v is not None and str(v)}
    names = label_names(list(filled))
    return {names[k]: cut(v) for k, v in filled.items()}


def cut(value: str) -> str:
    """Cut a label value to VALUE_CHARS characters."""
    return value if len(value) <= VALUE_CHARS else value[: VALUE_CHARS - 1] + "…"


def _no_leading_digit(name: str) -> str:
    return name if name and not name[0].isdigit() else "_" + name


def _variants(base: str) -> Iterable[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1
