"""`io.prometheus.write.v2.Request` (remote write 2.0) to samples.

The usual series is its references, one sample and its metadata: references become a key that is looked up whole, and
what follows the sample is parsed once for all series that have the same. Start times are read where any version of the
protocol has them, beside the series or in the sample.
"""

from collections.abc import Sequence
from typing import Any

from collector.push.series import UNTYPED
from collector.push.units import unit_name
from collector.remote_write.collect import KINDS, Collected
from collector.remote_write.labels import RefusedError, series_of
from collector.remote_write.messages import Request, SymbolSeries
from collector.remote_write.samples import LONG, SHORT
from collector.remote_write.symbols import SymbolTable

_REFS, _SAMPLE = 0x0A, 0x12  # fields 1 and 2, with a length
_SIZES = {bytes((_SAMPLE, size)): size for size in (LONG, SHORT)}
_MORE = frozenset({b"", b"\x2a", b"\x30"})  # what may follow a usual sample: nothing, metadata, created_timestamp


def read(body: bytes, found: Collected) -> None:
    """Add the samples of a request to `found`. Raises DecodeError."""
    request = Request.FromString(body)
    symbols = list(request.symbols)
    table = found.senders.symbols.table(symbols)
    rest = _read_usual(list(request.timeseries), table, found)
    for blob in rest:
        message = SymbolSeries.FromString(blob)
        try:
            _read_series(message, symbols, table, found)
        except RefusedError as error:
            found.drops[error.reason] += len(message.samples) + len(message.histograms)


def _read_usual(blobs: Sequence[bytes], table: SymbolTable, found: Collected) -> list[bytes]:
    """Take the series that are known and written in the usual way; return the others."""
    usual, rest = _split(blobs)
    known, untyped = found.senders.series.known, found.senders.series.untyped
    starts: dict[bytes, int] = {}
    for (blob, _, sample, tail), key in zip(usual, table.keys([refs for _, refs, *_ in usual]), strict=True):
        slot = known.get(key)
        if slot is None or slot in untyped:
            rest.append(blob)
            continue
        start_ms = starts.get(tail)
        if start_ms is None:
            start_ms = starts[tail] = SymbolSeries.FromString(tail).created_timestamp
        found.slots.append(slot)
        found.messages.append(sample)
        found.starts_ms.append(start_ms)
    return rest


def _split(blobs: Sequence[bytes]) -> tuple[list[tuple[bytes, bytes, bytes, bytes]], list[bytes]]:
    """Return usual series as (all, references, sample, what follows), and the others."""
    usual, rest = [], []
    for blob in blobs:
        end = 2 + blob[1] if len(blob) > 1 and blob[0] == _REFS and 0 < blob[1] < 0x80 else 0  # a length of one byte
        size = _SIZES.get(blob[end : end + 2]) if end else None
        after = end + 2 + (size or 0)
        if size and blob[after : after + 1] in _MORE:
            usual.append((blob, blob[2:end], blob[end + 2 : after], blob[after:]))
        else:
            rest.append(blob)
    return usual, rest


def _read_series(message: Any, symbols: Sequence[bytes], table: SymbolTable, found: Collected) -> None:
    """Read a series that is new, has several samples, or is written in an unusual way. Raises RefusedError."""
    series, refs = found.senders.series, list(message.labels_refs)
    texts = _texts(refs, symbols)
    key = table.key(refs)
    samples = message.samples
    if samples:
        slot = series.known.get(key)
        if slot is None:
            kind, unit = _meta(message.metadata, symbols)
            slot = found.senders.learn(key, series_of(texts, lambda _: kind), unit)
        elif slot in series.untyped and message.metadata.type:
            series.set_kinds({slot: _meta(message.metadata, symbols)[0]})
        found.add(slot, samples, message.created_timestamp)
    if message.histograms:
        described = series_of(texts, lambda _: UNTYPED)
        found.add_histograms(key, described, message.histograms, message.created_timestamp)


def _texts(refs: Sequence[int], symbols: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return names and values. Raises RefusedError."""
    if not refs:
        raise RefusedError("no_name")
    if len(refs) % 2 or max(refs) >= len(symbols):
        raise RefusedError("unknown_symbol")
    texts = [symbols[ref] for ref in refs]
    return list(zip(texts[::2], texts[1::2], strict=True))


def _meta(metadata: Any, symbols: Sequence[bytes]) -> tuple[str, str | None]:
    """Return the type and the unit a series states."""
    kind = KINDS[metadata.type] if 0 <= metadata.type < len(KINDS) else UNTYPED
    unit = symbols[metadata.unit_ref] if metadata.unit_ref < len(symbols) else b""
    return kind, unit_name(unit.decode(errors="replace"))
