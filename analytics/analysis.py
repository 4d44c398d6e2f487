"""`Analysis`: a question with its inputs, parameters, outputs, signals and triggers, declared as one value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from analytics.result import Frames, Result, Signal, Trigger
from store.errors import UsageError
from store.query import Choice, Query, Where
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

Inputs = Mapping[str, "pl.DataFrame"]


def param(default: Any, doc: str, **more: Any) -> Any:
    """Field of a Params class: its default and its help text.

    `choices=(…)` limits the values; so does `within=(low, high)`, both bounds included.
    """
    return field(default=default, metadata={"doc": doc, **more})


@dataclass(frozen=True, kw_only=True, slots=True)
class Params:
    """Parameters every analysis has; each adds its own as a frozen dataclass on top.

    Values are str, int, float, bool or a tuple of str (comma-separated on the command line).
    """

    where: Where = param((), "keep rows with k=v; equal keys are or-ed")
    by: tuple[str, ...] = param(("service",), "labels to group by; none for one group")


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, kw_only=True)
class Analysis(Generic[P]):
    """One analysis. `inputs` names what it reads; `run(inputs, params, window)` is pure.

    `lookback` and `every` are how far back and how often `serve` runs it unless the configuration says otherwise.
    """

    name: str
    title: str
    doc: str
    params: type[P]
    inputs: Callable[[P], Mapping[str, Query | Choice]]
    frames: Frames
    run: Callable[[Inputs, P, Window], Result]
    signals: tuple[Signal, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    lookback: timedelta = timedelta(hours=24)
    every: timedelta = timedelta(seconds=30)

    def make_params(self, given: Mapping[str, Any]) -> P:
        """Build parameters from texts or JSON values by field name. Raises UsageError for an unknown or bad one."""
        known = {f.name: f for f in fields(self.params)}
        values = {}
        for name, value in given.items():
            if name not in known:
                raise UsageError(f"analysis {self.name} has no parameter {name!r}", "parameters: " + ", ".join(known))
            values[name] = _convert(known[name], value)
        return self.params(**values)


_OUTSIDE_BRACES = re.compile(r",(?![^{]*\})")


def _convert(spec: "Field[Any]", value: Any) -> Any:
    default = spec.default if spec.default is not MISSING else None
    choices = spec.metadata.get("choices")
    try:
        if spec.name == "where":
            return tuple((str(k), str(v)) for k, v in value)
        if isinstance(default, tuple):
            parts = _OUTSIDE_BRACES.split(value) if isinstance(value, str) else value
            return tuple(str(p) for p in parts if str(p) and str(p) != "none")
        made: Any = type(default)(value) if default is not None and not isinstance(default, bool) else value
        if isinstance(default, bool):
            made = value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
    except (TypeError, ValueError, KeyError):
        raise UsageError(f"{spec.name} cannot be {value!r}", spec.metadata.get("doc", "")) from None
    within = spec.metadata.get("within")
    if within and not within[0] <= made <= within[1]:
        raise UsageError(f"{spec.name} cannot be {made!r}", f"from {within[0]} to {within[1]}")
    if choices and made not in choices:
        raise UsageError(f"{spec.name} cannot be {made!r}", "one of: " + ", ".join(map(str, choices)))
    return made
