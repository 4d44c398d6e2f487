"""Sample messages to columns: all of a request in a few array operations.

A sample of today is value and time in 16 bytes, or 7 where the value is zero and left out; any other is parsed alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from collector.push.columns import Floats, Ints
from collector.remote_write.messages import Sample

LONG, SHORT = 16, 7
_VALUE_TAG, _TIME_TAG, _VARINT = 0x09, 0x10, 6
_SHIFTS = np.arange(0, 7 * _VARINT, 7, dtype=np.int64)


class Samples(NamedTuple):
    """Times (ms), values and starts (ms; 0: unknown), in parallel."""

    times_ms: Ints
    values: Floats
    starts_ms: Ints


def read_samples(messages: Sequence[bytes]) -> Samples:
    """Return the samples of Sample messages, in order. Raises DecodeError."""
    count = len(messages)
    found = Samples(np.zeros(count, np.int64), np.zeros(count), np.zeros(count, np.int64))
    sizes = np.fromiter(map(len, messages), np.int64, count)
    read = np.zeros(count, np.bool_)
    for size in (LONG, SHORT):
        at = np.flatnonzero(sizes == size)
        if at.size:
            raw = np.frombuffer(b"".join([messages[i] for i in at.tolist()]), np.uint8).reshape(-1, size)
            usual = _is_usual(raw)
            at, raw = at[usual], raw[usual]
            found.times_ms[at] = ((raw[:, -_VARINT:].astype(np.int64) & 0x7F) << _SHIFTS).sum(axis=1)
            if size == LONG:
                found.values[at] = np.ascontiguousarray(raw[:, 1:9]).view("<f8")[:, 0]
            read[at] = True
    for i in np.flatnonzero(~read).tolist():
        sample = Sample.FromString(messages[i])
        found.times_ms[i], found.values[i], found.starts_ms[i] = sample.timestamp, sample.value, sample.start_timestamp
    return found


def _is_usual(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each row is a value (unless short) and a time of six bytes (from 1971 to 2109)."""
    time_at = raw.shape[1] - _VARINT - 1
    usual: npt.NDArray[np.bool_] = (raw[:, time_at] == _TIME_TAG) & (raw[:, -1] < 0x80)
    usual &= (raw[:, time_at + 1 : -1] >= 0x80).all(axis=1)
    return usual & (raw[:, 0] == _VALUE_TAG) if time_at else usual
