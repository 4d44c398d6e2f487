"""Models whose tokens have no price: what they cost is missing from every sum, never 0."""

import json
from collections.abc import Iterator

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.pricing import UNPRICED

_REMEDY = (
    "import a list that knows it, or add what a million tokens cost you to infractl.yaml; "
    "tokens of an engine of your own may stay unpriced"
)


def check(facts: Facts) -> Iterator[Advice]:
    """Name each model of the requests looked at that no price is known of, with the entry to add."""
    for row in facts.models:
        if row["source"] == UNPRICED:
            of = f" of {row['provider']}" if row["provider"] else ""
            fact = f"no price is known{of}: {row['requests']} requests, {row['tokens']} tokens are unpriced"
            yield Advice("unpriced", Severity.INFO, row["model"], fact, _REMEDY, _lines(row["provider"], row["model"]))


def _lines(provider: str | None, model: str) -> tuple[str, ...]:
    who = f", provider: {json.dumps(provider)}" if provider else ""
    return (
        "prices:",
        "  entries:",
        f"    - {{model: {json.dumps(model)}{who}, input_per_1m: PRICE, output_per_1m: PRICE}}",
    )
