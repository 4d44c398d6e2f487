"""DuckDB gets a share of the least limit, whichever of container, process and machine sets it."""

import os
import resource
from pathlib import Path

import pytest

from store.cgroups import GroupLimits, group_limits
from store.resources import MAPPED_BYTES, Machine, resources
from store.settings import StoreSettings

GIB = 1024**3
V2 = "31 23 0:28 {group} /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw"
V1 = "35 31 0:32 {group} /sys/fs/cgroup/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"


def tree(root: Path, cgroup: str, mounts: list[str], files: dict[str, str]) -> Path:
    """Make a proc and a sys below `root`; `files` are below /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    (root / "proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + "\n".join(mounts) + "\n")
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_max_is_no_limit(tmp_path: Path):
    files = {"a/b/memory.max": "max\n", "a/b/memory.high": "max\n", "a/b/cpu.max": "max 100000\n"}
    root = tree(tmp_path, "0::/a/b\n", [V2.format(group="/")], files)
    assert group_limits(root) == GroupLimits(None, None)


def test_the_least_limit_of_all_groups_above_counts(tmp_path: Path):
    files = {
        "a/memory.max": f"{8 * GIB}\n",
        "a/memory.high": f"{2 * GIB}\n",
        "a/b/memory.max": f"{4 * GIB}\n",
        "a/cpu.max": "150000 100000\n",
        "a/b/cpu.max": "400000 100000\n",
        "other/memory.max": "1\n",
    }
    root = tree(tmp_path, "0::/a/b\n", [V2.format(group="/")], files)
    assert group_limits(root) == GroupLimits(2 * GIB, 1.5)


@pytest.mark.parametrize(
    ("group", "mounted"), [("/", "/"), ("/docker/abc", "/docker/abc"), ("/docker/abc", "/"), ("/../../x", "/")]
)
def test_in_a_container_the_mounted_folder_is_the_group(tmp_path: Path, group: str, mounted: str):
    files = {"memory.max": f"{GIB}\n", "cpu.max": "50000 100000\n"}
    root = tree(tmp_path, f"0::{group}\n", [V2.format(group=mounted)], files)
    assert group_limits(root) == GroupLimits(GIB, 0.5)


def test_version_1_is_read_beside_an_empty_version_2(tmp_path: Path):
    files = {
        "memory/x/y/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/x/memory.limit_in_bytes": f"{3 * GIB}\n",
        "cpu/x/y/cpu.cfs_quota_us": "150000\n",
        "cpu/x/y/cpu.cfs_period_us": "100000\n",
        "cpu/x/cpu.cfs_quota_us": "-1\n",
        "unified/cgroup.procs": "",
    }
    mounts = [
        V1.format(group="/", name="memory"),
        V1.format(group="/", name="cpu"),
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw",
    ]
    root = tree(tmp_path, "4:memory:/x/y\n1:cpu,cpuacct:/x/y\n0::/\n", mounts, files)
    assert group_limits(root) == GroupLimits(3 * GIB, 1.5)


def test_without_control_groups_nothing_is_set(tmp_path: Path):
    assert group_limits(tmp_path) == GroupLimits(None, None)


@pytest.mark.parametrize(
    ("machine", "memory", "basis"),
    [
        (Machine(16 * GIB, 8), 8 * GIB, "50 % of 16.0 GiB of memory"),
        (Machine(256 * GIB, 8, None, GroupLimits(2 * GIB)), GIB, "50 % of the 2.0 GiB limit of the cgroup"),
        (Machine(16 * GIB, 8, None, GroupLimits(2**63 - 4096)), 8 * GIB, "50 % of 16.0 GiB of memory"),
        (
            Machine(16 * GIB, 8, 2 * GIB),
            (2 * GIB - MAPPED_BYTES) // 2,
            "50 % of what the 2.0 GiB limit of the address space leaves (ulimit -v)",
        ),
    ],
)
def test_half_of_the_least_limit_is_duckdbs(tmp_path: Path, machine: Machine, memory: int, basis: str):
    found = resources(StoreSettings(), tmp_path, machine)
    assert (found.memory_limit_bytes, found.memory_basis) == (memory, basis)


def test_a_tiny_container_gets_what_duckdb_needs_at_least_and_is_told(tmp_path: Path):
    found = resources(StoreSettings(), tmp_path, Machine(16 * GIB, 8, None, GroupLimits(GIB // 16)))
    assert found.memory_limit_bytes == 64 * 1024**2
    assert found.memory_basis.startswith("the least that works")
    assert found.threads == 1


@pytest.mark.parametrize(("quota", "threads"), [(None, 8), (1.5, 2), (0.5, 1), (64.0, 8)])
def test_threads_follow_the_quota_and_the_processors(tmp_path: Path, quota: float | None, threads: int):
    machine = Machine(64 * GIB, 8, None, GroupLimits(None, quota))
    assert resources(StoreSettings(), tmp_path, machine).threads == threads


def test_settings_win(tmp_path: Path):
    settings = StoreSettings(memory_limit_bytes=GIB, threads=5, spill_limit_bytes=7)
    found = resources(settings, tmp_path, Machine(16 * GIB, 2))
    assert (found.memory_limit_bytes, found.memory_basis, found.threads, found.spill_limit_bytes) == (
        GIB,
        "store.memory_limit",
        5,
        7,
    )


def test_what_does_not_fit_spills_beside_the_data(tmp_path: Path):
    found = resources(StoreSettings(), tmp_path / "not" / "there")
    assert found.spill_directory == tmp_path / "not" / "there" / "spill"
    assert found.spill_limit_bytes > 0


def test_this_machine_is_seen_as_it_is():
    here = Machine.here()
    assert here.cpus == len(os.sched_getaffinity(0))
    assert here.physical_bytes > GIB // 4
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    assert (here.address_space_bytes is not None) == limited


def test_duckdb_takes_the_settings(tmp_path: Path):
    import duckdb

    settings = StoreSettings(memory_limit_bytes=GIB, threads=2, spill_limit_bytes=2 * GIB)
    with duckdb.connect(":memory:", config=resources(settings, tmp_path).config()) as con:
        query = "SELECT current_setting('memory_limit'), current_setting('threads'), current_setting('temp_directory')"
        assert con.execute(query).fetchone() == ("1.0 GiB", 2, str(tmp_path / "spill"))
