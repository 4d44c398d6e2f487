"""Request bodies within limits: on one body, and on all that are held at once."""

from dataclasses import dataclass

from starlette.requests import Request

from collector.otlp.inflate import TooLargeError
from store.errors import BusyError

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest body (as sent, inflated), and bytes of bodies held at once."""

    max_body_bytes: int = 16 * _MIB
    max_inflated_bytes: int = 32 * _MIB
    max_held_bytes: int = 128 * _MIB


DEFAULT_LIMITS = Limits()


class Bodies:
    """Counts the bytes of the bodies that one receiver holds."""

    def __init__(self, limits: Limits) -> None:
        """Hold none yet."""
        self._limits = limits
        self._held_bytes = 0

    async def read(self, request: Request, chunks: list[bytes]) -> None:
        """Collect a body in `chunks`, whole or as far as it came. Raises TooLargeError, BusyError, ClientDisconnect."""
        limit = self._limits.max_body_bytes
        declared = request.headers.get("content-length", "0")
        size = 0
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        async for chunk in request.stream():
            chunks.append(chunk)
            size += len(chunk)
            self._held_bytes += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if self._held_bytes > self._limits.max_held_bytes:
                raise BusyError("too many bodies at once")

    def release(self, chunks: list[bytes]) -> None:
        """Count what `read` collected as no longer held."""
        self._held_bytes -= sum(map(len, chunks))


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the body has more than {limit} bytes", "send smaller batches or raise the limit")
