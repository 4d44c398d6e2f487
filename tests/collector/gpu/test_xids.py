"""Xid errors: every one is counted, also between two reads, in a storm, and from a GPU that is gone."""

from collections.abc import Callable, Iterator
from threading import active_count
from time import monotonic, sleep

import pytest

from collector.gpu import xids
from collector.gpu.library import Code
from collector.gpu.nvml import NvmlReader
from collector.prometheus.exposition import Sample
from store.xids import XIDS
from tests.collector.gpu.fake_nvml import Err, FakeGpu, FakeNvml
from tests.collector.gpu.recording import server_gpu

Start = Callable[..., tuple[NvmlReader, FakeNvml]]


@pytest.fixture
def start() -> Iterator[Start]:
    readers = []

    def started(*gpus: FakeGpu) -> tuple[NvmlReader, FakeNvml]:
        nvml = FakeNvml(*gpus)
        readers.append(NvmlReader(nvml))
        readers[-1].read()
        return readers[-1], nvml

    yield started
    for reader in readers:
        reader.close()


def taken(nvml: FakeNvml) -> None:
    """Wait until the watch has taken all events."""
    until = monotonic() + 20
    while not nvml.events.empty():
        assert monotonic() < until
        sleep(0.005)
    sleep(0.02)


def counts(samples: list[Sample], gpu: str = "0") -> dict[str, float]:
    return {
        s.labels["xid"]: s.value
        for s in samples
        if s.name == "gpu_xid_events_total" and s.labels["gpu"] == gpu and s.value
    }


def last(samples: list[Sample]) -> list[float]:
    return [s.value for s in samples if s.name == "gpu_last_xid"]


def test_codes_counted_from_zero_on_are_known_ones() -> None:
    assert set(xids.KNOWN) <= XIDS.keys()


def test_before_any_error_the_known_codes_are_zero(start: Start) -> None:
    samples = start(server_gpu())[0].read()
    assert {s.labels["xid"] for s in samples if s.name == "gpu_xid_events_total"} == set(map(str, xids.KNOWN))
    assert counts(samples) == {}
    assert last(samples) == [0]


def test_two_errors_between_two_reads_are_both_there(start: Start) -> None:
    reader, nvml = start(gpu := server_gpu())
    nvml.xid(gpu, 79)
    nvml.xid(gpu, 31)
    taken(nvml)
    for _ in range(2):
        samples = reader.read()
        assert counts(samples) == {"79": 1, "31": 1}
        assert last(samples) == [31]


def test_a_storm_of_errors_is_counted_in_full(start: Start) -> None:
    reader, nvml = start(gpu := server_gpu(), server_gpu(1))
    for _ in range(2000):
        nvml.xid(gpu, 13)
    nvml.xid(gpu, 777)
    taken(nvml)
    samples = reader.read()
    assert counts(samples) == {"13": 2000, "777": 1}
    assert counts(samples, "1") == {}


def test_the_error_that_took_a_gpu_off_the_bus_is_still_told(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xids, "_PAUSE_S", 0.01)
    reader, nvml = start(gpu := server_gpu(), server_gpu(1))
    nvml.xid(gpu, 79)
    gpu.fails = Code.GPU_IS_LOST
    for _ in range(3):
        nvml.events.put(Err(Code.GPU_IS_LOST))
    taken(nvml)
    samples = reader.read()
    assert counts(samples) == {"79": 1}
    nvml.gpus = nvml.gpus[1:]
    samples = reader.read()
    [gone] = [s for s in samples if s.name == "gpu_xid_events_total" and s.labels["xid"] == "79" and s.value]
    assert gone.labels["gpu_uuid"].startswith("GPU-00000000")


def test_a_gpu_that_cannot_be_watched_has_no_xid_series_and_it_is_told(start: Start) -> None:
    reader, _ = start(server_gpu(nvmlDeviceRegisterEvents=Err(Code.NOT_SUPPORTED)))
    assert not [s for s in reader.read() if "xid" in s.name]
    assert "gpu_xid_events_total" in {a.what for a in reader.absences()}


def test_events_of_other_kinds_and_other_devices_are_no_xids(start: Start) -> None:
    reader, nvml = start(gpu := server_gpu())
    nvml.xid(FakeGpu(), 79)
    nvml.xid(gpu, 45)
    nvml.events.queue[-1].eventType = 2
    taken(nvml)
    assert counts(reader.read()) == {}


def test_closing_ends_the_thread() -> None:
    before = active_count()
    reader = NvmlReader(FakeNvml(server_gpu()))
    reader.read()
    reader.close()
    assert active_count() <= before
