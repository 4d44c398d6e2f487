"""A small engine that publishes KV events as vLLM does: PUB for the events, ROUTER for replays, in a thread."""

import queue
import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, Self

import msgspec
import zmq

END = (-1).to_bytes(8, "big", signed=True)
HOST = "tcp://127.0.0.1"


def stored(*hashes: object, tokens: int = 4, **more: Any) -> dict[str, Any]:
    """Return a BlockStored event."""
    return {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": None,
        "token_ids": list(range(tokens)),
        "block_size": tokens,
        "lora_id": None,
        "medium": "GPU",
        **more,
    }


def removed(*hashes: int | bytes) -> dict[str, Any]:
    """Return a BlockRemoved event."""
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU"}


def payload(ts_s: float, *events: Any, rank: int | None = 0) -> bytes:
    """Return a packed message."""
    return msgspec.msgpack.encode([ts_s, list(events), rank])


def free_port() -> int:
    """Return a port that nobody listens on."""
    with zmq.Context() as context, context.socket(zmq.PUB) as socket:
        return int(socket.bind_to_random_port(HOST))


class Engine:
    """`publish` sends a message, or only keeps it for replay where `heard` is false: a forced gap."""

    def __init__(
        self, endpoint: str, replay: str | None = None, *, bind: bool = True, keep: int = 10_000, old: bool = False
    ) -> None:
        self.endpoint, self.replay, self.old = endpoint, replay, old
        self.asked: list[int] = []
        self._bind = bind
        self._kept: deque[tuple[bytes, int, bytes]] = deque(maxlen=keep)
        self._queue: queue.Queue[tuple[bytes, int, bytes, bool] | list[bytes]] = queue.Queue()
        self._number = 0
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def publish(
        self, *events: Any, topic: bytes = b"kv-events", heard: bool = True, body: bytes | None = None, rank: int = 0
    ) -> int:
        """Send the events as one message and return its number."""
        number, self._number = self._number, self._number + 1
        self._queue.put((topic, number, payload(time.time(), *events, rank=rank) if body is None else body, heard))
        return number

    def send_raw(self, *parts: bytes) -> None:
        """Send frames as they are."""
        self._queue.put(list(parts))

    def sent(self) -> bool:
        """Tell whether all that was published has left."""
        return self._queue.unfinished_tasks == 0

    def _run(self) -> None:
        with zmq.Context() as context, context.socket(zmq.PUB) as pub, context.socket(zmq.ROUTER) as router:
            pub.linger = router.linger = 0
            pub.set_hwm(100_000)
            pub.bind(self.endpoint) if self._bind else pub.connect(self.endpoint)
            if self.replay:
                router.bind(self.replay)
            self._ready.set()
            while not self._stop.is_set() or not self._queue.empty():
                if self.replay and router.poll(0):
                    self._answer(router)
                self._send_next(pub)
            time.sleep(0.05)

    def _send_next(self, pub: "zmq.Socket[bytes]") -> None:
        try:
            item = self._queue.get(timeout=0.02)
        except queue.Empty:
            return
        if isinstance(item, list):
            pub.send_multipart(item)
        else:
            topic, number, body, heard = item
            self._kept.append((topic, number, body))
            if heard:
                pub.send_multipart([topic, number.to_bytes(8, "big"), body])
        self._queue.task_done()

    def _answer(self, router: "zmq.Socket[bytes]") -> None:
        client, empty, start = router.recv_multipart()
        self.asked.append(int.from_bytes(start, "big"))
        for topic, number, body in self._kept:
            if number >= self.asked[-1]:
                head = [client, empty] if self.old else [client, empty, topic]
                router.send_multipart([*head, number.to_bytes(8, "big"), body])
        router.send_multipart([client, empty, END, b""] if self.old else [client, empty, b"", END, b""])
