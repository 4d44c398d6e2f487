"""`Packed`: an alert that works on exporters' own metrics, with the series that must and must not make it fire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rules.alert import Alert
from rules.naming import label_names
from rules.pack.recorded import Derived, Recorded

MINUTE = timedelta(minutes=1)
RAW = "exporters' own metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One alert of the pack.

    `fires` and `quiet` are series as exporters send them, with promtool's notation of their values every 15 s; `labels`
    and `value` are what the alert shows `at` that time. `reads` are the recorded series of its expression, each after
    those it reads itself.
    """

    name: str
    severity: str
    reads: Sequence[Recorded | Derived]
    expr: str
    summary: str
    description: str
    runbook: str
    kept: Sequence[str]
    fires: Mapping[str, str]
    quiet: Mapping[str, str]
    labels: Mapping[str, str]
    value: float
    hold: timedelta = 2 * MINUTE
    keep_firing: timedelta = 5 * MINUTE
    at: timedelta = timedelta(minutes=40)

    def alert(self) -> Alert:
        """Return the alert as any other."""
        return Alert(
            name=self.name,
            expr=self.expr,
            severity=self.severity,
            summary=self.summary,
            description=self.description,
            runbook=self.runbook,
            hold=self.hold,
            keep_firing=self.keep_firing,
            kept=label_names(self.kept),
            own_times=True,
        )
