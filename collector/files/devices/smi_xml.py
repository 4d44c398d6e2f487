"""`nvidia-smi -q -x` → samples. Entities are refused and no DTD is fetched; what stands before a cut still counts."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError, iterparse

from collector.files.devices.device import Device, read_device
from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.reading import Reading, When, broken

ROOT = "nvidia_smi_log"
_DOCUMENT = re.compile(r"(?=<\?xml\b)|(?<=</nvidia_smi_log>)(?=\s*<nvidia_smi_log)")
_APART = frozenset({"mig_devices", "processes", "supported_clocks", "accounted_processes"})
_LONGEST_PATH = 500  # characters; the schema stays below 100, and a deeper document costs memory by its square
_HEADER = ("timestamp", "driver_version", "cuda_version", "attached_gpus")


@dataclass(slots=True)
class _Log:
    """What one document says: its header, its GPUs, and the line at which it breaks (None: it is whole)."""

    header: dict[str, str] = field(default_factory=dict)
    gpus: list[Element] = field(default_factory=list)
    cut: int | None = None


def read_xml(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of one document, or of several one after the other (`-l`).

    Raises SourceError for entity declarations, another root element, or text without a whole GPU.
    """
    if "<!ENTITY" in text:
        at = line + text.count("\n", 0, text.index("<!ENTITY"))
        raise broken(
            at, "the XML declares entities, which nvidia-smi never does", "save the output of nvidia-smi -q -x"
        )
    reading, at = Reading(), line
    for document in _DOCUMENT.split(text):
        if document.strip():
            reading.extend(_read_document(document, when, at))
        at += document.count("\n")
    return reading


def _read_document(text: str, when: When, line: int) -> Reading:
    log = _parse(text, line)
    if not log.gpus:
        fact = "the XML holds no whole <gpu>" if log.cut is None else "the XML breaks before its first GPU ends"
        raise broken(log.cut or line, fact, "save the output of nvidia-smi -q -x again")
    ts_ms = milliseconds(read_moment(log.header.get("timestamp", ""), when.zone))
    reading = Reading()
    for device in _devices(log, line):
        reading.extend(read_device(device, when.at_ms if ts_ms is None else ts_ms))
    if log.cut is not None:
        reading.refuse("GPU cut short", log.cut)
    return reading


def _parse(text: str, line: int) -> _Log:
    body = text.lstrip()
    before = line - 1 + text[: len(text) - len(body)].count("\n")
    log = _Log()
    depth = 0
    try:
        for event, element in iterparse(io.StringIO(body), ("start", "end")):  # noqa: S314 - entities are refused
            if event == "start":
                depth += 1
                if depth == 1 and element.tag != ROOT:
                    raise broken(before + 1, f"the XML is <{element.tag}>, not <{ROOT}>", "save nvidia-smi -q -x")
                continue
            depth -= 1
            if depth == 1:
                _take(log, element)
            elif depth == 0:
                break
    except ParseError as error:
        log.cut = before + error.position[0]
    return log


def _take(log: _Log, element: Element) -> None:
    if element.tag == "gpu":
        log.gpus.append(element)
    elif element.tag in _HEADER:
        log.header[element.tag] = (element.text or "").strip()


def _devices(log: _Log, line: int) -> Iterator[Device]:
    """Yield the GPUs. nvidia-smi lists all of them by index; of a part of them (`-i`) the index is not known."""
    attached = log.header.get("attached_gpus", "")
    whole = not attached.isdecimal() or attached == str(len(log.gpus)) or log.cut is not None
    for index, gpu in enumerate(log.gpus):
        fields = {"gpu_bus_id": gpu.get("id", "")} | _flat(gpu)
        fields |= {name: log.header[name] for name in ("driver_version", "cuda_version") if name in log.header}
        yield Device(
            fields,
            line,
            str(index) if whole else None,
            migs=[_flat(mig) for mig in gpu.iterfind("mig_devices/mig_device")],
            processes=_processes(gpu),
        )


def _processes(gpu: Element) -> list[dict[str, str]] | None:
    found = gpu.find("processes")
    if found is None or (len(found) == 0 and "n/a" in (found.text or "").lower()):
        return None
    return [_flat(process) for process in found.iterfind("process_info")]


def _flat(root: Element) -> dict[str, str]:
    """Texts below an element by path. Iterative: a document may nest deeper than Python's stack."""
    flat: dict[str, str] = {}
    waiting = [(child, child.tag) for child in root if child.tag not in _APART]
    while waiting:
        element, path = waiting.pop()
        if len(element):
            waiting += [(child, f"{path}/{child.tag}") for child in element if len(path) < _LONGEST_PATH]
        else:
            flat[path] = (element.text or "").strip()
    return flat
