"""rocm-smi's JSON of six cards and ROCm 4.3 to 6.1: right values for each."""

import json
import math
from pathlib import Path

import pytest

from collector.gpu.rocm import rocm_samples, unique_id
from collector.prometheus.exposition import Sample
from store.errors import SourceError

FIGURES: dict[str, dict[tuple[str, ...], float]] = {
    # file: {(gpu, metric, value of its own label): value}
    "mi100_rocm571": {
        ("0", "gpu_power_watts"): 39,
        ("0", "gpu_power_limit_watts", "enforced"): 290,
        ("0", "gpu_temperature_celsius", "edge"): 31,
        ("0", "gpu_temperature_celsius", "hotspot"): 34,
        ("0", "gpu_temperature_celsius", "memory"): 30,
        ("0", "gpu_memory_bytes", "total"): 34_342_961_152,
        ("0", "gpu_memory_bytes", "used"): 6_782_976,
        ("0", "gpu_clock_hz", "graphics"): 300e6,
        ("0", "gpu_clock_hz", "memory"): 1200e6,
        ("0", "gpu_clock_hz", "fabric"): 1402e6,
        ("0", "gpu_pcie_link_gt_per_second", "current"): 8,
        ("0", "gpu_pcie_link_width", "current"): 16,
        ("0", "gpu_utilization_ratio", "graphics"): 0,
    },
    "rx6700xt_rocm430": {
        ("0", "gpu_power_watts"): 6,
        ("0", "gpu_power_limit_watts", "enforced"): 211,
        ("0", "gpu_temperature_celsius", "hotspot"): 47,
        ("0", "gpu_memory_bytes", "used"): 1_622_728_704,
        ("0", "gpu_memory_bytes", "free"): 12_868_124_672 - 1_622_728_704,
        ("0", "gpu_clock_hz", "memory"): 96e6,
        ("0", "gpu_pcie_link_gt_per_second", "current"): 16,
        ("0", "gpu_pcie_replay_total"): 0,
    },
    "rx6700xt_rocm571": {
        ("0", "gpu_power_watts"): 6,
        ("0", "gpu_memory_bytes", "used"): 1_564_491_776,
        ("0", "gpu_temperature_celsius", "edge"): 45,
        ("0", "gpu_utilization_ratio", "memory_copy"): 0,
    },
    "rx6700xt_rocm612": {
        ("0", "gpu_power_watts"): 6,
        ("0", "gpu_memory_bytes", "used"): 1_572_745_216,
        ("0", "gpu_clock_hz", "graphics"): 0,
        # 12 % of memory are allocated: that is not how busy it is
        ("0", "gpu_utilization_ratio", "memory_copy"): 0,
    },
    "vega-10-XT": {
        ("0", "gpu_power_watts"): 15,
        ("0", "gpu_fan_ratio"): 0.13,
        ("0", "gpu_temperature_celsius", "memory"): 92,
        ("0", "gpu_clock_hz", "graphics"): 1269e6,
        ("0", "gpu_memory_bytes", "total"): 17_163_091_968,
    },
    "vega-20-WKS-GL-XE": {
        ("0", "gpu_power_watts"): 26,
        ("0", "gpu_power_limit_watts", "enforced"): 225,
        ("0", "gpu_fan_ratio"): 0,
        ("0", "gpu_clock_hz", "graphics"): 1725e6,
        ("0", "gpu_memory_bytes", "used"): 10_850_304,
    },
}
IDENTITY = {
    # model, PCI address, id
    "mi100_rocm571": ("Arcturus GL-XL [Instinct MI100]", "0000:1e:00.0", ""),
    "rx6700xt_rocm430": ("0x73df", "0000:07:00.0", ""),
    "rx6700xt_rocm571": ("Navi 22 [Radeon RX 6700/6700 XT / 6800M]", "0000:07:00.0", ""),
    "rx6700xt_rocm612": ("Navi 22 [Radeon RX 6700/6700 XT / 6800M]", "0000:07:00.0", ""),
    "vega-10-XT": ("0x6861", "0000:04:00.0", "0x2150e7d042a1124"),
    "vega-20-WKS-GL-XE": ("Radeon Instinct MI50 32GB", "0000:63:00.0", "0x2f048617326b1ea"),
}
OWN = ("state", "sensor", "engine", "domain", "limit", "kind")


