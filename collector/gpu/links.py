"""NVLink: which links are up, how fast, to whom, what they carried and what went wrong on them."""

import math
from collections.abc import Iterator, Mapping, Sequence

from collector.gpu.ask import NOT_NOW, Asker, Field, Part, field_answers
from collector.gpu.device import KIB, Device, bus_id
from collector.prometheus.exposition import Sample

_ALL_LINKS = 0xFFFFFFFF
_LINK_COUNT = 91
_SPEED, _COMMON_SPEED = 164, 90
_MEGA = 1e6
_TYPES = {0: "gpu", 1: "ibmnpu", 2: "switch"}
_VERSIONS = {1: 1.0, 2: 2.0, 3: 2.2, 4: 3.0, 5: 3.1, 6: 4.0, 7: 5.0}
_ERRORS = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3, "ecc_data": 4}
_ERROR_FIELDS = {"replay": 161, "recovery": 162, "crc": 163}
# Data without protocol, in KiB; from NVLink 5 on in bytes, with protocol.
_CARRIED = {"tx": ((138, KIB), (202, 1.0)), "rx": ((139, KIB), (204, 1.0))}


def links(device: Device) -> Iterator[Sample]:
    """Yield the links that the GPU has; nothing for a GPU without NVLink."""
    up: list[int] = []
    for link in range(_count(device.asker)):
        state = device.asker.ask("gpu_link_up", "nvmlDeviceGetNvLinkState", link)
        if state is None:
            continue
        up += [link] if state == 1 else []
        labels = {**device.labels, "kind": "nvlink", "link": str(link), **(_peer(device, link) if state == 1 else {})}
        yield Sample("gpu_link_up", labels, math.nan if state is NOT_NOW else float(state), None)
        yield from _version(device, link)
    if up:
        yield from _speeds(device, up)
        yield from _traffic(device, up)
        yield from _errors(device, up)


def find_peers(device: Device) -> None:
    """Ask who is at the far end of each link that is up."""
    for link in range(_count(device.asker)):
        if device.asker.ask("gpu_link_up", "nvmlDeviceGetNvLinkState", link) == 1:
            _peer(device, link)


def _count(asker: Asker) -> int:
    count = next((value for _, value in asker.fields((Field(_LINK_COUNT, Part("gpu_link_up")),))), math.nan)
    if not math.isnan(count):
        return int(count)
    return 0 if (_LINK_COUNT, 0) not in asker.refused else int(getattr(asker.nvml, "NVML_NVLINK_MAX_LINKS", 18))


def _peer(device: Device, link: int) -> Mapping[str, str]:
    """Return the far end of a link as labels; asked once, when the link is up."""
    if link not in device.peers:
        address = device.asker.ask("gpu_link_up peer", "nvmlDeviceGetNvLinkRemotePciInfo", link)
        kind = device.asker.ask("gpu_link_up peer_type", "nvmlDeviceGetNvLinkRemoteDeviceType", link)
        found = {
            "peer_pci_bus_id": bus_id(address.busId) if address is not None and address is not NOT_NOW else "",
            "peer_type": _TYPES.get(kind, "") if isinstance(kind, int) else "",
        }
        device.peers[link] = {name: value for name, value in found.items() if value}
    return device.peers[link]


def _version(device: Device, link: int) -> Iterator[Sample]:
    version = device.asker.ask("gpu_link_version", "nvmlDeviceGetNvLinkVersion", link)
    if isinstance(version, int) and version in _VERSIONS:
        yield Sample("gpu_link_version", _labels(device, link), _VERSIONS[version], None)


def _labels(device: Device, link: int) -> dict[str, str]:
    return {**device.labels, "kind": "nvlink", "link": str(link)}


def _speeds(device: Device, up: Sequence[int]) -> Iterator[Sample]:
    part = Part("gpu_link_speed_bytes_per_second", {"kind": "nvlink"}, _MEGA)
    wanted = [*(Field(_SPEED, part, link) for link in up), Field(_COMMON_SPEED, part)]
    values = {(wish.id, wish.scope): value for wish, value in device.asker.fields(wanted)}
    for link in up:
        speed = values.get((_SPEED, link), values.get((_COMMON_SPEED, 0)))
        if speed is not None:
            yield Sample(part.metric, _labels(device, link), speed, None)


def _traffic(device: Device, up: Sequence[int]) -> Iterator[Sample]:
    """Yield bytes per link and direction; one number for all links where the driver tells no more."""
    for direction, counters in _CARRIED.items():
        for field_id, scale in counters:
            part = Part("gpu_link_bytes_total", {"kind": "nvlink", "direction": direction}, scale)
            values = {
                wish.scope: value
                for wish, value in device.asker.fields([Field(field_id, part, link) for link in (*up, _ALL_LINKS)])
            }
            if values:
                yield from _by_link(device, part, values)
                break


def _by_link(device: Device, part: Part, values: Mapping[int, float]) -> Iterator[Sample]:
    """Yield a number per link, unless the driver ignores the link and answers with the sum each time."""
    total = values.get(_ALL_LINKS, math.nan)
    each = {link: value for link, value in values.items() if link != _ALL_LINKS}
    if not each or (len(each) > 1 and total > 0 and sum(each.values()) > 1.5 * total):
        yield Sample(part.metric, {**device.labels, **part.labels}, total, None)
        return
    for link, value in each.items():
        yield Sample(part.metric, {**_labels(device, link), **part.labels}, value, None)


def _errors(device: Device, up: Sequence[int]) -> Iterator[Sample]:
    counted = False
    for link in up:
        for kind, counter in _ERRORS.items():
            count = device.asker.ask("gpu_nvlink_errors_total", "nvmlDeviceGetNvLinkErrorCounter", link, counter)
            if count is not None:
                counted = True
                value = math.nan if count is NOT_NOW else float(count)
                yield Sample("gpu_nvlink_errors_total", {**_error_labels(device, link), "kind": kind}, value, None)
    if not counted:
        fields = [
            Field(id_, Part("gpu_nvlink_errors_total", {"link": str(link), "kind": kind}), link)
            for kind, id_ in _ERROR_FIELDS.items()
            for link in up
        ]
        yield from field_answers(device.asker, fields, device.labels)


def _error_labels(device: Device, link: int) -> dict[str, str]:
    return {**device.labels, "link": str(link)}
