"""Subscribes to all configured event streams in one thread until closed, and hands their rows to the store.

A thread rather than the event loop: a message costs tens of microseconds to unpack, and engines send thousands.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import zmq

from collector.kv_events.feed import Feed
from collector.kv_events.health import FeedHealth
from collector.kv_events.link import Link
from collector.kv_events.outbox import Outbox
from collector.kv_events.settings import Endpoint, KvEvents, endpoints
from collector.prometheus.gather import Submit
from store.errors import SourceError

TICK_MS = 100
RETRY_S = 5.0
"""Time between two tries to open an address, which another process may hold."""
CLOSING_S = 5.0
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Part:
    """What belongs to one endpoint."""

    feed: Feed
    outbox: Outbox
    link: Link
    error: str = ""
    next_try_s: float = float("-inf")


class KvEventSubscriber:
    """Follows the streams of `entries`; `submit` stores a batch.

    Raises ConfigError for an entry that cannot be used.
    """

    def __init__(self, entries: Iterable[KvEvents], submit: Submit) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = zmq.Poller()
        self._parts = [self._part(endpoint, submit) for endpoint in endpoints(entries)]
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    async def run(self) -> None:
        """Follow the streams until cancelled, then store what waits and close."""
        self.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.to_thread(self.close)

    def start(self) -> None:
        """Begin to follow the streams; without entries there is nothing to do."""
        if self._thread is None and self._parts:
            self._thread = threading.Thread(target=self._follow, name="kv-events", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Store what waits (five seconds at most) and close the sockets. Not to be started again."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._context.term()

    def health(self) -> list[FeedHealth]:
        """Return the state of every endpoint, in the order of the configuration."""
        with self._lock:
            return [_health(part) for part in self._parts]

    def _part(self, endpoint: Endpoint, submit: Submit) -> _Part:
        feed = Feed(endpoint)
        return _Part(feed, Outbox(f"kv_events:{endpoint.address}", feed.rows, submit), Link(self._context, endpoint))

    def _follow(self) -> None:
        more = False
        try:
            while not self._stop.is_set():
                self._poller.poll(0 if more else TICK_MS)
                more = sum(self._turn(part) for part in self._parts) > 0
        except Exception as error:
            log.exception("KV events are no longer followed")
            for part in self._parts:
                part.error = f"no longer followed: {error!r}"
        finally:
            for part in self._parts:
                part.link.close(self._poller)
            self._finish()

    def _turn(self, part: _Part) -> bool:
        """Read, ask and hand over once; tell whether there may be more to read. No fault of one stops the others."""
        now_s = time.monotonic()
        more = False
        try:
            with self._lock:
                more = self._read(part, now_s)
                part.outbox.flush(now_s)
            part.link.watch(self._poller, live=not part.outbox.full)
        except SourceError as error:
            part.error, part.next_try_s = str(error), now_s + RETRY_S
        except Exception as error:  # what escapes here would end the reading of all endpoints
            log.exception("reading %s failed in an unexpected way", part.feed.endpoint.address)
            part.error, part.next_try_s = f"internal error: {error!r}", now_s + RETRY_S
        return more

    def _read(self, part: _Part, now_s: float) -> bool:
        if now_s >= part.next_try_s:
            part.link.open()
            part.error, part.next_try_s = "", float("-inf")
        more = part.link.read(part.feed, live=not part.outbox.full)
        sequence = part.feed.ask(now_s)
        if sequence is not None:
            part.link.ask(sequence, self._poller)
        return more

    def _finish(self) -> None:
        """Hand over what is left, for as long as closing may take."""
        deadline_s = time.monotonic() + CLOSING_S
        left = list(self._parts)
        while left and time.monotonic() < deadline_s:
            left = [part for part in left if not part.outbox.finish()]
            if left:
                time.sleep(0.02)
        for part in left:
            part.outbox.abandon()


def _health(part: _Part) -> FeedHealth:
    endpoint, feed, outbox = part.feed.endpoint, part.feed, part.outbox
    return FeedHealth(
        endpoint=endpoint.address,
        bind=endpoint.bind,
        service=endpoint.service,
        instance=endpoint.instance,
        connected=feed.peers,
        error=part.error,
        replay=feed.replay,
        waiting=outbox.waiting,
        stored=outbox.stored,
        dropped=outbox.dropped,
        malformed=feed.malformed,
        unknown=feed.unknown,
        streams=feed.health(),
    )
