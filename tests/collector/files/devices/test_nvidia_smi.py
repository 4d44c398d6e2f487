"""nvidia-smi as people save it: with gaps, cut short, without units, from other locales, with a GPU missing."""

import math
from pathlib import Path

import pytest

from collector.files import FileKind
from collector.files.devices.reading import When
from collector.files.devices.session import read_smi
from store.errors import SourceError, UsageError
from tests.collector.files.devices.taking import AT, take, take_text

MIB = 2**20
XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><timestamp>Tue Jul 14 09:00:27 2026</timestamp><attached_gpus>2</attached_gpus>
<gpu id="00000000:01:00.0"><uuid>GPU-a</uuid><fan_speed>40 %</fan_speed></gpu>
<gpu id="00000000:02:00.0"><uuid>GPU-b</uuid><fan_speed>50 %</fan_speed></gpu>
</nvidia_smi_log>
"""
LOST = XML.replace("<fan_speed>50 %</fan_speed>", "<fan_speed>GPU is lost</fan_speed><utilization>x</utilization>")


def test_a_lost_gpu_in_xml_is_lost_and_the_other_one_is_not(tmp_path: Path) -> None:
    taken = take_text(tmp_path, LOST)
    assert [taken.value("gpu_lost", gpu_uuid=uuid) for uuid in ("GPU-a", "GPU-b")] == [0, 1]
    assert [taken.value("gpu_fan_ratio", gpu_uuid=uuid) for uuid in ("GPU-a", "GPU-b")] == [0.4, None]


def test_xml_cut_short_keeps_the_gpus_before_the_cut(tmp_path: Path) -> None:
    taken = take_text(tmp_path, XML[: XML.index("50 %")])
    assert [one["gpu"] for one in taken.labels("gpu_fan_ratio")] == ["0"]
    [(reason, refusal)] = taken.imported.refused.items()
    assert (reason, refusal.count, refusal.first) == ("GPU cut short", 1, f"{tmp_path}/output.txt:5")


def test_xml_cut_before_the_first_gpu_ends_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"output\.txt:4: the XML breaks before its first GPU ends"):
        take_text(tmp_path, XML[: XML.index("40 %")])


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    bomb = XML.replace('SYSTEM "nvsmi_device_v12.dtd"', '[<!ENTITY a "x"><!ENTITY b "&a;&a;">]')
    with pytest.raises(SourceError, match=r"output\.txt:2: the XML declares entities"):
        take_text(tmp_path, bomb)


def test_several_documents_in_a_row_are_all_taken(tmp_path: Path) -> None:
    taken = take_text(tmp_path, XML + XML.replace("09:00:27", "09:00:32").replace("40 %", "60 %"))
    assert taken.values("gpu_fan_ratio", gpu="0") == [0.4, 0.6]


def test_gpus_chosen_by_i_have_no_index(tmp_path: Path) -> None:
    taken = take_text(tmp_path, XML.replace("<attached_gpus>2", "<attached_gpus>8"))
    assert ["gpu" in one for one in taken.labels("gpu_lost")] == [False, False]


def test_other_xml_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"output\.txt:2: the XML is <log>, not <nvidia_smi_log>"):
        take_text(tmp_path, "\n<log><nvidia_smi_log/></log>")


def test_what_nvidia_smi_never_prints_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"output\.txt:1: nothing of nvidia-smi that can be read"):
        take_text(tmp_path, "<html><body/></html>", kind=FileKind.NVIDIA_SMI)


CSV = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], clocks.max.sm [MHz], pstate
2026/07/14 09:00:27.792, 0, NVIDIA H100, 97, 70123, 1980, P0
2026/07/14 09:00:27.793, 1, NVIDIA H100, 1 %, 5 MiB, 1980 MHz, P8
"""


