"""The NVML reader against nvidia-smi: asked what NVML answered at that moment, it says what nvidia-smi printed."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.gpu.nvml import NvmlReader
from collector.prometheus.exposition import Sample
from tests.collector.gpu.captures import Capture, from_text, from_xml, sections
from tests.collector.gpu.fake_nvml import FakeNvml
from tests.collector.gpu.recorded import gpu_of

MIB = 1048576
GPU = {"gpu_memory_bytes": "memory", "gpu_bar1_memory_bytes": "bar1"}
EXPECTED = [
    *((m, {"state": s}, f"{name} {s}", MIB) for m, name in GPU.items() for s in ("used", "free", "total")),
    ("gpu_memory_bytes", {"state": "reserved"}, "memory reserved", MIB),
    ("gpu_utilization_ratio", {"engine": "graphics"}, "busy gpu", 0.01),
    ("gpu_utilization_ratio", {"engine": "memory_copy"}, "busy memory", 0.01),
    *(
        ("gpu_utilization_ratio", {"engine": name}, f"busy {name}", 0.01)
        for name in ("encoder", "decoder", "jpeg", "ofa")
    ),
    ("gpu_power_instant_watts", {}, "power instant", 1),
    *(
        ("gpu_power_limit_watts", {"limit": name}, f"limit {name}", 1)
        for name in ("enforced", "requested", "default", "min", "max")
    ),
    ("gpu_temperature_celsius", {"sensor": "gpu"}, "heat gpu", 1),
    ("gpu_temperature_celsius", {"sensor": "memory"}, "heat memory", 1),
    ("gpu_temperature_margin_celsius", {}, "heat margin", 1),
    *(
        ("gpu_temperature_limit_celsius", {"limit": name}, f"heat {name}", 1)
        for name in ("shutdown", "slowdown", "max_operating", "memory_max", "target")
    ),
    *(("gpu_clock_hz", {"domain": name}, f"clock {name}", 1_000_000) for name in ("graphics", "sm", "memory", "video")),
    *(
        ("gpu_clock_limit_hz", {"domain": name, "limit": "max"}, f"max {name}", 1_000_000)
        for name in ("graphics", "sm", "memory", "video")
    ),
    *(
        ("gpu_clock_limit_hz", {"domain": name, "limit": "application"}, f"application {name}", 1_000_000)
        for name in ("graphics", "memory")
    ),
    ("gpu_fan_ratio", {}, "fan", 0.01),
    ("gpu_performance_state", {}, "pstate", 1),
    ("gpu_pcie_link_generation", {"kind": "current"}, "pcie generation", 1),
    ("gpu_pcie_link_generation", {"kind": "max"}, "pcie max generation", 1),
    ("gpu_pcie_link_width", {"kind": "current"}, "pcie width", 1),
    ("gpu_pcie_link_width", {"kind": "max"}, "pcie max width", 1),
    ("gpu_pcie_bytes_per_second", {"direction": "tx"}, "pcie tx", 1000),
    ("gpu_pcie_bytes_per_second", {"direction": "rx"}, "pcie rx", 1000),
    ("gpu_pcie_replay_total", {}, "pcie replays", 1),
    ("gpu_throttle_seconds_total", {"reason": "power"}, "held power", 1e-6),
    ("gpu_remapped_rows_total", {"kind": "corrected"}, "rows corrected", 1),
    ("gpu_remapped_rows_total", {"kind": "uncorrected"}, "rows uncorrected", 1),
]

XML = [
    "netdata_a100-sxm4-mig", "netdata_rtx-pro-6000-driver-580", "telegraf_a100-sxm4-v12", "telegraf_gtx-1070-ti",
    "telegraf_gtx-1660-ti", "telegraf_quadro-p2000-v12", "telegraf_quadro-p400", "telegraf_rtx-3060-v12",
    "telegraf_rtx-3080-v12", "telegraf_rtx-3080-v13",
]  # fmt: skip
SESSIONS = ["nvidia-h100-mig__590.48.01", "nvidia-h200__590.48.01", "nvidia-l40s__595.80"]
MOMENTS = [*XML, *(f"{session} {load}" for session in SESSIONS for load in ("idle", "load"))]


def captures(shared: Path, moment: str) -> list[Capture]:
    if moment in XML:
        return from_xml(shared / "data" / "nvidia_smi_xml" / f"{moment}.xml")
    session, load = moment.split(" ")
    path = shared / "data" / "nvidia_smi_captures" / f"linux-x86_64__{session}.txt.gz"
    return from_text(sections(path)[f"{load} :: query (-q)"])


def read(gpus: list[Capture]) -> list[Sample]:
    nvml = FakeNvml(*(gpu_of(gpu) for gpu in gpus))
    nvml.names = {p.pid: p.name for gpu in gpus for p in gpu.processes()}
    reader = NvmlReader(nvml)
    try:
        return reader.read()
    finally:
        reader.close()


def values(samples: list[Sample], name: str, **labels: str) -> Iterator[float]:
    """Values of the whole GPU's series of that name whose labels are these and the GPU's."""
    own = {"gpu", "gpu_uuid", "gpu_model", "pci_bus_id"}
    return (
        s.value for s in samples if s.name == name and {k: v for k, v in s.labels.items() if k not in own} == labels
    )


def value(samples: list[Sample], name: str, **labels: str) -> float | None:
    found = list(values(samples, name, **labels))
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_number_is_the_one_that_nvidia_smi_printed(shared: Path, moment: str) -> None:
    [gpu] = captures(shared, moment)
    samples = read([gpu])
    compared = 0
    for name, labels, quantity, factor in EXPECTED:
        printed = gpu.number(quantity)
        found = value(samples, name, **labels)
        if printed is None:
            assert found is None, (name, labels)
        else:
            assert found == pytest.approx(printed * factor, abs=1e-9), (name, labels)
            compared += 1
    assert compared >= (5 if "rtx-pro" in moment else 12)


@pytest.mark.parametrize("moment", MOMENTS)
def test_power_is_draw_or_else_average_or_else_instant(shared: Path, moment: str) -> None:
    [gpu] = captures(shared, moment)
    printed = [n for q in ("power", "power average", "power instant") if (n := gpu.number(q)) is not None]
    assert value(read([gpu]), "gpu_power_watts") == (pytest.approx(printed[0]) if printed else None)


@pytest.mark.parametrize("moment", MOMENTS)
def test_error_counts_reasons_and_identity_are_those_printed(shared: Path, moment: str) -> None:
    [gpu] = captures(shared, moment)
    samples = read([gpu])
    for kind in ("corrected", "uncorrected"):
        assert value(samples, "gpu_ecc_errors_total", kind=kind) == gpu.ecc("volatile", kind)
        assert value(samples, "gpu_ecc_errors_lifetime_total", kind=kind) == gpu.ecc("aggregate", kind)
    assert value(samples, "gpu_throttle_reasons_bitmask") == gpu.reasons()
    lost = next(s for s in samples if s.name == "gpu_lost")
    assert lost.value == 0
    assert lost.labels["gpu_uuid"] == gpu.text("uuid")
    assert lost.labels["gpu_model"] == gpu.text("model")
    assert lost.labels["pci_bus_id"] == gpu.bus_id[4:].lower()


def test_an_h200_under_load_in_figures(shared: Path) -> None:
    [gpu] = captures(shared, "nvidia-h200__590.48.01 load")
    samples = read([gpu])
    assert value(samples, "gpu_memory_bytes", state="total") == 143771 * MIB
    assert value(samples, "gpu_fabric_state") == 3
    assert value(samples, "gpu_pcie_link_generation", kind="current") == 5
    used = {
        (s.labels["pid"], s.labels["process"]): s.value / MIB for s in samples if s.name == "gpu_process_memory_bytes"
    }
    assert used == {("10291", "memhog"): 2566, ("10293", "memhog"): 1542, ("10309", "gpu_burn"): 28234}
    assert value(samples, "gpu_processes", type="compute") == 3


def test_an_l40s_that_encodes_video_in_figures(shared: Path) -> None:
    [gpu] = captures(shared, "nvidia-l40s__595.80 load")
    samples = read([gpu])
    assert value(samples, "gpu_utilization_ratio", engine="encoder") == pytest.approx(0.59)
    assert value(samples, "gpu_throttle_seconds_total", reason="power") == pytest.approx(204.642816)
    assert value(samples, "gpu_pcie_bytes_per_second", direction="rx") == 2_012_109_000
    assert value(samples, "gpu_temperature_margin_celsius") == 34
    assert value(samples, "gpu_temperature_celsius", sensor="memory") is None


def test_mig_instances_have_memory_of_their_own_and_the_gpu_is_one(shared: Path) -> None:
    [gpu] = captures(shared, "nvidia-h100-mig__590.48.01 load")
    samples = read([gpu])
    used = {
        (s.labels["mig_instance"], s.labels["mig_profile"]): s.value / MIB
        for s in samples
        if s.name == "gpu_memory_bytes" and s.labels.get("state") == "used" and "mig_instance" in s.labels
    }
    assert used == {("2", "3g.40gb"): 11091, ("3", "2g.20gb"): 17, ("9", "1g.10gb"): 9, ("10", "1g.10gb"): 9}
    assert sum(s.name == "gpu_lost" for s in samples) == 1
    assert value(samples, "gpu_memory_bytes", state="used") == 11125 * MIB
    assert not [s for s in samples if s.name == "gpu_utilization_ratio"]
    of_instances = {s.name for s in samples if "mig_instance" in s.labels}
    assert of_instances == {"gpu_memory_bytes", "gpu_bar1_memory_bytes", "gpu_process_memory_bytes"}
    assert {s.labels["mig_instance"] for s in samples if s.name == "gpu_process_memory_bytes"} == {"2"}


def test_several_gpus_are_kept_apart_and_none_is_nan(shared: Path) -> None:
    gpus = [gpu for moment in XML[:4] for gpu in captures(shared, moment)]
    samples = read(gpus)
    assert [s.labels["gpu"] for s in samples if s.name == "gpu_lost"] == ["0", "1", "2", "3"]
    assert len({s.labels["gpu_uuid"] for s in samples}) == len(gpus)
    assert not [s for s in samples if math.isnan(s.value)]


def test_a_command_line_never_becomes_the_name_of_a_process(shared: Path) -> None:
    [gpu] = captures(shared, "telegraf_rtx-3080-v12")
    assert any(" --" in p.name for p in gpu.processes())
    names = {s.labels["process"] for s in read([gpu]) if s.name == "gpu_process_memory_bytes"}
    assert {"Xorg", "gnome-shell", "msedge"} <= names
    assert not [name for name in names if "--" in name or "/" in name]
