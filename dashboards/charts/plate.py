"""`Plate`: what a chart draws from, and what every chart is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from analytics.result import Result
from dashboards import words
from dashboards.figures import Drawn
from dashboards.theme import Theme
from store.zone import DEFAULT

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Plate:
    """A Result, its frames for the service in view, and how they are to look.

    `what` names the service in view, empty where there is one only; `trace` makes the link to a trace.
    """

    result: Result
    frames: Mapping[str, "pl.DataFrame"]
    theme: Theme
    zone: ZoneInfo = DEFAULT
    what: str = ""
    trace: Callable[[str], str] = field(default=str)

    def frame(self, name: str, *columns: str) -> "pl.DataFrame | None":
        """Return a frame with rows and all these columns, else None: a chart of it is left out."""
        frame = self.frames.get(name)
        return None if frame is None or frame.is_empty() or set(columns) - set(frame.columns) else frame

    def subtitle(self, *facts: str) -> str:
        """Join service, window and facts."""
        start, end = self.result.window.start, self.result.window.end
        span = f"{words.moment(start, None, self.zone)} to {words.moment(end, start, self.zone)} {self.zone.key}"
        return " · ".join(fact for fact in (self.what, span, *facts) if fact)


class Chart(Protocol):
    """A figure of an analysis."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Return the figure; None where the frames do not carry it."""
        ...


def plain(text: object) -> str:
    """Write text for a figure, whose texts are a small HTML; what has no name is said to have none."""
    return str(text or words.UNNAMED).replace("&", "&amp;").replace("<", "&lt;")