def test_units_may_stand_in_the_header_alone(tmp_path: Path) -> None:
    taken = take_text(tmp_path, CSV)
    assert [taken.value("gpu_utilization_ratio", gpu=gpu) for gpu in "01"] == [0.97, 0.01]
    assert [taken.value("gpu_memory_bytes", gpu=gpu) for gpu in "01"] == [70123 * MIB, 5 * MIB]
    assert [taken.value("gpu_performance_state", gpu=gpu) for gpu in "01"] == [0, 8]


def test_a_decimal_comma_is_part_of_its_cell(tmp_path: Path) -> None:
    taken = take_text(tmp_path, "index, power.draw [W], fan.speed [%]\n0, 612,34 W, 30 %\n")
    assert taken.value("gpu_power_watts") == 612.34


def test_a_bad_row_and_a_bad_field_are_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    taken = take_text(tmp_path, CSV + "2026/07/14 09:00:27.794, 2, NVI\n2026/07/14 09:00:28.0, 0, x, soon, 1, 2, P0\n")
    assert {why: (r.count, r.first[-2:]) for why, r in taken.imported.refused.items()} == {
        "row with more or fewer cells than the header": (1, ":4"), "unreadable value (no number)": (1, ":5"),
    }  # fmt: skip
    assert taken.values("gpu_memory_bytes", gpu="0") == [70123 * MIB, MIB]
    assert dict(taken.batch.drops) == {
        "row with more or fewer cells than the header": 1, "unreadable value (no number)": 1,
    }  # fmt: skip


def test_the_older_name_of_the_throttle_mask_means_the_same(tmp_path: Path) -> None:
    for name in ("clocks_throttle_reasons.active", "clocks_event_reasons.active"):
        taken = take_text(tmp_path, f"index, {name}\n0, 0x0000000000000084\n")
        assert taken.value("gpu_throttle_reasons_bitmask") == 132


def test_content_without_a_time_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 of 2 values state no time") as raised:
        take_text(tmp_path, "index, fan.speed [%]\n0, 30 %\n", at=None)
    assert "--time" in raised.value.hint


def test_processes_have_their_memory_and_no_folder(tmp_path: Path) -> None:
    head = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
    taken = take_text(tmp_path, head + "GPU-a, 7, /opt/conda/bin/python3, 2296 MiB\nGPU-a, 8, [Not Found], [N/A]\n")
    assert taken.value("gpu_process_memory_bytes", gpu_uuid="GPU-a", pid="7", process="python3") == 2296 * MIB
    assert taken.value("gpu_process_memory_bytes", pid="8", process="") is None


def test_the_label_of_the_person_wins_over_what_is_printed(tmp_path: Path) -> None:
    text = "index, hostname, fan.speed [%]\n0, printed, 30 %\n"
    assert take_text(tmp_path, text).labels("gpu_lost") == [{"gpu": "0", "host": "printed"}]
    assert take_text(tmp_path, text, labels={"host": "said"}).labels("gpu_lost")[0]["host"] == "said"


LOG = """==============NVSMI LOG==============

Timestamp                                 : Tue Jul 14 09:00:27 2026
Driver Version                            : 470.1

Attached GPUs                             : 1
GPU 00000000:9B:00.0
    Product Name                          : NVIDIA A100
    Clocks Throttle Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    ECC Errors
        Volatile
            SRAM Correctable              : 2
            SRAM Uncorrectable Parity     : 1
            SRAM Uncorrectable SEC-DED    : 3
            DRAM Correctable              : 5
            DRAM Uncorrectable            : N/A
        Aggregate
            SRAM Correctable              : N/A
            DRAM Correctable              : N/A
    Retired Pages
        Single Bit ECC                    : 4
        Pending Page Blacklist            : Yes
    Processes
        Process ID                        : 7
            Type                          : C+G
            Name                          : /bin/a
            Used GPU Memory               : 10 MiB
        Process ID                        : 8
            Type                          : C
            Name                          : /bin/b
            Used GPU Memory               : 20 MiB
"""


