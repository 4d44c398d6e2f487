"""rocm-smi's JSON as canonical samples. Keys differ between ROCm 4 and 6, and units are in the keys or the values."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from collector.gpu.ask import Part
from collector.prometheus.exposition import Sample
from store.errors import SourceError

Card = Mapping[str, str]

_UTILIZATION = "gpu_utilization_ratio"
_NUMBERS = {
    "gpu use (%)": Part(_UTILIZATION, {"engine": "graphics"}, 0.01, most=100),
    # Up to ROCm 5 "memory use" is activity of the memory controller; since ROCm 6 "VRAM%" is how full memory is.
    "gpu memory use (%)": Part(_UTILIZATION, {"engine": "memory_copy"}, 0.01, most=100),
    "gpu memory read/write activity (%)": Part(_UTILIZATION, {"engine": "memory_copy"}, 0.01, most=100),
    "average graphics package power (w)": Part("gpu_power_watts", most=10_000),
    "current socket graphics package power (w)": Part("gpu_power_watts", most=10_000),
    "max graphics package power (w)": Part("gpu_power_limit_watts", {"limit": "enforced"}, most=10_000),
    "accumulated energy (uj)": Part("gpu_energy_joules_total", scale=1e-6),
    "fan speed (%)": Part("gpu_fan_ratio", scale=0.01),
    "pcie replay count": Part("gpu_pcie_replay_total"),
    "sclk clock speed": Part("gpu_clock_hz", {"domain": "graphics"}, 1e6),
    "mclk clock speed": Part("gpu_clock_hz", {"domain": "memory"}, 1e6),
    "fclk clock speed": Part("gpu_clock_hz", {"domain": "fabric"}, 1e6),
    "socclk clock speed": Part("gpu_clock_hz", {"domain": "soc"}, 1e6),
}
_SENSORS = {"junction": "hotspot"}
_TEMPERATURE = re.compile(r"temperature \(sensor (.+)\) \(c\)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
_PCIE = re.compile(r"\(([\d.]+)GT/s x(\d+)\)")
_LINK_TYPE = re.compile(r"\(topology\) link type between drm devices (\d+) and (\d+)")
_PROCESS = re.compile(r"PID(\d+)")
_MODELS = ("card series", "device name", "card model", "gpu id", "device id")
_NO_NODE = frozenset(("-1", "4294967295"))


def rocm_samples(text: str) -> list[Sample]:
    """Read the output of `rocm-smi --showallinfo --json`, warnings before it and all.

    What rocm-smi prints as N/A is NaN. Raises SourceError for what is no such output.
    """
    page = _decode(text)
    cards = {key.removeprefix("card"): card for key, card in page.items() if re.fullmatch(r"card\d+", key)}
    if not cards:
        raise SourceError("rocm-smi: no card in its JSON", "export it with rocm-smi --showallinfo --json")
    system = page.get("system", {})
    known = {index: _lower(card) for index, card in cards.items()}
    shared = {"driver_version": str(system.get("Driver version", ""))}
    samples = chain.from_iterable(_card(_labels(index, card), card, shared) for index, card in known.items())
    return [*samples, *_joins(system, known), *_processes(system)]


def _decode(text: str) -> dict[str, Any]:
    start = text.find("{")
    if start < 0:
        raise SourceError("rocm-smi: no JSON in its output", "export it with rocm-smi --showallinfo --json")
    try:
        page, _ = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"rocm-smi: line {error.lineno}: {error.msg}", "the output was cut: export it anew"
        ) from error
    return {key: value for key, value in page.items() if isinstance(value, dict)}


def _lower(card: Mapping[str, Any]) -> Card:
    return {key.strip().rstrip(":").lower(): str(value).strip() for key, value in card.items()}


def _labels(index: str, card: Card) -> dict[str, str]:
    names = [card[key] for key in _MODELS if card.get(key, "N/A") != "N/A"]
    # ROCm 4 prints the number of the vendor where it does not know the name
    model = next((name for name in names if not name.startswith("0x")), "") or next(iter(names[-1:]), "")
    found = {
        "gpu": index,
        "gpu_uuid": unique_id(card.get("unique id", "")),
        "gpu_model": model,
        "pci_bus_id": card.get("pci bus", "").lower().replace("n/a", ""),
    }
    return {name: value for name, value in found.items() if value}


def unique_id(text: str) -> str:
    """Write AMD's hexadecimal id without leading zeros, in lower case; "" where there is none."""
    try:
        number = int(text, 16)
    except ValueError:
        return ""
    return f"0x{number:x}" if number else ""


def _card(labels: Mapping[str, str], card: Card, shared: Mapping[str, str]) -> Iterator[Sample]:
    facts = {"vbios": card.get("vbios version", ""), "serial": card.get("serial number", ""), **shared}
    yield Sample("gpu_info", {**labels, **{k: v for k, v in facts.items() if v not in ("", "N/A", "0")}}, 1.0, None)
    node = card.get("(topology) numa affinity", "")
    if node and node not in _NO_NODE:
        yield Sample("gpu_affinity_info", {**labels, "cpus": "", "numa_node": node}, 1.0, None)
    for key, text in card.items():
        part = _NUMBERS.get(key) or _sensor(key)
        if part is not None:
            yield Sample(part.metric, {**labels, **part.labels}, _value(text, part), None)
    yield from _memory(labels, card)
    match = _PCIE.search(card.get("pcie clock level", ""))
    if match:
        current = {**labels, "kind": "current"}
        yield Sample("gpu_pcie_link_gt_per_second", current, float(match[1]), None)
        yield Sample("gpu_pcie_link_width", current, float(match[2]), None)


def _sensor(key: str) -> Part | None:
    match = _TEMPERATURE.fullmatch(key)
    if match is None:
        return None
    name = match[1].replace(" ", "")
    return Part("gpu_temperature_celsius", {"sensor": _SENSORS.get(name, name)}, most=1000)


def _value(text: str, part: Part) -> float:
    match = _NUMBER.search(text)
    if match is None or float(match[0]) > part.most:
        return math.nan
    return float(match[0]) * part.scale


def _memory(labels: Mapping[str, str], card: Card) -> Iterator[Sample]:
    total, used = (_value(card.get(f"vram total {kind}memory (b)", ""), Part("")) for kind in ("", "used "))
    if "vram total memory (b)" in card:
        for state, value in {"used": used, "free": total - used, "total": total}.items():
            yield Sample("gpu_memory_bytes", {**labels, "state": state}, value, None)


def _joins(system: Mapping[str, Any], cards: Mapping[str, Card]) -> Iterator[Sample]:
    for key, link in system.items():
        match = _LINK_TYPE.fullmatch(key.lower())
        for gpu, peer in ((match[1], match[2]), (match[2], match[1])) if match else ():
            labels = {**_labels(gpu, cards.get(gpu, {})), "peer": peer, "link": str(link)}
            yield Sample("gpu_peer_link_info", labels, 1.0, None)


def _processes(system: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the memory of processes: name, GPUs, VRAM in bytes, ... It is over all GPUs: no label gpu."""
    for key, text in system.items():
        match = _PROCESS.fullmatch(key)
        words = [word.strip() for word in str(text).split(",")]
        if match and len(words) > 2:
            labels = {"pid": match[1], "process": words[0]}
            yield Sample("gpu_process_memory_bytes", labels, _value(words[2], Part("")), None)
