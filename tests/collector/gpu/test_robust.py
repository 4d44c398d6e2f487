"""Whatever single calls answer, the rest of the numbers stand."""

import math
from functools import cache
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.gpu.library import GONE, LOST
from collector.gpu.nvml import NvmlReader
from collector.prometheus.exposition import Sample
from store.errors import SourceError
from tests.collector.gpu.fake_nvml import Err, FakeNvml
from tests.collector.gpu.recording import server_gpu

IDENTITY = ("nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo")
CALLS = sorted((key for key in server_gpu().answers if key not in IDENTITY), key=str)
FIELDS = sorted(server_gpu().fields)
CODES = st.sampled_from([*sorted(set(range(1, 31)) - set(GONE) - set(LOST)), 999])


def keyed(samples: list[Sample]) -> dict[Any, float]:
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for s in samples}


def read(calls: dict[Any, int], fields: dict[tuple[int, int], int]) -> dict[Any, float]:
    gpu = server_gpu()
    gpu.answers |= {key: Err(code) for key, code in calls.items()}
    gpu.fields |= {key: Err(code) for key, code in fields.items()}
    reader = NvmlReader(FakeNvml(gpu))
    try:
        reader.read()
        return keyed(reader.read())
    finally:
        reader.close()


@cache
def whole() -> dict[Any, float]:
    """Return what is read where nothing fails."""
    return read({}, {})


SEVERAL = (
    "gpu_link", "gpu_nvlink", "gpu_info", "gpu_mode_info", "gpu_affinity_info", "gpu_throttle_seconds",
    "gpu_power_watts",
)  # fmt: skip
"""Put together from several answers, or taken from another one where the first is refused."""


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(CALLS), CODES, max_size=12), st.dictionaries(st.sampled_from(FIELDS), CODES))
def test_an_error_takes_away_its_own_number_and_no_other(
    calls: dict[Any, int], fields: dict[tuple[int, int], int]
) -> None:
    found = read(calls, fields)
    for key, value in found.items():
        if not key[0].startswith(SEVERAL):
            assert key in whole()
            assert math.isnan(value) or value == whole()[key]
    gone = {key[0] for key in whole().keys() - found.keys() if not key[0].startswith(SEVERAL)}
    assert len(gone) <= len(calls) + len(fields)
    assert found["gpu_lost", next(key[1] for key in whole() if key[0] == "gpu_lost")] == 0


def test_closing_while_a_read_hangs_waits_no_longer_than_its_budget() -> None:
    release, asked = Event(), Event()

    def hang() -> int:
        asked.set()
        release.wait(30)
        return 1

    reader = NvmlReader(FakeNvml(server_gpu(nvmlDeviceGetPowerUsage=hang)), budget_s=0.3)
    reading = Thread(target=reader.read)
    reading.start()
    assert asked.wait(5)
    reader.close()
    reading.join(5)
    assert not reading.is_alive()
    release.set()
    with pytest.raises(SourceError, match="closed"):
        reader.read()


def test_many_threads_read_and_close_in_any_order() -> None:
    reader = NvmlReader(FakeNvml(server_gpu(0), server_gpu(1)))
    outcomes: list[int | str] = []

    def use() -> None:
        try:
            outcomes.append(len(reader.read()))
        except SourceError as error:
            outcomes.append(str(error))

    threads = [Thread(target=use) for _ in range(8)] + [Thread(target=reader.close)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(outcomes) == 8
    assert len({o for o in outcomes if isinstance(o, int)}) <= 1
    assert {o for o in outcomes if isinstance(o, str)} <= {"the NVML reader is closed"}