def test_a_log_adds_up_errors_and_reasons(tmp_path: Path) -> None:
    taken = take_text(tmp_path, LOG)
    assert taken.value("gpu_throttle_reasons_bitmask", pci_bus_id="0000:9b:00.0") == 0x4 + 0x8 + 0x40
    assert [taken.value("gpu_ecc_errors_total", kind=kind) for kind in ("corrected", "uncorrected")] == [7, 4]
    assert taken.value("gpu_ecc_errors_lifetime_total", kind="corrected") is None
    assert [taken.value("gpu_retired_pages_total"), taken.value("gpu_retired_pages_pending")] == [4, 1]
    assert [taken.value("gpu_processes", type=kind) for kind in ("compute", "graphics")] == [2, 1]
    assert [taken.value("gpu_process_memory_bytes", process=name) for name in "ab"] == [10 * MIB, 20 * MIB]


A100 = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV12\tPXB\t0-47\t0\nGPU1\tNV12\t X \tSYS\t48-95\t1\nNIC0\tPXB\tSYS\t X \t\t\n\n"
    "Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)


def test_a_matrix_names_network_cards_and_ignores_its_legend(tmp_path: Path) -> None:
    taken = take_text(tmp_path, A100)
    assert [(one["gpu"], one["peer"], one["link"]) for one in taken.labels("gpu_peer_link_info")] == [
        ("0", "1", "NV12"), ("0", "mlx5_0", "PXB"), ("1", "0", "NV12"), ("1", "mlx5_0", "SYS"),
    ]  # fmt: skip
    assert taken.value("gpu_affinity_info", gpu="1", cpus="48-95", numa_node="1") == 1
    assert taken.imported.refused == {}


def test_a_p2p_matrix_says_who_reaches_whom(tmp_path: Path) -> None:
    taken = take_text(tmp_path, " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tCNS\tX\n")
    assert taken.value("gpu_p2p_info", gpu="0", peer="1", status="OK") == 1
    assert taken.value("gpu_p2p_info", gpu="1", peer="0", status="ChipsetNotSupported") == 1


def test_an_inactive_link_is_down_and_has_no_speed(tmp_path: Path) -> None:
    text = "GPU 3: NVIDIA A100 (UUID: GPU-c)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
    taken = take_text(tmp_path, text)
    assert [taken.value("gpu_link_up", gpu="3", link=link, kind="nvlink") for link in "01"] == [1, 0]
    assert taken.values("gpu_link_speed_bytes_per_second") == [25e9]


def test_nvlink_errors_and_traffic_are_counted_by_link(tmp_path: Path) -> None:
    text = "GPU 0: NVIDIA A100 (UUID: GPU-c)\n\t Link 0: Replay Errors: 3\n\t Link 0: CRC Errors: 1\n"
    taken = take_text(tmp_path, text + "\t Link 0: Data Tx: 12 KiB\n")
    assert taken.value("gpu_nvlink_errors_total", kind="replay", link="0") == 3
    assert taken.value("gpu_nvlink_errors_total", kind="crc_flit") == 1
    assert taken.value("gpu_link_bytes_total", direction="tx") == 12 * 1024


def test_dmon_rows_are_a_second_apart_and_may_state_their_times(tmp_path: Path) -> None:
    rows = "# gpu    pwr     sm  rxpci  txpci\n# Idx      W      %   MB/s   MB/s\n    0     70     10     5     -\n"
    taken = take_text(tmp_path, rows + "    1     71     20     6     7\n    0     72     30     8     9\n")
    assert taken.values("gpu_power_watts", gpu="0") == [70, 72]
    assert [(t - AT.replace(tzinfo=None)).total_seconds() for t in taken.times] == [0, 1]
    assert taken.values("gpu_pcie_bytes_per_second", gpu="0", direction="tx") == [None, 9e6]
    dated = (
        "#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W\n 20260714   09:00:27      0     70\n"
    )
    assert [t.isoformat() for t in take_text(tmp_path, dated).times] == ["2026-07-14T09:00:27"]


