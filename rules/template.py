"""Summaries of triggers (`P99 of {service} is {value:.1f}x`) as Prometheus templates, and as Prometheus prints them.

A label that a sample lacks reads n/a, never `<no value>`.
"""

import re
from collections.abc import Mapping
from string import Formatter

from store.errors import UsageError

MISSING = "n/a"
_VALUE_SPEC = re.compile(r"(?:,?\.(?P<digits>\d+)(?P<verb>[fge%]))?")


def to_prometheus(summary: str, labels: Mapping[str, str]) -> str:
    """Translate a summary; `labels` maps its fields to the label names that the expression keeps.

    Raises UsageError for a field that is neither `value` nor one of them, or a number format Go cannot print.
    """
    out = []
    for text, field, spec in _parts(summary):
        out.append(text.replace("{{", '{{ "{{" }}'))
        if field == "value":
            out.append("{{ $value | " + _go_format(spec) + " }}")
        elif field is not None:
            if field not in labels or spec:
                known = ", ".join(("value", *labels))
                raise UsageError(
                    f"summary {summary!r} uses {{{field}}}, which the alert does not have", f"use: {known}"
                )
            out.append(f"{{{{ with $labels.{labels[field]} }}}}{{{{ . }}}}{{{{ else }}}}{MISSING}{{{{ end }}}}")
    return "".join(out)


def expand(summary: str, labels: Mapping[str, str], value: float) -> str:
    """Write the text that Prometheus prints for `to_prometheus(summary, …)` at a sample."""
    out = []
    for text, field, spec in _parts(summary):
        out.append(text)
        if field == "value":
            out.append(_format_value(spec, value))
        elif field is not None:
            out.append(labels.get(field) or MISSING)
    return "".join(out)


def _parts(summary: str) -> list[tuple[str, str | None, str]]:
    try:
        return [(text, field, spec or "") for text, field, spec, _ in Formatter().parse(summary)]
    except ValueError as error:
        raise UsageError(f"summary {summary!r} is no template: {error}", "write it like 'P99 of {service}'") from None


def _read_spec(spec: str) -> tuple[int, str]:
    match = _VALUE_SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(
            f"Prometheus cannot print a value as {spec!r}", "use {value}, {value:.1f}, {value:.3g}, {value:.0%}"
        )
    return int(match["digits"] or 4), match["verb"] or "g"


def _go_format(spec: str) -> str:
    digits, verb = _read_spec(spec)
    return "humanizePercentage" if verb == "%" else f'printf "%.{digits}{verb}"'


def _format_value(spec: str, value: float) -> str:
    digits, verb = _read_spec(spec)
    return f"{value * 100:.4g}%" if verb == "%" else f"{value:.{digits}{verb}}"
