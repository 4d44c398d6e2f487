"""nvidia-smi's own output, read without the collector: what a GPU said at one moment, by the name of the quantity."""

import gzip
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

PATHS: dict[str, tuple[str, ...]] = {
    "model": ("product_name", "Product Name"),
    "uuid": ("uuid", "GPU UUID"),
    "vbios": ("vbios_version", "VBIOS Version"),
    "serial": ("serial", "Serial Number"),
    "mig": ("mig_mode/current_mig", "MIG Mode/Current"),
    "ecc": ("ecc_mode/current_ecc", "ECC Mode/Current"),
    "persistence": ("persistence_mode", "Persistence Mode"),
    "fan": ("fan_speed", "Fan Speed"),
    "pstate": ("performance_state", "Performance State"),
    "memory used": ("fb_memory_usage/used", "FB Memory Usage/Used", "Shared FB Memory Usage/Used"),
    "memory free": ("fb_memory_usage/free", "FB Memory Usage/Free", "Shared FB Memory Usage/Free"),
    "memory total": ("fb_memory_usage/total", "FB Memory Usage/Total", "Shared FB Memory Usage/Total"),
    "memory reserved": ("fb_memory_usage/reserved", "FB Memory Usage/Reserved", "Shared FB Memory Usage/Reserved"),
    "bar1 used": ("bar1_memory_usage/used", "BAR1 Memory Usage/Used", "Shared BAR1 Memory/Used"),
    "bar1 free": ("bar1_memory_usage/free", "BAR1 Memory Usage/Free", "Shared BAR1 Memory/Free"),
    "bar1 total": ("bar1_memory_usage/total", "BAR1 Memory Usage/Total", "Shared BAR1 Memory/Total"),
    "busy gpu": ("utilization/gpu_util", "Utilization/GPU"),
    "busy memory": ("utilization/memory_util", "Utilization/Memory"),
    "busy encoder": ("utilization/encoder_util", "Utilization/Encoder"),
    "busy decoder": ("utilization/decoder_util", "Utilization/Decoder"),
    "busy jpeg": ("utilization/jpeg_util", "Utilization/JPEG"),
    "busy ofa": ("utilization/ofa_util", "Utilization/OFA"),
    "power": ("power_readings/power_draw", "gpu_power_readings/power_draw"),
    "power average": ("gpu_power_readings/average_power_draw", "GPU Power Readings/Average Power Draw"),
    "power instant": ("gpu_power_readings/instant_power_draw", "GPU Power Readings/Instantaneous Power Draw"),
    "limit enforced": (
        "power_readings/enforced_power_limit",
        "gpu_power_readings/current_power_limit",
        "GPU Power Readings/Current Power Limit",
    ),
    "limit requested": (
        "power_readings/power_limit",
        "gpu_power_readings/requested_power_limit",
        "GPU Power Readings/Requested Power Limit",
    ),
    "limit default": (
        "power_readings/default_power_limit",
        "gpu_power_readings/default_power_limit",
        "GPU Power Readings/Default Power Limit",
    ),
    "limit min": (
        "power_readings/min_power_limit",
        "gpu_power_readings/min_power_limit",
        "GPU Power Readings/Min Power Limit",
    ),
    "limit max": (
        "power_readings/max_power_limit",
        "gpu_power_readings/max_power_limit",
        "GPU Power Readings/Max Power Limit",
    ),
    "heat gpu": ("temperature/gpu_temp", "Temperature/GPU Current Temp"),
    "heat memory": ("temperature/memory_temp", "Temperature/Memory Current Temp"),
    "heat margin": ("temperature/gpu_temp_tlimit", "Temperature/GPU T.Limit Temp"),
    "heat shutdown": ("temperature/gpu_temp_max_threshold",),
    "heat slowdown": ("temperature/gpu_temp_slow_threshold",),
    "heat max_operating": ("temperature/gpu_temp_max_gpu_threshold",),
    "heat memory_max": ("temperature/gpu_temp_max_mem_threshold",),
    "heat target": ("temperature/gpu_target_temperature", "Temperature/GPU Target Temperature"),
    "clock graphics": ("clocks/graphics_clock", "Clocks/Graphics"),
    "clock sm": ("clocks/sm_clock", "Clocks/SM"),
    "clock memory": ("clocks/mem_clock", "Clocks/Memory"),
    "clock video": ("clocks/video_clock", "Clocks/Video"),
    "max graphics": ("max_clocks/graphics_clock", "Max Clocks/Graphics"),
    "max sm": ("max_clocks/sm_clock", "Max Clocks/SM"),
    "max memory": ("max_clocks/mem_clock", "Max Clocks/Memory"),
    "max video": ("max_clocks/video_clock", "Max Clocks/Video"),
    "application graphics": ("applications_clocks/graphics_clock", "Applications Clocks/Graphics"),
    "application memory": ("applications_clocks/mem_clock", "Applications Clocks/Memory"),
    "pcie generation": (
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
        "PCI/GPU Link Info/PCIe Generation/Current",
    ),
    "pcie max generation": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "PCI/GPU Link Info/PCIe Generation/Max"),
    "pcie device generation": (
        "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen",
        "PCI/GPU Link Info/PCIe Generation/Device Max",
    ),
    "pcie width": ("pci/pci_gpu_link_info/link_widths/current_link_width", "PCI/GPU Link Info/Link Width/Current"),
    "pcie max width": ("pci/pci_gpu_link_info/link_widths/max_link_width", "PCI/GPU Link Info/Link Width/Max"),
    "pcie tx": ("pci/tx_util", "PCI/Tx Throughput"),
    "pcie rx": ("pci/rx_util", "PCI/Rx Throughput"),
    "pcie replays": ("pci/replay_counter", "PCI/Replays Since Reset"),
    "held power": (
        "clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap",
        "Clocks Event Reasons Counters/SW Power Capping",
    ),
    "fabric": ("fabric/state", "Fabric/State"),
    "rows corrected": ("remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error"),
    "rows uncorrected": ("remapped_rows/remapped_row_unc", "Remapped Rows/Uncorrectable Error"),
    "rows pending": ("remapped_rows/remapped_row_pending", "Remapped Rows/Pending"),
    "rows failed": ("remapped_rows/remapped_row_failure", "Remapped Rows/Remapping Failure Occurred"),
    "instance": ("gpu_instance_id", "GPU Instance ID"),
}
"""Where nvidia-smi prints a quantity, in XML of any schema and in the text of `-q`."""

