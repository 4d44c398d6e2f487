"""State of the event streams, as `status` and the doctor show it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """One stream. Messages are counted, but for `events`.

    `missing` are sought by replay, `lost` never came, `restarts` are those of the engine.
    """

    stream: str
    topic: str
    rank: int | None
    sequence: int | None
    messages: int
    events: int
    replayed: int
    missing: int
    lost: int
    restarts: int
    last_event: datetime | None


@dataclass(frozen=True, slots=True)
class FeedHealth:
    """One endpoint and its streams; `error` is what keeps it from being read, or "".

    `connected` is the number of engines there now. `waiting` rows are not handed to the store yet, `stored` ones are
    committed, `dropped` ones the store did not take. `malformed` messages and `unknown` events could not be read.
    `replay`: none, waiting, unanswered or caught_up.
    """

    endpoint: str
    bind: bool
    service: str | None
    instance: str | None
    connected: int
    error: str
    replay: str
    waiting: int
    stored: int
    dropped: int
    malformed: int
    unknown: int
    streams: tuple[StreamHealth, ...] = ()
