"""InfiniBand and RDMA ports: /sys/class/infiniband. Format: Documentation/ABI/stable/sysfs-class-infiniband."""

import re
from collections.abc import Iterator, Mapping

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

BASE = "/sys/class/infiniband"
WORD_BYTES = 4
"""port_rcv_data and port_xmit_data count words of four bytes."""

_RATE = re.compile(r"([\d.]+) Gb/sec")
_DATA = {"port_rcv_data": "rx", "port_xmit_data": "tx"}
_PACKETS = {"port_rcv_packets": "rx", "port_xmit_packets": "tx"}
_CONGESTION = ("port_xmit_wait", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored")
_ERRORS = frozenset(
    [
        "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
        "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_errors",
        "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors",
        "port_xmit_discards", "symbol_error", "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err",
        "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error", "req_remote_access_errors",
        "req_remote_invalid_request", "resp_cqe_error", "resp_local_length_error", "resp_remote_access_errors",
        "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "rx_icrc_encapsulated",
    ]
)  # fmt: skip
"""Counters of errors. Flush errors are left out: closing a connection makes them."""


def read(tree: Tree) -> Iterator[Sample]:
    """Yield all of every port."""
    for device in tree.names(BASE):
        for port in tree.names(f"{BASE}/{device}/ports"):
            base = f"{BASE}/{device}/ports/{port}"
            counters = {
                name: tree.word(f"{base}/{folder}/{name}")
                for folder in ("counters", "hw_counters")
                for name in tree.names(f"{base}/{folder}")
            }
            labels = {"device": device, "port": port}
            state, rate, layer = (tree.word(f"{base}/{name}") for name in ("state", "rate", "link_layer"))
            yield from port_samples(labels, state, rate, layer)
            yield from counter_samples(labels, counters)


def port_samples(labels: Mapping[str, str], state: str, rate: str, layer: str) -> Iterator[Sample]:
    """Yield rdma_port_up (with link_layer) of `4: ACTIVE` and rdma_port_speed_bytes_per_second of `400 Gb/sec (…)`."""
    if state:
        known = {"link_layer": layer} if layer else {}
        yield Sample("rdma_port_up", {**labels, **known}, float(state.startswith("4:")), None)
    match = _RATE.match(rate)
    if match:
        yield Sample("rdma_port_speed_bytes_per_second", labels, float(match[1]) * 1e9 / 8, None)


def counter_samples(labels: Mapping[str, str], counters: Mapping[str, str]) -> Iterator[Sample]:
    """Yield rdma_port_{bytes,packets}_total (direction), rdma_port_{errors,congestion}_total (kind)."""
    for name, text in counters.items():
        if not text.isdigit():  # `N/A (no PMA)`
            continue
        value = float(text)
        if name in _DATA:
            yield Sample("rdma_port_bytes_total", {**labels, "direction": _DATA[name]}, value * WORD_BYTES, None)
        elif name in _PACKETS:
            yield Sample("rdma_port_packets_total", {**labels, "direction": _PACKETS[name]}, value, None)
        elif name in _CONGESTION:
            yield Sample("rdma_port_congestion_total", {**labels, "kind": name}, value, None)
        elif name in _ERRORS:
            yield Sample("rdma_port_errors_total", {**labels, "kind": name}, value, None)
