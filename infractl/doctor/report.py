"""What the doctor found, as JSON and as text."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from infractl.doctor.advice import Advice, worst_first
from infractl.doctor.catalog import diagnose
from infractl.doctor.facts import Facts
from store.window import format_time

_SHOWN = 3  # subjects named where one advice holds for many


def report(facts: Facts) -> dict[str, Any]:
    """Run every check. Advice is worst first; `looked_at` says what it rests on."""
    return {
        "window": {"start": format_time(facts.since), "end": format_time(facts.now)},
        "looked_at": {
            "targets": facts.series.select("job", "instance").unique().height,
            "series": facts.series.height,
            "services": facts.services.height,
        },
        "advice": plain(diagnose(facts)),
    }


def with_advice(made: dict[str, Any], found: Iterable[Advice]) -> dict[str, Any]:
    """Add advice to a report, before what it has."""
    return made | {"advice": [*plain(worst_first(found)), *made["advice"]]}


def plain(found: Iterable[Advice]) -> list[dict[str, Any]]:
    """Advice as JSON values."""
    return [dataclasses.asdict(advice) for advice in found]


def report_text(made: Mapping[str, Any]) -> str:
    """Text of a report: a paragraph per advice, then one line on what was looked at."""
    lines = [line for advice in made["advice"] for line in _paragraph(advice)]
    counted = Counter(advice["severity"] for advice in made["advice"])
    summary = ", ".join(f"{counted[s]} {s}" for s in ("critical", "warning", "info") if counted[s])
    seen, window = made["looked_at"], made["window"]
    lines.append(
        f"{summary or 'Nothing to mend'}: looked at {seen['series']} series of {seen['targets']} targets and "
        f"{seen['services']} services, {window['start']} to {window['end']}"
    )
    return "\n".join(lines) + "\n"


def _paragraph(advice: Mapping[str, Any]) -> list[str]:
    subjects = [advice["subject"], *advice["also"]]
    rest = len(subjects) - _SHOWN
    about = ", ".join(subjects[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
    lines = [f"{advice['severity'].upper():8} {about}", f"         {advice['fact']}", f"       → {advice['remedy']}"]
    return [*lines, *(f"           {line}" for line in advice["lines"]), ""]
