"""One question to NVML per metric: what a device answers, what it does not have, and when it is lost."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collector.gpu.library import ABSENT, GONE, LOST, Code
from collector.prometheus.exposition import Sample

NOT_NOW: Final = object()
"""The device has it but gives no value at the moment."""

ASK_AGAIN = 240
"""Reads after which a refusal is put to the test again (1 h at 15 s): ECC or MIG may have been switched on."""

_UNAVAILABLE = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class LostError(Exception):
    """The device does not answer; the text is the reason."""


class GoneError(Exception):
    """The driver does not answer for any device; `code` is NVML's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A number within an answer: value = picked number x `scale`; a picked number above `most` is not available."""

    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0
    pick: Callable[[Any], Any] = lambda answer: answer
    most: float = math.inf

    @property
    def text(self) -> str:
        """The metric and the values of its own labels, to name it to a person."""
        return " ".join((self.metric, *self.labels.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A call with the arguments that follow the device handle, and the metrics in its answer.

    `instead` is asked where the device, or its driver, does not know the call.
    """

    call: str
    parts: tuple[Part, ...]
    args: tuple[Any, ...] = ()
    instead: "Ask | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field value (NVML_FI_DEV_*). `scope` is a link or a rail; `since` the first driver where the id means this."""

    id: int
    part: Part
    scope: int = 0
    since: int = 0


@dataclass(slots=True)
class Asker:
    """Asks one device, and remembers what it refused so that it is not asked every time.

    `calling` is the call in progress, to name one that hangs. `answered` and `unknown` count since `begin`.
    """

    nvml: Any
    handle: Any
    calling: str = ""
    answered: int = 0
    unknown: int = 0
    refused: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)
    _reads: int = 0

    def begin(self) -> None:
        """Begin a read."""
        self.answered = self.unknown = 0
        self._reads += 1
        if self._reads % ASK_AGAIN == 0:
            self.refused.clear()

    def end(self) -> None:
        """End a read. Raises LostError where all that came is 'unknown error'."""
        if self.unknown and not self.answered:
            raise LostError("every question is answered by 'unknown error'")

    def ask(self, metric: str, call: str, *args: Any) -> Any:
        """Call a function of NVML with this device's handle and `args`; as `attempt`."""
        function = getattr(self.nvml, call, None)
        if function is None:
            return self._refuse((call, *args), metric, "not known to the installed nvidia-ml-py")
        return self.attempt(metric, (call, *args), lambda: function(self.handle, *args))

    def attempt(self, metric: str, key: tuple[Any, ...], question: Callable[[], Any]) -> Any:
        """Return the answer, NOT_NOW, or None where the device does not have it, which is remembered under `key`.

        Raises LostError and GoneError.
        """
        if key in self.refused:
            return None
        self.calling = key[0]
        try:
            answer = question()
        except self.nvml.NVMLError as error:
            return self._judge(error.value, str(error), key, metric)
        except self.nvml.NVMLLibraryMismatchError:
            return self._refuse(key, metric, ABSENT[Code.FUNCTION_NOT_FOUND])
        except UnicodeDecodeError:
            return NOT_NOW
        finally:
            self.calling = ""
        self.answered += 1
        return answer

    def fields(self, wanted: Iterable[Field]) -> Iterator[tuple[Field, float]]:
        """Ask for many field values in one call; those that the device does not have are left out."""
        asked = [f for f in wanted if (f.id, f.scope) not in self.refused]
        names = ", ".join(dict.fromkeys(f.part.text for f in asked))
        answers = self.ask(names, "nvmlDeviceGetFieldValues", tuple((f.id, f.scope) for f in asked)) if asked else None
        if answers is None or answers is NOT_NOW:
            return
        for wish, answer in zip(asked, answers, strict=False):
            code = answer.nvmlReturn
            if code == 0:
                yield wish, number(getattr(answer.value, _MEMBERS[answer.valueType]), wish.part)
            elif self._judge(code, f"NVML error {code}", (wish.id, wish.scope), wish.part.text) is NOT_NOW:
                yield wish, math.nan

    def _judge(self, code: int, text: str, key: tuple[Any, ...], metric: str) -> Any:
        if code in LOST:
            raise LostError(LOST[Code(code)])
        if code in GONE:
            raise GoneError(code, text)
        if code in ABSENT:
            return self._refuse(key, metric, ABSENT[Code(code)])
        self.unknown += code == Code.UNKNOWN
        return NOT_NOW

    def _refuse(self, key: tuple[Any, ...], metric: str, reason: str) -> None:
        self.refused[key] = (metric, reason)


def number(value: Any, part: Part) -> float:
    """Convert a raw number to base units; NaN for NVML's 'not available' and for what cannot be."""
    if value is None or value in _UNAVAILABLE or value > part.most:
        return math.nan
    return float(value) * part.scale


def answers(asker: Asker, asks: Sequence[Ask], labels: Mapping[str, str]) -> Iterator[Sample]:
    """Ask a table of questions; one sample per metric that the device has."""
    for first in asks:
        ask: Ask | None = first
        while ask is not None:
            name = ask.parts[0].text if len(ask.parts) == 1 else ask.parts[0].metric
            answer = asker.ask(name, ask.call, *ask.args)
            if answer is not None:
                for part in ask.parts:
                    value = math.nan if answer is NOT_NOW else number(part.pick(answer), part)
                    yield Sample(part.metric, {**labels, **part.labels}, value, None)
                break
            ask = ask.instead


def field_answers(asker: Asker, fields: Iterable[Field], labels: Mapping[str, str]) -> Iterator[Sample]:
    """Ask for field values; one sample per metric that the device has."""
    for wish, value in asker.fields(fields):
        yield Sample(wish.part.metric, {**labels, **wish.part.labels}, value, None)
