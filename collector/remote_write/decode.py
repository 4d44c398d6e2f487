"""A request of remote write, either protocol, to a `Batch`."""

from dataclasses import dataclass
from datetime import datetime
from types import ModuleType

from google.protobuf.message import DecodeError

from collector.push.batch import Pushed, push
from collector.remote_write import v1, v2
from collector.remote_write.collect import Collected, Senders
from store.errors import SourceError

SOURCE = "remote_write"
MESSAGES: dict[str, ModuleType] = {"prometheus.WriteRequest": v1, "io.prometheus.write.v2.Request": v2}
"""Readers by the name of the message, as the content type says it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a request leaves: the batch, and how many samples and native histograms of it are stored."""

    pushed: Pushed
    samples: int
    histograms: int


def decode(body: bytes, message: str, senders: Senders, at: datetime) -> Written:
    """Decode an uncompressed body, a message of the type named, received at `at` (aware).

    What is refused is counted by reason, everything else is kept. Raises SourceError for a body that is no such
    message.
    """
    found = Collected(senders, at)
    with senders.series.lock:
        try:
            MESSAGES[message].read(body, found)
            points, samples = found.points()
        except DecodeError as error:
            raise SourceError(f"the body is no {message}: {error}", "see what the sender writes") from None
        return Written(push(senders.series, SOURCE, points, at, found.drops), samples, found.histograms)
