"""What a text of nvidia-smi holds, told from its content."""

import re
from enum import StrEnum

from collector.files.devices import monitor, smi_table, smi_text, topology
from collector.files.devices.nvlink import GPU_LINE, LINK_LINE
from collector.files.devices.smi_csv import columns_of

FAILED = re.compile(r"NVIDIA-SMI has failed|Failed to initialize NVML|No devices were found|couldn't communicate")
LOST = re.compile(r"Unable to determine the device handle for (?:gpu ?(\d*):? *)?([0-9a-f:.]+): *(.*)", re.IGNORECASE)
_HEAD = 20_000  # characters looked at to tell what a part holds


class Part(StrEnum):
    """What a text of nvidia-smi holds."""

    XML = "XML"
    LOG = "-q"
    CSV = "CSV"
    TOPOLOGY = "topo"
    NVLINK = "nvlink"
    MONITOR = "dmon or pmon"
    LIST = "-L"
    LOST = "a GPU without a handle"
    FAILED = "an error of the driver"
    TABLE = "the table for people"


def part_of(text: str) -> Part | None:
    """Tell what a text of nvidia-smi holds, from its content; None for anything else."""
    lines = [line for line in text[:_HEAD].split("\n") if line.strip()]
    head = lines[0] if lines else ""
    start = text.lstrip()[:400]
    if "<nvidia_smi_log" in start or "<!ENTITY" in start or (start.startswith("<?xml") and "nvsmi" in start):
        return Part.XML
    if any(smi_text.MARK in line for line in lines[:20]):
        return Part.LOG
    if monitor.is_header(head):
        return Part.MONITOR
    if any(smi_table.MARK in line for line in lines[:5]):
        return Part.TABLE
    if topology.is_header(head):
        return Part.TOPOLOGY
    if GPU_LINE.match(head):
        only_names = not any(LINK_LINE.match(line) or "nvlink" in line.lower() for line in lines)
        return Part.LIST if only_names else Part.NVLINK
    if columns_of(head):
        return Part.CSV
    if any(LOST.search(line) for line in lines[:20]):
        return Part.LOST
    return Part.FAILED if FAILED.search(text[:2000]) else None
