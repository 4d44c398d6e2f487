"""The sockets of one endpoint: a SUB that binds or connects, and a DEALER that asks for replays."""

import time
from contextlib import suppress

import zmq
from zmq.utils.monitor import parse_monitor_message

from collector.kv_events.feed import Feed
from collector.kv_events.message import SEQUENCE_BYTES
from collector.kv_events.settings import Endpoint
from store.errors import SourceError

MOST_AT_ONCE = 1_000
"""Messages read in one turn, so that no endpoint keeps the others waiting."""
_QUEUE_MESSAGES = 10_000
_MOST_BYTES = 64 * 2**20  # a message of 10,000 blocks with their token ids is about 2 MB
_HEARTBEAT_MS = 10_000


class Link:
    """Moves messages from the sockets of `endpoint` to a feed."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]", endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._context = context
        self._sub: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._dealer: zmq.Socket[bytes] | None = None

    def open(self) -> None:
        """Subscribe, where not done yet. Raises SourceError where the address cannot be used."""
        if self._sub is not None:
            return
        sub = self._socket(zmq.SUB)
        sub.setsockopt(zmq.RCVHWM, _QUEUE_MESSAGES)
        sub.setsockopt(zmq.SUBSCRIBE, self.endpoint.topic.encode())
        monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        try:
            (sub.bind if self.endpoint.bind else sub.connect)(self.endpoint.address)
        except zmq.ZMQError as error:
            sub.disable_monitor()
            sub.close()
            done = "bind" if self.endpoint.bind else "connect to"
            raise SourceError(f"cannot {done} {self.endpoint.address}: {error}", "see kv_events") from error
        self._sub, self._monitor = sub, monitor

    def watch(self, poller: zmq.Poller, *, live: bool) -> None:
        """Have the sockets watched; published messages only where `live`."""
        if self._sub is not None:
            poller.register(self._sub, zmq.POLLIN if live else 0)
        if self._monitor is not None:
            poller.register(self._monitor, zmq.POLLIN)
        if self._dealer is not None:
            poller.register(self._dealer, zmq.POLLIN)

    def read(self, feed: Feed, *, live: bool) -> bool:
        """Move what has come; tell whether there may be more."""
        count = 0
        with suppress(zmq.Again):
            while self._monitor is not None:
                event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))["event"]
                feed.connected() if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else feed.disconnected()
        with suppress(zmq.Again):
            while self._dealer is not None and count < MOST_AT_ONCE:
                feed.replayed(self._dealer.recv_multipart(zmq.NOBLOCK), time.monotonic())
                count += 1
        with suppress(zmq.Again):
            while live and self._sub is not None and count < MOST_AT_ONCE:
                feed.live(self._sub.recv_multipart(zmq.NOBLOCK))
                count += 1
        return count >= MOST_AT_ONCE

    def ask(self, sequence: int, poller: zmq.Poller) -> None:
        """Ask for a replay on a new socket: an answer to an earlier question must not be taken for this one's."""
        self._close_dealer(poller)
        if self.endpoint.replay is None:
            return
        dealer = self._socket(zmq.DEALER)
        dealer.setsockopt(zmq.RCVHWM, 0)  # the engine drops what a full queue cannot take
        try:
            dealer.connect(self.endpoint.replay)
            dealer.send_multipart([b"", sequence.to_bytes(SEQUENCE_BYTES, "big")], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            dealer.close()
            raise SourceError(f"cannot connect to {self.endpoint.replay}: {error}", "see kv_events") from error
        self._dealer = dealer

    def close(self, poller: zmq.Poller) -> None:
        """Close the sockets."""
        self._close_dealer(poller)
        for socket in (self._monitor, self._sub):
            if socket is not None:
                poller.register(socket, 0)
        if self._sub is not None:
            self._sub.disable_monitor()  # closes its socket too
            self._sub.close()
        self._sub = self._monitor = None

    def _close_dealer(self, poller: zmq.Poller) -> None:
        if self._dealer is not None:
            poller.register(self._dealer, 0)
            self._dealer.close()
            self._dealer = None

    def _socket(self, kind: int) -> "zmq.Socket[bytes]":
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, _MOST_BYTES)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.IPV6, int("[" in f"{self.endpoint.address}{self.endpoint.replay}"))
        return socket
