"""Units as senders write them (UCUM in OpenTelemetry, words in OpenMetrics) under the names that infractl uses."""

_NAMES = {
    "By": "bytes",
    "Cel": "celsius",
    "Hz": "hz",
    "J": "joules",
    "W": "watts",
    "By/s": "bytes/s",
    "hertz": "hz",
    "seconds": "s",
    "usd": "USD",
}


def unit_name(text: str) -> str | None:
    """Return infractl's name of a unit; `{request}` is request; None for one that says nothing (empty, 1).

    A unit that is not a base unit stays as it is, since its values do.
    """
    named = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    return None if named in ("", "1") else _NAMES.get(named, named)
