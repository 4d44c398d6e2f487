"""Colours, and which service has which: Okabe-Ito for things, severity colours only for meaning."""

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from zlib import crc32

from analytics.result import Severity

OKABE_ITO = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#F0E442", "#999999")
"""Okabe & Ito's colours, told apart in every form of colour blindness; `Theme.series` swaps yellow on white."""

CLEAR = 6
"""The first six are given first: yellow (black on white) and grey look like marks of the page itself."""

FONT = "Inter, ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

WORDS = {Severity.CRITICAL: "Critical", Severity.WARNING: "Warning", Severity.INFO: "Info", None: "OK"}
"""Word beside a severity's icon: colour never stands alone."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours a figure needs; the same values stand in assets/dashboard.css for the rest of the page."""

    name: str
    ink: str
    quiet: str
    grid: str
    surface: str
    accent: str
    band: str
    mark: str
    episode: str
    series: tuple[str, ...]


DARK = Theme(
    name="dark",
    ink="#E6E9EE",
    quiet="#9AA4B2",
    grid="#262D38",
    surface="#151A21",
    accent="#6EA8FE",
    band="rgba(110,168,254,0.18)",
    mark="#FF7B72",
    episode="rgba(255,123,114,0.12)",
    series=OKABE_ITO,
)
LIGHT = Theme(
    name="light",
    ink="#1B2430",
    quiet="#5A6675",
    grid="#E4E8EE",
    surface="#FFFFFF",
    accent="#1F5FCC",
    band="rgba(31,95,204,0.13)",
    mark="#C4291C",
    episode="rgba(196,41,28,0.08)",
    series=(*OKABE_ITO[:6], "#000000", "#777777"),
)


def named(name: str) -> Theme:
    """Return the theme of that name; dark for any other."""
    return LIGHT if name == "light" else DARK


class Colours:
    """Which slot of the palette a name has: the same on every page, for as long as the process lives.

    A name starts from the slot its hash gives, so it mostly keeps its colour over restarts too, and takes the next
    free one where that is taken. Beyond eight names colours repeat, and labels must tell them apart.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._lock = Lock()

    def learn(self, names: Iterable[str]) -> None:
        """Give each name its slot, in sorted order, so that one page decides for all its services at once."""
        for name in sorted(set(names)):
            self.slot(name)

    def slot(self, name: str) -> int:
        """Return the slot of a name, 0 to 7."""
        with self._lock:
            if name not in self._slots:
                first, taken = crc32(name.encode()), set(self._slots.values())
                order = [*((first + i) % CLEAR for i in range(CLEAR)), *range(CLEAR, len(OKABE_ITO))]
                self._slots[name] = next((slot for slot in order if slot not in taken), first % len(OKABE_ITO))
            return self._slots[name]

    def of(self, name: str, theme: Theme) -> str:
        """Return the colour of a name in a theme."""
        return theme.series[self.slot(name)]
