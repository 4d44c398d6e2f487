"""The whole reader: against a tree, against what a tree lacks, and against the machine that runs the test."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.host.reader import HostReader
from collector.host.tree import Tree
from collector.presets.catalog import canonical
from collector.prometheus.exposition import Exposition, Series
from collector.prometheus.series import to_batch
from store.errors import SourceError
from store.tables import METRIC_SERIES
from tests.collector.host.conftest import finder
from tests.collector.host.tree_of import FILES, RESCTRL, process, write

LINUX = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc")


def test_every_name_is_a_canonical_one_and_no_series_comes_twice(root: Path) -> None:
    write(root, RESCTRL)
    process(root, 700, ["vllm"], "0-1", ["/dev/nvidia0"])
    samples = HostReader(root).read()
    assert {s.name for s in samples if canonical(s.name) is None} == set()
    assert len({(s.name, tuple(sorted(s.labels.items()))) for s in samples}) == len(samples)
    assert len({s.name for s in samples}) > 20


def test_the_labels_are_those_that_the_canonical_metric_names(root: Path) -> None:
    write(root, RESCTRL)
    process(root, 700, ["vllm"], "0-1", ["/dev/nvidia0"])
    for sample in HostReader(root).read():
        known = canonical(sample.name)
        assert known is not None
        assert [name for name in sample.labels if name not in known.help] == [], sample.name


def test_samples_become_series_in_base_units(root: Path) -> None:
    samples = HostReader(root).read()
    page = Exposition([Series(s.name, s.labels, "gauge") for s in samples], [s.value for s in samples])
    series = to_batch("host", page, datetime(2026, 11, 30, tzinfo=UTC)).frames[METRIC_SERIES.name]
    assert series["canonical"].null_count() == 0
    assert (series["canonical"] == series["name"]).all()
    assert set(series["scale"]) == {1.0}


def test_a_container_without_psi_and_resctrl_is_read_and_says_what_it_lacks(root: Path) -> None:
    for name in ("cpu", "irq"):
        (root / "proc/pressure" / name).unlink()
    reader = HostReader(root)
    found = finder(reader.read())
    assert found("host_pressure_ratio") == []
    assert found("host_load") != []
    assert reader.skipped["/proc/pressure/cpu"].reason == "No such file or directory"
    assert "/sys/fs/resctrl" in reader.skipped
    assert "/proc/meminfo" not in reader.skipped


def test_what_is_missing_is_said_once(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "collector.host.reader")
    reader = HostReader(root)
    reader.read()
    first = len(caplog.records)
    reader.read()
    assert first > 0
    assert len(caplog.records) == first


def test_a_file_that_is_not_understood_loses_its_own_area_only(root: Path) -> None:
    (root / "proc/loadavg").write_text("much less than before\n")
    (root / "proc/diskstats").write_text("1 2\n")
    reader = HostReader(root)
    found = finder(reader.read())
    assert found("host_cpu_seconds_total") != []
    assert found("network_bytes_total") != []
    assert found("disk_bytes_total") == []
    assert reader.skipped["/proc/diskstats"].reason.startswith("not understood")


def test_a_device_unplugged_between_listing_and_reading_is_survived(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "5\n"})
    listed = Tree.names

    def names(self: Tree, path: str) -> list[str]:
        found = listed(self, path)
        if path.endswith("/counters"):
            (root / "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data").unlink()
        return found

    monkeypatch.setattr(Tree, "names", names)
    reader = HostReader(root)
    assert finder(reader.read())("rdma_port_bytes_total") == []
    assert reader.skipped["/sys/class/infiniband/mlx*_*/ports/*/counters/port_rcv_data"].files == 1


def test_a_root_without_proc_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="/proc/stat: No such file or directory") as caught:
        HostReader(tmp_path).read()
    assert "mount" in caught.value.hint


def test_a_tree_of_another_machine_says_nothing_of_this_one(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/stat": FILES["/proc/stat"]})
    assert {s.name for s in HostReader(tmp_path).read()} == {
        "host_cpu_seconds_total",
        "host_context_switches_total",
        "host_processes",
    }


@LINUX
def test_this_machine_agrees_with_what_the_operating_system_answers() -> None:
    found = finder(HostReader().read())
    before = os.getloadavg()
    cpus = {labels["cpu"] for labels, _ in found("host_cpu_seconds_total")}
    assert len(cpus) == os.cpu_count()
    assert {labels["window"]: n for labels, n in found("host_load")}["15m"] == pytest.approx(before[2], abs=0.5)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    (memory,) = [n for labels, n in found("host_memory_bytes", state="total")]
    assert memory == pytest.approx(total, rel=0.01)
    (info,) = [labels for labels, _ in found("host_info")]
    assert info["kernel"] == os.uname().release


@LINUX
def test_cpu_time_of_this_machine_is_its_time_since_the_start() -> None:
    found = finder(HostReader().read())("host_cpu_seconds_total", cpu="0")
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    assert sum(n for _, n in found) <= uptime_s * 1.05 + 1


@LINUX
def test_counters_of_this_machine_do_not_go_down() -> None:
    reader = HostReader()
    first = {(s.name, *sorted(s.labels.items())): s.value for s in reader.read() if s.name.endswith("_total")}
    time.sleep(0.05)
    second = {(s.name, *sorted(s.labels.items())): s.value for s in reader.read()}
    assert first
    # idle and iowait of a CPU may be taken back by the kernel (proc_stat(5)); nothing else is
    down = [key for key, value in first.items() if second.get(key, value) < value]
    assert [key for key in down if ("mode", "iowait") not in key and ("mode", "idle") not in key] == []


@LINUX
def test_the_processes_of_this_machine_are_gone_through() -> None:
    reader = HostReader()
    reader.read()
    assert not any(skipped.reason.startswith("not understood") for skipped in reader.skipped.values())


def test_what_is_absent_is_told_by_kind_of_file_but_for_processes_that_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "proc/pressure/irq").unlink()
    process(root, 700, ["vllm"], "0-1", [])
    reader = HostReader(root)
    assert reader.absences() == []
    reader._tree._count("/proc/7/stat", "No such process")
    reader._tree._count("/proc/7/fd", "Permission denied")
    reader._tree._count("/proc/8/fd", "Permission denied")
    reader.read()
    found = {absence.what: absence.reason for absence in reader.absences()}
    assert found["/proc/pressure/irq"] == "No such file or directory"
    assert found["/proc/*/fd (2 files)"] == "Permission denied"
    assert not any(what.startswith("/proc/*/stat") for what in found)


def test_resctrl_that_is_there_but_not_mounted_is_told_from_one_that_the_kernel_lacks(root: Path) -> None:
    reader = HostReader(root)
    reader.read()
    assert reader.skipped["/sys/fs/resctrl"].reason == "No such file or directory"
    (root / "sys/fs/resctrl").mkdir(parents=True)
    reader.read()
    assert reader.skipped["/sys/fs/resctrl"].reason == "not mounted"
    write(root, RESCTRL)
    reader.read()
    assert "/sys/fs/resctrl" not in reader.skipped