def test_pmon_gives_processes_and_leaves_out_idle_ones(tmp_path: Path) -> None:
    head = "# gpu      pid   type     sm    mem    fb    command\n# Idx        #    C/G      %      %    MB    name\n"
    taken = take_text(tmp_path, head + "    0      10309     C     99      7    512    gpu_burn\n    1  - - - - - -\n")
    assert taken.value("gpu_process_utilization_ratio", pid="10309", engine="graphics") == 0.99
    assert taken.value("gpu_process_memory_bytes", process="gpu_burn") == 512 * MIB
    assert taken.labels("gpu_process_utilization_ratio")[0]["gpu"] == "0"


def test_a_gpu_without_a_handle_is_lost(tmp_path: Path) -> None:
    said = "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.  Reboot the system to recover it"
    taken = take_text(tmp_path, said + "\n")
    assert taken.value("gpu_lost", pci_bus_id="0000:9b:00.0") == 1
    assert taken.imported.notes == (said,)


@pytest.mark.parametrize(
    "said", ["Failed to initialize NVML: Driver/library version mismatch", "No devices were found"]
)
def test_errors_of_the_driver_are_no_values(tmp_path: Path, said: str) -> None:
    with pytest.raises(SourceError, match=f"printed an error in place of values: {said}"):
        take_text(tmp_path, said + "\n")


TABLE = """Tue Jul 14 09:00:43 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:9B:00.0 Off |                    3 |
| N/A   42C    P0             98W /  700W |      59MiB /  81559MiB |      7%      Default |
|                                         |                        |              Enabled |
|   1  NVIDIA A100-SXM...             On  |   00000000:9C:00.0 Off |                  Off |
|ERR!  ERR! ERR!             ERR! / ERR!  |       0MiB /  40960MiB |    ERR!      Default |
| Processes:                                                                              |
|    0    2    0            21180      C   /root/tools/memhog                     2296MiB |
|    1   N/A  N/A             900      G   /usr/lib/xorg/Xorg                         4MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_the_table_for_people_is_read_too(tmp_path: Path) -> None:
    taken = take_text(tmp_path, TABLE, at=None)
    assert [taken.value("gpu_power_watts", gpu=gpu) for gpu in "01"] == [98, None]
    assert [taken.value("gpu_memory_bytes", gpu=gpu, state="total") for gpu in "01"] == [81559 * MIB, 40960 * MIB]
    assert taken.value("gpu_utilization_ratio", pci_bus_id="0000:9b:00.0") == 0.07
    assert taken.value("gpu_ecc_errors_total", gpu="0", kind="uncorrected") == 3
    assert taken.value("gpu_process_memory_bytes", process="memhog", mig_instance="2") == 2296 * MIB
    assert taken.value("gpu_process_memory_bytes", gpu="1", process="Xorg", mig_instance="") == 4 * MIB
    assert {one.get("gpu_model") for one in taken.labels("gpu_lost")} == {"NVIDIA H100 80GB HBM3", None}


def test_what_powershell_saves_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gpus.csv"
    path.write_text(CSV, encoding="utf-16")
    assert take(path).value("gpu_utilization_ratio", gpu="0") == 0.97


def test_parts_of_a_session_that_print_an_index_get_the_labels_of_their_gpu() -> None:
    text = (
        "$ nvidia-smi -L\nGPU 0: NVIDIA A100 (UUID: GPU-a)\n$ nvidia-smi dmon -d 5\n# gpu pwr\n# Idx W\n 0 70\n 0 71\n"
    )
    reading = read_smi(text, When(at_ms=1_000_000))
    assert [(s.labels["gpu_uuid"], s.value, s.ts_ms) for s in reading.samples] == [
        ("GPU-a", 70, 1_005_000), ("GPU-a", 71, 1_010_000),
    ]  # fmt: skip
    assert not any(math.isnan(s.value) for s in reading.samples)
