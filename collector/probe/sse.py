"""Server-sent events: the data of each event as soon as its last byte is there."""

from collections.abc import Iterator

MAX_EVENT_BYTES = 4 << 20
"""More than this without an end is no event of an answer."""


class EventReader:
    """Reads the `data` of events from pieces of a body, cut anywhere (WHATWG HTML, 9.2.6; bytes, not text)."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of the events that this piece completes. Raises ValueError for an event without an end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError("an event without an end")
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []

    def finish(self) -> Iterator[bytes]:
        """Yield the last event where the body ends without the empty line after it."""
        yield from self.feed(b"\n\n")
