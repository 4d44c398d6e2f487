"""What one endpoint sends: messages become rows, gaps become requests for replay, and what never came is counted.

No socket and no clock: `now_s` is any clock that only goes forward.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from collector.kv_events.health import StreamHealth
from collector.kv_events.message import Frames, Message, live_frames, read_payload, replayed_frames
from collector.kv_events.rows import Origin, Rows
from collector.kv_events.sequence import Cursor, Seen
from collector.kv_events.settings import Endpoint
from store.errors import SourceError

GAP, MALFORMED = "gap", "malformed_message"
ASK_EVERY_S = 0.5
"""Shortest time between two requests: an engine answers each with all it kept, up to 10,000 messages."""
ANSWER_S = 10.0
"""Longest silence within an answer; vLLM looks for requests ten times a second."""
UNANSWERED_S = 30.0
IDLE_S = 10.0
"""Silence after which an engine is asked whether it sent more: a gap at the end shows in no later message."""
PATIENCE = 3
"""Requests without an answer before what is missing counts as lost: an engine may be stalled for a while."""

_Key = tuple[str, int | None]


@dataclass(slots=True)
class _Stream:
    """One publisher of an endpoint: a topic and a data-parallel rank."""

    origin: Origin
    cursor: Cursor = field(default_factory=Cursor)
    messages: int = 0
    events: int = 0
    replayed: int = 0
    restarts: int = 0
    last_s: float | None = None


@dataclass(slots=True)
class _Asking:
    """A request for replay on its way."""

    deadline_s: float
    tops: dict[_Key, int]
    first: dict[_Key, int] = field(default_factory=dict)
    answers: int = 0
    fresh: int = 0


class Feed:
    """Everything known of one endpoint. `rows` collects what is to be stored, and what was refused."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.rows = Rows()
        self.malformed = self.unknown = 0
        self.peers = 0
        self._streams: dict[_Key, _Stream] = {}
        self._asking: _Asking | None = None
        self._caught_up = True
        self._unanswered = 0
        self._next_ask_s = float("-inf")
        self._heard_s = float("-inf")
        self._news = False
        self._counted = 0

    @property
    def replay(self) -> str:
        """State of replay: none, waiting, unanswered or caught_up."""
        if self.endpoint.replay is None:
            return "none"
        if self._unanswered:
            return "unanswered"
        if not self.peers and not self._streams:
            return "waiting"
        whole = not any(stream.cursor.missing() for stream in self._streams.values())
        return "caught_up" if self._caught_up and self._asking is None and whole else "waiting"

    def connected(self) -> None:
        """Take note of an engine that is there now: what it sent before is asked for, for it may be a new run."""
        self.peers += 1
        self._begin_again()

    def disconnected(self) -> None:
        """Take note of an engine that went away."""
        self.peers = max(0, self.peers - 1)

    def live(self, parts: list[bytes]) -> None:
        """Take a published message. One that cannot be read is counted."""
        try:
            frames = live_frames(parts)
        except SourceError:
            self._malformed()
            return
        self._take(frames, live=True)
        self._give_up_without_replay()

    def replayed(self, parts: list[bytes], now_s: float) -> None:
        """Take a message sent again, or the mark that ends the answer."""
        asking = self._asking
        if asking is None:
            return
        self._unanswered = 0
        asking.answers += 1
        asking.deadline_s = now_s + ANSWER_S
        try:
            frames = replayed_frames(parts)
        except SourceError:
            self._malformed()
            return
        if frames is None:
            self._answered(asking)
        else:
            self._take(frames, live=False)

    def ask(self, now_s: float) -> int | None:
        """Return the sequence from which to ask for a replay now; None while there is nothing to ask.

        The first question is for all that the engine kept; later ones begin with the last message before the gap,
        whose time tells whether the engine has begun again since.
        """
        if self._news:
            self._news, self._heard_s = False, now_s
        if self._asking is not None and now_s >= self._asking.deadline_s:
            self._silent(self._asking, now_s)
        if self._asking is not None or now_s < self._next_ask_s or self.endpoint.replay is None:
            return None
        start = self._start(now_s)
        if start is not None:
            self._next_ask_s = now_s + ASK_EVERY_S
            self._heard_s = now_s
            tops = {key: stream.cursor.top or 0 for key, stream in self._streams.items()}
            self._asking = _Asking(now_s + ANSWER_S, tops)
        return start

    def health(self) -> tuple[StreamHealth, ...]:
        """Return the state of every stream seen so far."""
        return tuple(
            StreamHealth(
                stream.origin.stream,
                topic,
                rank,
                stream.cursor.top,
                stream.messages,
                stream.events,
                stream.replayed,
                stream.cursor.missing(),
                stream.cursor.lost,
                stream.restarts,
                None if stream.last_s is None else datetime.fromtimestamp(stream.last_s, UTC),
            )
            for (topic, rank), stream in list(self._streams.items())
        )

    def _start(self, now_s: float) -> int | None:
        """First number to ask for, if any."""
        if not self._caught_up:
            return 0
        cursors = [stream.cursor for stream in self._streams.values()]
        holes = [hole for cursor in cursors for hole in cursor.seen.holes()]
        if holes:
            return max(0, min(low for low, _ in holes) - 1)
        if cursors and now_s >= self._heard_s + IDLE_S:
            return min(cursor.top or 0 for cursor in cursors)
        return None

    def _take(self, frames: Frames, *, live: bool) -> None:
        topic = self._topic(frames)
        try:
            message = read_payload(frames.payload)
        except SourceError:
            self._malformed()
            known = [stream for (name, _), stream in self._streams.items() if name == topic]
            if len(known) == 1:  # it came, whatever it said: no gap
                known[0].cursor.take(frames.sequence, None, live=live)
            return
        key = (topic, message.rank)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(self._origin(key))
            if live and self._asking is None:
                self._begin_again()  # what it sent before it was heard
        seen = stream.cursor.take(frames.sequence, message.ts_s, live=live)
        if self._asking is not None and not live:
            self._asking.first.setdefault(key, frames.sequence)
            self._asking.fresh += seen is not Seen.COPY
        if seen is Seen.RESTARTED:
            stream.restarts += 1
            self._begin_again()
        if seen is not Seen.COPY:
            self._news = True
            self._keep(stream, frames.sequence, message, live=live)
        self._count_lost()

    def _keep(self, stream: _Stream, sequence: int, message: Message, *, live: bool) -> None:
        taken = self.rows.add(stream.origin, sequence, message)
        stream.messages += 1
        stream.events += taken
        stream.replayed += not live
        self.unknown += len(message.events) - taken
        if message.events:
            stream.last_s = max(stream.last_s or 0.0, message.ts_s)

    def _begin_again(self) -> None:
        """Ask for what an engine sent before it was heard; an answer on its way is that of the one before."""
        self._asking = None
        self._caught_up = self.endpoint.replay is None
        if self._unanswered:
            self._unanswered, self._next_ask_s = 0, float("-inf")

    def _answered(self, asking: _Asking) -> None:
        """End an answer: what is older than its beginning is lost, and everything asked for where nothing new came.

        An answer may have holes (the engine's socket drops what its queue cannot hold): those are asked for again. So
        is the beginning of a stream that was first heard while the answer came.
        """
        self._asking = None
        self._caught_up = all(key in asking.tops or key in asking.first for key in self._streams)
        for key, top in asking.tops.items():
            below = asking.first.get(key, 0) if asking.fresh else top
            self._streams[key].cursor.give_up(below)
        for key, first in asking.first.items():
            self._streams[key].cursor.give_up(first)
        self._count_lost()

    def _silent(self, asking: _Asking, now_s: float) -> None:
        if asking.answers:
            self._answered(asking)
            return
        self._asking = None
        self._unanswered += 1
        self._next_ask_s = now_s + UNANSWERED_S
        if self._unanswered >= PATIENCE:
            for stream in self._streams.values():
                stream.cursor.give_up(stream.cursor.top or 0)
            self._count_lost()

    def _give_up_without_replay(self) -> None:
        if self.endpoint.replay is None:
            for stream in self._streams.values():
                stream.cursor.give_up(stream.cursor.top or 0)
            self._count_lost()

    def _count_lost(self) -> None:
        lost = sum(stream.cursor.lost for stream in self._streams.values())
        if lost > self._counted:
            self.rows.drops[GAP] += lost - self._counted
            self._counted = lost

    def _malformed(self) -> None:
        self.malformed += 1
        self.rows.drops[MALFORMED] += 1

    def _topic(self, frames: Frames) -> str:
        """Topic of a message; an old replay does not state it."""
        if frames.topic is not None:
            return frames.topic
        topics = {topic for topic, _ in self._streams}
        return topics.pop() if len(topics) == 1 else self.endpoint.topic

    def _origin(self, key: _Key) -> Origin:
        topic, rank = key
        parts = [self.endpoint.address, topic, f"rank{rank}" if rank else ""]
        return Origin("/".join(part for part in parts if part), self.endpoint.service, self.endpoint.instance)
