"""gzip and zstd with a limit on what comes out: a bomb costs a refusal, not the memory."""

import zlib
from collections.abc import Callable

import cramjam

from store.errors import SourceError

_GZIP = 31  # window bits: gzip wrapper, largest window
_STEP = 1 << 20
_NO_ROOM = "failed to write whole buffer"  # what cramjam says of a full buffer


class TooLargeError(SourceError):
    """A body above a limit of the receiver; the sender should send smaller batches."""


def inflate(body: bytes, limit: int) -> bytes:
    """Return the content of gzip bytes (of one or several members), at most `limit` bytes.

    Raises TooLargeError as soon as the limit is passed and SourceError for bytes that are no whole gzip stream.
    """
    if int.from_bytes(body[-4:], "little") > limit and body[:2] == b"\x1f\x8b":
        raise _too_large(limit)  # a gzip stream ends with its size: an honest bomb needs no inflating
    parts: list[bytes] = []
    size = 0
    while body:
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            part = _step(stream, body)
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
            body = stream.unconsumed_tail
            if not part and not stream.eof:
                raise SourceError("the gzip body is cut off", "see what the sender or a proxy does to the body")
        body = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def inflate_zstd(body: bytes, limit: int) -> bytes:
    """Return the content of zstd bytes (of one or several frames), at most `limit` bytes.

    Raises as `inflate` does.
    """
    size = min(limit, max(_STEP, 8 * len(body)))
    while (content := _unzstd(body, size)) is None:
        if size == limit:
            raise _too_large(limit)
        size = min(limit, 4 * size)
    return content


def _unzstd(body: bytes, size: int) -> bytes | None:
    """Return the content; None where it is longer than `size`."""
    room = bytearray(size)
    try:
        length = cramjam.zstd.decompress_into(body, room)
    except cramjam.DecompressionError as error:
        if str(error) == _NO_ROOM:
            return None
        raise SourceError(f"the body is not zstd: {error}", "send it plain, or with Content-Encoding: zstd") from None
    return bytes(memoryview(room)[:length])


ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "identity": lambda body, _: body,
    "gzip": inflate,
    "zstd": inflate_zstd,
}
"""Content-Encoding -> how a body of it is read, at most so many bytes."""


def _step(stream: "zlib._Decompress", body: bytes) -> bytes:
    try:
        return stream.decompress(body, _STEP)
    except zlib.error as error:
        raise SourceError(f"the body is not gzip: {error}", "send it plain, or with Content-Encoding: gzip") from None


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the body inflates to more than {limit} bytes", "send smaller batches or raise the limit")
