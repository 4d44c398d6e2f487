"""One journal entry as bytes: a header that proves itself, and a packed batch that it proves.

The header has a checksum of its own: its length can be trusted though the batch after it is damaged, so reading goes on
behind one damaged entry. Where a header is damaged, the next one is looked for by its magic.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from store.errors import StoreError

# Not UTF-8, so that no text in a batch can look like an entry.
MAGIC = b"\xffIJRN\xfe\r\n"
VERSION = 1
# magic, version, reserved, CRC-32 of the batch, sequence, wall time in microseconds, length of the batch
_FIELDS = struct.Struct("<8sHHIQqQ")
_CRC = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CRC.size
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A good entry: its number, when it was written, where it starts, and its packed batch where that was read."""

    sequence: int
    time_us: int
    offset: int
    payload: bytes | None


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes that are no good entry. `lost` counts the entries in it, None where no later entry tells.

    `torn`: the file ends before the last entry does, as after a kill in the middle of an append.
    """

    offset: int
    size_bytes: int
    what: str
    lost: int | None
    torn: bool = False


def encode(sequence: int, time_us: int, payload: bytes) -> bytes:
    """Return header and payload."""
    fields = _FIELDS.pack(MAGIC, VERSION, 0, zlib.crc32(payload), sequence, time_us, len(payload))
    return b"".join((fields, _CRC.pack(zlib.crc32(fields)), payload))


def walk(file: BinaryIO, end: int, expected: int, after: int = -1) -> Iterator[Entry | Hole]:
    """Read a segment up to byte `end`, whose first entry should have the number `expected`.

    Numbers only rise; each entry is as it was written or in a hole. Of entries up to `after` only the header is read.
    Raises StoreError for an entry of a newer format, OSError.
    """
    start = 0
    while start < end:
        header = _header(file, start)
        if header is None:
            found = _next_header(file, start + 1, end)
            stop = end if found is None else found[0]
            short = found is None and end - start < HEADER_BYTES
            lost = None if found is None else max(found[1].sequence - expected, 0)
            yield Hole(start, stop - start, "the last entry is cut short" if short else "a damaged header", lost, short)
            start, expected = stop, expected if found is None else found[1].sequence
            continue
        stop = start + HEADER_BYTES + header.length
        if stop > end:
            yield Hole(start, end - start, "the last entry is cut short", None, torn=True)
            return
        payload = _payload(file, start, header) if header.sequence > after else b""
        if header.sequence < expected:
            yield Hole(start, stop - start, f"entry {header.sequence} is there again", 0)
        elif payload is None:
            yield Hole(start, stop - start, f"entry {header.sequence} is damaged", 1)
        else:
            if header.sequence > expected:
                missing = header.sequence - expected
                yield Hole(start, 0, f"{missing} entries before entry {header.sequence} are missing", missing)
            yield Entry(header.sequence, header.time_us, start, payload if header.sequence > after else None)
        start, expected = stop, max(expected, header.sequence + 1)


@dataclass(frozen=True, slots=True)
class _Header:
    crc: int
    sequence: int
    time_us: int
    length: int


def _header(file: BinaryIO, offset: int) -> _Header | None:
    """Read the header at an offset, None where there is no good one."""
    file.seek(offset)
    data = file.read(HEADER_BYTES)
    if len(data) < HEADER_BYTES or _CRC.unpack_from(data, _FIELDS.size)[0] != zlib.crc32(data[: _FIELDS.size]):
        return None
    magic, version, _, crc, sequence, time_us, length = _FIELDS.unpack_from(data)
    if magic != MAGIC:
        return None
    if version != VERSION:
        raise StoreError(f"{file.name} was written by a newer infractl (journal format {version})", "upgrade infractl")
    return _Header(crc, sequence, time_us, length)


def _payload(file: BinaryIO, offset: int, header: _Header) -> bytes | None:
    file.seek(offset + HEADER_BYTES)
    data = file.read(header.length)
    return data if len(data) == header.length and zlib.crc32(data) == header.crc else None


def _next_header(file: BinaryIO, start: int, end: int) -> tuple[int, _Header] | None:
    """Look for the next good header by its magic; chunks overlap by less than a magic."""
    while start < end:
        file.seek(start)
        chunk = file.read(min(_CHUNK_BYTES, end - start))
        at = chunk.find(MAGIC)
        while at >= 0:
            header = _header(file, start + at)
            if header is not None:
                return start + at, header
            at = chunk.find(MAGIC, at + 1)
        if start + len(chunk) >= end or not chunk:
            return None
        start += len(chunk) - len(MAGIC) + 1
    return None