_ECC = {
    "corrected": ("sram_correctable", "dram_correctable", "SRAM Correctable", "DRAM Correctable"),
    "uncorrected": (
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "dram_uncorrectable",
        "SRAM Uncorrectable Parity",
        "SRAM Uncorrectable SEC-DED",
        "DRAM Uncorrectable",
    ),
}
_REASONS = {
    0x1: ("gpu_idle", "Idle"),
    0x2: ("applications_clocks_setting", "Applications Clocks Setting"),
    0x4: ("sw_power_cap", "SW Power Cap"),
    0x8: ("hw_slowdown", "HW Slowdown"),
    0x10: ("sync_boost", "Sync Boost"),
    0x20: ("sw_thermal_slowdown", "SW Thermal Slowdown"),
    0x40: ("hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"),
    0x80: ("hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"),
    0x100: ("display_clocks_setting", "Display Clock Setting"),
}


@dataclass(frozen=True)
class Process:
    """A process as nvidia-smi prints it."""

    pid: int
    kind: str
    name: str
    used_mib: float
    instance: int | None


@dataclass(frozen=True)
class Capture:
    """One GPU, or MIG device, of one capture."""

    node: ET.Element
    bus_id: str = ""

    def text(self, quantity: str) -> str | None:
        """What is printed; None for a quantity that is not there or not available."""
        return next((text for path in PATHS[quantity] if (text := self.at(path)) is not None), None)

    def at(self, path: str) -> str | None:
        """What is printed at a path."""
        node: ET.Element | None = self.node
        for step in path.split("/"):
            node = next((child for child in node if child.tag == step), None) if node is not None else None
        text = (node.text or "").strip() if node is not None else ""
        return None if text in ("", "N/A") or text.startswith("Requested functionality") else text

    def number(self, quantity: str) -> float | None:
        """The number that is printed, in the unit that is printed."""
        text = self.text(quantity)
        return None if text is None else float(text.lstrip("P").split()[0].rstrip("x"))

    def ecc(self, since: str, kind: str) -> int | None:
        """Sum of the errors of a kind since "volatile" or "aggregate"; None where none is counted."""
        paths = [
            f"{group}/{name}" for group in (f"ecc_errors/{since}", f"ECC Errors/{since.title()}") for name in _ECC[kind]
        ]
        counts = [int(text) for path in paths if (text := self.at(path)) is not None]
        return sum(counts) if counts else None

    def reasons(self) -> int | None:
        """Bits of the reasons that are active; None where none is printed."""
        found = {}
        for bit, (tag, line) in _REASONS.items():
            for path in (
                f"clocks_event_reasons/clocks_event_reason_{tag}",
                f"clocks_throttle_reasons/clocks_throttle_reason_{tag}",
                f"Clocks Event Reasons/{line}",
            ):
                text = self.at(path)
                if text is not None:
                    found[bit] = text == "Active"
        return sum(bit for bit, active in found.items() if active) if found else None

    def instances(self) -> list["Capture"]:
        """The MIG devices."""
        nodes = [*self.node.findall("mig_devices/mig_device"), *(n for n in self.node if n.tag == "MIG Device")]
        return [Capture(node) for node in nodes]

    def processes(self) -> list[Process]:
        """The processes."""
        found = []
        for node in (*self.node.iter("process_info"), *self.node.iter("process")):
            instance = node.findtext("gpu_instance_id", "N/A")
            found.append(
                Process(
                    int(node.findtext("pid", "")),
                    node.findtext("type", ""),
                    node.findtext("process_name", ""),
                    float(node.findtext("used_memory", "").split()[0]),
                    None if instance == "N/A" else int(instance),
                )
            )
        return found


