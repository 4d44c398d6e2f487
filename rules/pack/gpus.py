"""Alerts on GPUs: faults, memory that wears out, clocks held down, one GPU unlike its peers."""

from datetime import timedelta

from rules.pack.packed import MINUTE, Packed
from rules.pack.recorded import Derived, Recorded
from store.xids import XIDS

XID = Recorded("gpu", "gpu_last_xid")
REMAP_FAILED = Recorded("gpu", "gpu_row_remap_failed")
REMAP_PENDING = Recorded("gpu", "gpu_row_remap_pending")
ECC = Recorded("gpu", "gpu_ecc_errors_total", "last", by=("kind",))
THROTTLED = Recorded("gpu", "gpu_throttle_seconds_total", "rate", 5 * MINUTE, by=("reason",))
THROTTLE_SHARE = Recorded("gpu", "gpu_throttle_ratio", by=("reason",))
TEMPERATURE = Recorded("gpu", "gpu_temperature_celsius", by=("sensor",))
COUNT = Derived("host:gpus:count", f'count by (host, job) ({TEMPERATURE.name}{{sensor="gpu"}})', ("host", "job"))
BUSY = Recorded("gpu", "gpu_engine_active_ratio")
TENSOR = Recorded("gpu", "gpu_tensor_active_ratio")

WHO = ("host", "gpu")
THERMAL = "thermal|hw_thermal|sw_thermal|socket_thermal|hbm_thermal|vr_thermal"
POWER = "power|sw_power_cap|board_limit|ppt"
_ON = 'UUID="GPU-1", gpu="0", modelName="NVIDIA H100 80GB HBM3", Hostname="n1", job="dcgm", instance="n1:9400"'
_AT = {"host": "n1", "gpu": "0"}
ALL = {
    "host": "n1", "gpu": "0", "gpu_uuid": "GPU-1", "gpu_model": "NVIDIA H100 80GB HBM3", "job": "dcgm",
    "instance": "n1:9400",
}  # fmt: skip


def series_of(name: str, gpu: int = 0) -> str:
    """Series of a GPU of node n1, as dcgm-exporter shows it."""
    return f"{name}{{{_ON}}}".replace('gpu="0"', f'gpu="{gpu}"').replace("GPU-1", f"GPU-{gpu + 1}")


def _new_code(codes: list[int]) -> str:
    """Codes that were not there half an hour ago: exporters show the last one until they restart."""
    named = " or ".join(f"{XID.name} == {code}" for code in codes)
    return f"({named}) unless ({XID.name} == ({XID.name} offset 30m))"


_CRITICAL = sorted(code for code, xid in XIDS.items() if xid.severity == "critical")
_SHARE = f'{THROTTLED.name}{{reason=~"{{0}}"}} or {THROTTLE_SHARE.name}{{reason=~"{{0}}"}}'.replace("{0}", "%s")
_PEERS = f"quantile by (host, job) (0.5, avg_over_time({BUSY.name}[10m]))"