def samples_of(shared: Path, card: str) -> list[Sample]:
    return rocm_samples((shared / "data" / "rocm_smi_json" / f"telegraf_{card}.json").read_text())


def keyed(samples: list[Sample]) -> dict[tuple[str, ...], float]:
    return {
        (s.labels["gpu"], s.name, *(s.labels[name] for name in OWN if name in s.labels)): s.value
        for s in samples
        if "gpu" in s.labels and "peer" not in s.labels
    }


@pytest.mark.parametrize("card", FIGURES)
def test_figures_are_in_base_units(shared: Path, card: str) -> None:
    found = keyed(samples_of(shared, card))
    for key, value in FIGURES[card].items():
        assert found[key] == pytest.approx(value), key


@pytest.mark.parametrize("card", IDENTITY)
def test_a_card_is_known_by_its_name_address_and_id(shared: Path, card: str) -> None:
    info = next(s.labels for s in samples_of(shared, card) if s.name == "gpu_info")
    assert (info["gpu_model"], info["pci_bus_id"], info.get("gpu_uuid", "")) == IDENTITY[card]
    assert info["driver_version"] in {"6.2.4", "6.3.6", "5.9.25", "5.9.17"}
    assert info["vbios"].startswith("113-")


@pytest.mark.parametrize("card", FIGURES)
def test_every_series_is_once_and_nothing_comes_from_what_is_not_known(shared: Path, card: str) -> None:
    samples = samples_of(shared, card)
    series = [(s.name, tuple(sorted(s.labels.items()))) for s in samples]
    assert len(series) == len(set(series))
    nan = {s.labels.get("sensor", s.name) for s in samples if math.isnan(s.value)}
    assert nan == ({"hbm0", "hbm1", "hbm2", "hbm3"} if card == "rx6700xt_rocm430" else set())


def test_six_cards_and_how_they_are_joined(shared: Path) -> None:
    samples = samples_of(shared, "mi100_rocm571")
    assert {s.labels["gpu"] for s in samples if s.name == "gpu_power_watts"} == set("012345")
    pairs = {(s.labels["gpu"], s.labels["peer"], s.labels["link"]) for s in samples if s.name == "gpu_peer_link_info"}
    assert len(pairs) == 30
    assert {link for *_, link in pairs} == {"PCIE"}
    [process] = [s for s in samples if s.name == "gpu_process_memory_bytes"]
    assert (dict(process.labels), process.value) == ({"pid": "104225", "process": "mlir-cpu-runner"}, 0)


def test_a_memory_node_that_is_none_is_not_told(shared: Path) -> None:
    for card, nodes in (("rx6700xt_rocm612", set()), ("rx6700xt_rocm430", set()), ("mi100_rocm571", {"0", "1"})):
        found = {s.labels["numa_node"] for s in samples_of(shared, card) if s.name == "gpu_affinity_info"}
        assert found <= nodes
        assert bool(found) == bool(nodes)


def test_warnings_before_the_json_are_passed_over() -> None:
    text = 'WARNING: AMD GPU device(s) is/are in a low-power state.\n\n{"card0": {"GPU use (%)": "97"}}\n'
    assert keyed(rocm_samples(text))["0", "gpu_utilization_ratio", "graphics"] == pytest.approx(0.97)


def test_numbers_that_mean_nothing_are_not_available() -> None:
    card = {"Average Graphics Package Power (W)": "65535", "GPU use (%)": "N/A", "Temperature (Sensor edge) (C)": "x"}
    values = [s.value for s in rocm_samples(json.dumps({"card3": card})) if s.name != "gpu_info"]
    assert len(values) == 3
    assert all(map(math.isnan, values))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "no JSON"),
        ("not found", "no JSON"),
        ('{"card0": {"GPU', "line 1"),
        ('{"system": {}}', "no card"),
        ("{}", "no card"),
    ],
)
def test_what_is_no_output_of_rocm_smi_is_an_error(text: str, fact: str) -> None:
    with pytest.raises(SourceError, match=fact) as error:
        rocm_samples(text)
    assert error.value.hint


def test_an_id_is_written_the_same_by_both_tools() -> None:
    assert unique_id("0x02150E7D042A1124") == unique_id("0x2150e7d042a1124") == "0x2150e7d042a1124"
    assert unique_id("N/A") == unique_id("0x0") == ""
