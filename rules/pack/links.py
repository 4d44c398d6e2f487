"""Alerts on what joins GPUs: NVLink, PCIe, the network ports of RDMA."""

from datetime import timedelta

from rules.pack.gpus import ALL, BUSY, WHO, series_of
from rules.pack.packed import MINUTE, Packed
from rules.pack.recorded import Recorded

NVLINK = Recorded("gpu", "gpu_nvlink_errors_total", "increase", 10 * MINUTE, by=("kind",))
REPLAYS = Recorded("gpu", "gpu_pcie_replay_total", "increase", 10 * MINUTE)
WIDTH = Recorded("gpu", "gpu_pcie_link_width", by=("kind",))
GENERATION = Recorded("gpu", "gpu_pcie_link_generation", by=("kind",))
PORT_ERRORS = Recorded("port", "rdma_port_errors_total", "increase", 10 * MINUTE, by=("kind",))
PORT_SPEED = Recorded("port", "rdma_port_speed_bytes_per_second")

_PORT = '{device="mlx5_0", port="1", job="node", instance="n1:9100"}'
_PORT_LABELS = {"host": "n1", "device": "mlx5_0", "port": "1", "job": "node", "instance": "n1:9100"}


def _below(record: Recorded) -> str:
    """Say that the current value is below the most it can be."""
    return f'{record.name}{{kind="current"}} < ignoring (kind) {record.name}{{kind="max"}}'


ALERTS = (
    Packed(
        name="NvlinkErrors",
        severity="warning",
        reads=(NVLINK,),
        expr=f'{NVLINK.name}{{kind=~"crc_flit|crc_data|replay"}} > 10',
        summary="NVLink of GPU {gpu} of {host}: {value:.0f} {kind} errors within 10 minutes",
        description="Packets are corrupted and sent again: collectives wait. A few now and then are harmless.",
        runbook="nvlink-errors",
        kept=(*WHO, "kind"),
        hold=5 * MINUTE,
        fires={series_of("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "0+1x180"},
        quiet={series_of("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "5x80 9x100"},
        labels={**ALL, "kind": "replay"},
        value=40,
    ),
    Packed(
        name="NvlinkRecovery",
        severity="critical",
        reads=(NVLINK,),
        expr=f'{NVLINK.name}{{kind="recovery"}} > 0',
        summary="NVLink of GPU {gpu} of {host} was trained anew {value:.0f} times within 10 minutes",
        description="A link went down and came back (it flaps): every collective over it stood still meanwhile.",
        runbook="nvlink-errors",
        kept=WHO,
        hold=timedelta(0),
        fires={series_of("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "0+1x180"},
        quiet={series_of("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "3x180"},
        labels={**ALL, "kind": "recovery"},
        value=40,
    ),
    Packed(
        name="PcieReplays",
        severity="warning",
        reads=(REPLAYS,),
        expr=f"{REPLAYS.name} > 60",
        summary="PCIe link of GPU {gpu} of {host}: {value:.0f} packets sent again within 10 minutes",
        description="The link is unsound (riser, seating, retimer): transfers between host and GPU are slower.",
        runbook="pcie-link",
        kept=WHO,
        hold=5 * MINUTE,
        fires={series_of("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+3x180"},
        quiet={series_of("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+1x180"},
        labels=ALL,
        value=120,
    ),
    Packed(
        name="PcieNarrow",
        severity="warning",
        reads=(WIDTH,),
        expr=_below(WIDTH),
        summary="PCIe link of GPU {gpu} of {host} runs at {value:.0f} lanes, fewer than it has",
        description="Lanes are lost whether the GPU is busy or not: bandwidth to the host falls in proportion.",
        runbook="pcie-link",
        kept=WHO,
        hold=10 * MINUTE,
        fires={
            series_of("DCGM_FI_DEV_PCIE_LINK_WIDTH"): "8x180",
            series_of("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"): "16x180",
        },
        quiet={
            series_of("DCGM_FI_DEV_PCIE_LINK_WIDTH"): "16x180",
            series_of("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"): "16x180",
        },
        labels=ALL,
        value=8,
    ),
    Packed(
        name="PcieSlowGeneration",
        severity="warning",
        reads=(GENERATION, BUSY),
        expr=f"{_below(GENERATION)} and on (host, job, gpu) avg_over_time({BUSY.name}[10m]) > 0.2",
        summary="PCIe link of GPU {gpu} of {host} runs as generation {value:.0f} while the GPU is busy",
        description="An idle GPU lowers its link to save power; under load it should be at its full speed.",
        runbook="pcie-link",
        kept=WHO,
        hold=10 * MINUTE,
        fires={
            series_of("DCGM_FI_DEV_PCIE_LINK_GEN"): "3x180",
            series_of("DCGM_FI_DEV_PCIE_MAX_LINK_GEN"): "5x180",
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"): "0.8x180",
        },
        quiet={
            series_of("DCGM_FI_DEV_PCIE_LINK_GEN"): "1x180",
            series_of("DCGM_FI_DEV_PCIE_MAX_LINK_GEN"): "5x180",
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"): "0.0x180",
        },
        labels=ALL,
        value=3,
    ),
    Packed(
        name="RdmaPortErrors",
        severity="warning",
        reads=(PORT_ERRORS,),
        expr=f"{PORT_ERRORS.name} > 10",
        summary="RDMA port {device}:{port} of {host}: {value:.0f} {kind} within 10 minutes",
        description="A cable, a transceiver or the far end is unsound; what crosses this port is slower.",
        runbook="rdma-port",
        kept=("host", "device", "port", "kind"),
        hold=5 * MINUTE,
        fires={f"node_infiniband_symbol_error_total{_PORT}": "0+1x180"},
        quiet={f"node_infiniband_symbol_error_total{_PORT}": "7x180"},
        labels={**_PORT_LABELS, "kind": "symbol_error"},
        value=40,
    ),
    Packed(
        name="RdmaPortSlow",
        severity="critical",
        reads=(PORT_SPEED,),
        expr=f"{PORT_SPEED.name} / on (job) group_left () (max by (job) ({PORT_SPEED.name}) > 0) < 0.6",
        summary="RDMA port {device}:{port} of {host} has {value:.0%} of the speed of the others",
        description="It fell back to a lower rate or width: every collective runs at the speed of this port.",
        runbook="rdma-port",
        kept=("host", "device", "port"),
        hold=5 * MINUTE,
        fires={
            f"node_infiniband_rate_bytes_per_second{_PORT}": "12500000000x180",
            f"node_infiniband_rate_bytes_per_second{_PORT}".replace("mlx5_0", "mlx5_1"): "50000000000x180",
        },
        quiet={
            f"node_infiniband_rate_bytes_per_second{_PORT}": "50000000000x180",
            f"node_infiniband_rate_bytes_per_second{_PORT}".replace("mlx5_0", "mlx5_1"): "50000000000x180",
        },
        labels=_PORT_LABELS,
        value=0.25,
    ),
)