ALERTS = (
    Packed(
        name="GpuXidCritical",
        severity="critical",
        reads=(XID,),
        expr=_new_code(_CRITICAL),
        summary="GPU {gpu} of {host} reports Xid {value:.0f}",
        description="The driver reports a fault after which the GPU or the node must be reset. The code came within "
        "the last half hour; the same code again cannot be seen. Look at it with: infractl status",
        runbook="gpu-xid",
        kept=WHO,
        hold=timedelta(0),
        keep_firing=15 * MINUTE,
        at=timedelta(minutes=55),
        fires={series_of("DCGM_FI_DEV_XID_ERRORS"): "0x200 79x40"},
        quiet={series_of("DCGM_FI_DEV_XID_ERRORS"): "0x200 13x40", series_of("DCGM_FI_DEV_XID_ERRORS", 1): "79x240"},
        labels=ALL,
        value=79,
    ),
    Packed(
        name="GpuRowRemapFailed",
        severity="critical",
        reads=(REMAP_FAILED,),
        expr=f"{REMAP_FAILED.name} > 0",
        summary="GPU {gpu} of {host} could not replace a faulty row of its memory",
        description="The spare rows are used up or the row cannot be replaced: NVIDIA's criterion to replace it.",
        runbook="gpu-memory-worn",
        kept=WHO,
        fires={series_of("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "1x180"},
        quiet={series_of("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x180"},
        labels=ALL,
        value=1,
    ),
    Packed(
        name="GpuRowRemapPending",
        severity="warning",
        reads=(REMAP_PENDING,),
        expr=f"{REMAP_PENDING.name} > 0",
        summary="GPU {gpu} of {host} waits for a reset to replace a row of its memory",
        description="Until the reset the row stays in use; errors in it end programs. Drain the GPU and reset it.",
        runbook="gpu-memory-worn",
        kept=WHO,
        hold=10 * MINUTE,
        fires={series_of("DCGM_FI_DEV_ROW_REMAP_PENDING"): "1x180"},
        quiet={series_of("DCGM_FI_DEV_ROW_REMAP_PENDING"): "0x180"},
        labels=ALL,
        value=1,
    ),
    Packed(
        name="GpuEccUncorrectable",
        severity="critical",
        reads=(ECC,),
        expr=f'{ECC.name}{{kind="uncorrected"}} - {ECC.name}{{kind="uncorrected"}} offset 30m > 0',
        summary="GPU {gpu} of {host} had {value:.0f} uncorrectable memory errors within 30 minutes",
        description="Data in the GPU's memory were lost; programs that used them end or give wrong answers.",
        runbook="gpu-memory-worn",
        kept=WHO,
        hold=timedelta(0),
        fires={series_of("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"): "2x140 3x40"},
        quiet={
            series_of("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"): "2x180",
            series_of("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"): "0+5x180",
        },
        labels={**ALL, "kind": "uncorrected"},
        value=1,
    ),
    Packed(
        name="GpuThrottledByHeat",
        severity="warning",
        reads=(THROTTLED, THROTTLE_SHARE),
        expr=f"({_SHARE % (THERMAL, THERMAL)}) > 0.1",
        summary="GPU {gpu} of {host} is slowed by heat {value:.0%} of the time",
        description="Its clocks are held down since it or its memory is too hot: every request on it is slower.",
        runbook="gpu-throttled",
        kept=WHO,
        hold=5 * MINUTE,
        fires={series_of("DCGM_FI_DEV_THERMAL_VIOLATION"): "0+3750000000x180"},
        quiet={series_of("DCGM_FI_DEV_THERMAL_VIOLATION"): "0+750000000x180"},
        labels={**ALL, "reason": "thermal"},
        value=0.25,
    ),
    Packed(
        name="GpuThrottledByPower",
        severity="info",
        reads=(THROTTLED, THROTTLE_SHARE),
        expr=f"({_SHARE % (POWER, POWER)}) > 0.5",
        summary="GPU {gpu} of {host} is held at its power limit {value:.0%} of the time",
        description="Usual under full load; with a lowered limit or a weak supply it costs speed.",
        runbook="gpu-throttled",
        kept=WHO,
        hold=15 * MINUTE,
        fires={series_of("DCGM_FI_DEV_POWER_VIOLATION"): "0+11250000000x180"},
        quiet={series_of("DCGM_FI_DEV_POWER_VIOLATION"): "0+3750000000x180"},
        labels={**ALL, "reason": "power"},
        value=0.75,
    ),
    Packed(
        name="GpuLost",
        severity="critical",
        reads=(TEMPERATURE, COUNT),
        expr=f"max_over_time({COUNT.name}[1h]) - {COUNT.name} > 0",
        summary="{host} shows {value:.0f} GPUs fewer than within the last hour",
        description="A GPU fell off the bus or its driver no longer answers; what ran on it has ended.",
        runbook="gpu-lost",
        kept=("host",),
        fires={series_of("DCGM_FI_DEV_GPU_TEMP"): "60x180", series_of("DCGM_FI_DEV_GPU_TEMP", 1): "60x120 stale"},
        quiet={series_of("DCGM_FI_DEV_GPU_TEMP"): "60x180", series_of("DCGM_FI_DEV_GPU_TEMP", 1): "60x180"},
        labels={"host": "n1", "job": "dcgm"},
        value=1,
    ),
    Packed(
        name="GpuUnlikeItsPeers",
        severity="warning",
        reads=(BUSY,),
        expr=(
            f"{_PEERS} - on (host, job) group_right () avg_over_time({BUSY.name}[10m]) > 0.4 "
            f"and on (host, job) count by (host, job) ({BUSY.name}) >= 4"
        ),
        summary="GPU {gpu} of {host} is {value:.0%} of the time less busy than the median of its node",
        description="In a tensor-parallel group all GPUs wait for the slowest one, or one is left out of the work.",
        runbook="gpu-unlike-its-peers",
        kept=WHO,
        hold=15 * MINUTE,
        fires={
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu): ("0.2x180" if gpu == 0 else "0.9x180") for gpu in range(4)
        },
        quiet={
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu): ("0.6x180" if gpu == 0 else "0.9x180") for gpu in range(4)
        },
        labels=ALL,
        value=0.7,
    ),
    Packed(
        name="GpuBusyTensorIdle",
        severity="info",
        reads=(BUSY, TENSOR),
        expr=f"avg_over_time({BUSY.name}[30m]) > 0.9 and avg_over_time({TENSOR.name}[30m]) < 0.05",
        summary="GPU {gpu} of {host} is busy {value:.0%} of the time, its tensor cores hardly at all",
        description="Utilisation says busy, the arithmetic units are not: memory-bound decode, a kernel "
        "without tensor cores, or a process that spins.",
        runbook="gpu-busy-tensor-idle",
        kept=WHO,
        hold=30 * MINUTE,
        at=timedelta(minutes=70),
        fires={
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"): "0.95x300",
            series_of("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0.01x300",
        },
        quiet={
            series_of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"): "0.95x300",
            series_of("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0.4x300",
        },
        labels=ALL,
        value=0.95,
    ),
)