def from_xml(path: Path) -> list[Capture]:
    """Read `nvidia-smi -q -x`."""
    root = ET.parse(path).getroot()
    return [Capture(gpu, gpu.get("id", "")) for gpu in root.iter("gpu")]


def sections(path: Path) -> dict[str, str]:
    """Split a session into the output of each command by its title ("load :: query (-q)")."""
    text = gzip.decompress(path.read_bytes()).decode()
    found = re.split(r"#{80}\n# (\S+ :: [^\n]+)\n(?:# [^\n]*\n)*#{80}\n", text)
    return dict(zip(found[1::2], found[2::2], strict=True))


def from_text(text: str) -> list[Capture]:
    """Read `nvidia-smi -q`: a key per line, four blanks of indentation per level."""
    gpus: list[Capture] = []
    stack: list[ET.Element] = []
    for line in text.splitlines():
        match = re.match(r"( *)(.+?)\s*(?: : (.*))?$", line)
        if match is None:
            continue
        depth, key, value = len(match[1]) // 4, match[2], match[3]
        if key.startswith("GPU 0") and depth == 0:
            gpus.append(Capture(ET.Element("gpu"), key.removeprefix("GPU ")))
            stack = [gpus[-1].node]
        elif depth and stack:
            del stack[depth:]
            node = ET.SubElement(stack[-1], key)
            node.text = value
            stack.append(node)
    for gpu in gpus:
        _processes(gpu.node)
    return gpus


def _processes(gpu: ET.Element) -> None:
    """Put the lines of each process together, as they are in XML."""
    listed = next((node for node in gpu if node.tag == "Processes"), None)
    instance = "N/A"
    for line in list(listed) if listed is not None else []:
        if line.tag == "GPU instance ID":
            instance = line.text or ""
        if line.tag == "Process ID":
            names = {"Type": "type", "Name": "process_name", "Used GPU Memory": "used_memory"}
            node = ET.SubElement(gpu, "process_info")
            ET.SubElement(node, "pid").text = line.text
            ET.SubElement(node, "gpu_instance_id").text = instance
            for child in line:
                ET.SubElement(node, names[child.tag]).text = child.text
