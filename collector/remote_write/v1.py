"""`prometheus.WriteRequest` (remote write 1.0) to samples.

The usual series is its labels and then one sample: the bytes before the sample are looked up whole, so a known series
costs a slice and a look-up, however many labels it has.
"""

from collections.abc import Sequence
from typing import Any

from collector.remote_write.collect import KINDS, Collected, Senders
from collector.remote_write.labels import RefusedError, pairs_of, series_of
from collector.remote_write.messages import TimeSeries, WriteRequest
from collector.remote_write.samples import LONG, SHORT

_LABEL, _SAMPLE = b"\x0a", 0x12  # field 1 and field 2, both with a length
_LONG_FIELD, _SHORT_FIELD = bytes((_SAMPLE, LONG)), bytes((_SAMPLE, SHORT))


def read(body: bytes, found: Collected) -> None:
    """Add the samples of a request to `found`. Raises DecodeError."""
    request = WriteRequest.FromString(body)
    if request.metadata:
        _learn_types(request.metadata, found.senders)
    get, rest = found.senders.series.known.get, []
    slots, messages = found.slots, found.messages
    for blob in request.timeseries:
        slot = get(blob[: -LONG - 2])
        size = LONG
        if slot is None:
            slot = get(blob[: -SHORT - 2])
            size = SHORT
        if slot is not None and blob[-size - 2 : -size] == (_LONG_FIELD if size == LONG else _SHORT_FIELD):
            slots.append(slot)
            messages.append(blob[-size:])
        else:
            rest.append(blob)
    found.starts_ms += [0] * len(messages)
    for blob in rest:
        _read_series(TimeSeries.FromString(blob), found)


def _read_series(message: Any, found: Collected) -> None:
    """Read a series that is new, has several samples, or is written in an unusual way."""
    senders = found.senders
    key = b"".join([_LABEL + _varint(len(label)) + label for label in message.labels])
    slot = senders.series.known.get(key)
    try:
        if slot is None or message.histograms:
            series = series_of(pairs_of(message.labels), senders.kind)
            if message.samples and slot is None:
                slot = senders.learn(key, series)
            if message.histograms:
                found.add_histograms(key, series, message.histograms)
    except RefusedError as error:
        found.drops[error.reason] += len(message.samples) + len(message.histograms)
        return
    if slot is not None:
        found.add(slot, message.samples)


def _learn_types(metadata: Sequence[Any], senders: Senders) -> None:
    senders.declare(
        {m.metric_family_name.decode(errors="replace"): KINDS[m.type] for m in metadata if 0 < m.type < len(KINDS)}
    )


def _varint(value: int) -> bytes:
    """Return a length as protobuf writes it, shortest form."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
