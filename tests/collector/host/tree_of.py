"""A tree of a host, written file by file in the kernel's formats: two sockets, a memory-only node, an H100, a NIC."""

from pathlib import Path

FILES = {
    "/proc/stat": """\
cpu  300 10 60 5000 20 3 7 0 0 0
cpu0 100 10 20 2500 20 3 7 0 50 0
cpu1 200 0 40 2500 0 0 0 0 0 0
intr 12345 0 0
ctxt 987654
btime 1796000000
processes 4242
procs_running 3
procs_blocked 1
""",
    "/proc/loadavg": "0.50 1.25 2.00 3/812 40404\n",
    "/proc/sys/kernel/osrelease": "6.8.0-test\n",
    "/proc/cpuinfo": """\
processor\t: 0
model name\t: Example CPU @ 2.0GHz
physical id\t: 0

processor\t: 1
model name\t: Example CPU @ 2.0GHz
physical id\t: 1
""",
    "/proc/meminfo": """\
MemTotal:       16000000 kB
MemFree:         1000000 kB
MemAvailable:    9000000 kB
Cached:          5000000 kB
HugePages_Total:      16
HugePages_Free:       10
Hugepagesize:       2048 kB
""",
    "/proc/pressure/cpu": """\
some avg10=12.50 avg60=3.00 avg300=0.75 total=1500000
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
""",
    "/proc/pressure/irq": "full avg10=0.10 avg60=0.00 avg300=0.00 total=250000\n",
    "/proc/interrupts": """\
           CPU0       CPU1
  8:          0          0  IR-IO-APIC    8-edge      rtc0
 16:         40          2  IR-IO-APIC   16-fasteoi   ehci_hcd:usb1, i801_smbus
120:      70000          0  IR-PCI-MSIX-0000:3b:00.0    3-edge      mlx5_comp3@pci:0000:3b:00.0
121:          5         95  IR-PCI-MSI-0000:9b:00.0    0-edge      nvidia
122:          0          9  IR-PCI-MSI-0000:00:11.0    0-edge
NMI:          1          2   Non-maskable interrupts
LOC:       1000       2000   Local timer interrupts
ERR:          7
""",
    "/proc/softirqs": """\
                    CPU0       CPU1
          HI:          1          0
      NET_RX:      20403         84
""",
    "/proc/irq/121/smp_affinity_list": "0-1\n",
    "/proc/irq/121/effective_affinity_list": "1\n",
    "/proc/irq/121/node": "1\n",
    "/proc/irq/16/smp_affinity_list": "0\n",
    "/proc/irq/16/node": "-1\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2100000\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3400000\n",
    "/sys/devices/system/node/node0/cpulist": "0\n",
    "/sys/devices/system/node/node1/cpulist": "1\n",
    "/sys/devices/system/node/node2/cpulist": "\n",
    "/sys/devices/system/node/node0/distance": "10 21 30\n",
    "/sys/devices/system/node/node1/distance": "21 10 24\n",
    "/sys/devices/system/node/node2/distance": "30 24 10\n",
    "/sys/devices/system/node/node2/meminfo": """\
Node 2 MemTotal:       8000000 kB
Node 2 MemFree:        7000000 kB
Node 2 MemUsed:        1000000 kB
Node 2 FilePages:       200000 kB
""",
    "/sys/devices/system/node/node1/numastat": """\
numa_hit 1000
numa_miss 30
numa_foreign 4
interleave_hit 2
local_node 990
other_node 40
""",
    "/proc/diskstats": """\
   7       0 loop0 5 0 10 1 0 0 0 0 0 1 1 0 0 0 0 0 0
 259       0 nvme0n1 1000 2 40000 300 500 8 16000 90 0 1234 390 0 0 0 0 4 2
 259       1 nvme0n1p1 900 0 30000 200 400 0 12000 80 0 1000 280 0 0 0 0 0 0
""",
    "/sys/block/nvme0n1/size": "1000\n",
    "/proc/net/dev": """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
  eth0: 5000 40 1 2 0 0 0 0 7000 50 3 4 0 0 0 0
veth1a:  100  1 0 0 0 0 0 0  100  1 0 0 0 0 0 0
""",
    "/sys/bus/pci/devices/0000:9b:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:9b:00.0/class": "0x030200\n",
    "/sys/bus/pci/devices/0000:9b:00.0/numa_node": "1\n",
    "/sys/bus/pci/devices/0000:3b:00.0/vendor": "0x15b3\n",
    "/sys/bus/pci/devices/0000:3b:00.0/class": "0x020700\n",
    "/sys/bus/pci/devices/0000:c1:00.0/vendor": "0x1002\n",
    "/sys/bus/pci/devices/0000:c1:00.0/class": "0x120000\n",
    "/sys/bus/pci/devices/0000:c1:00.0/numa_node": "-1\n",
    "/proc/driver/nvidia/gpus/0000:9b:00.0/information": "Model: \t\t Example\nDevice Minor: \t 0\n",
}

RESCTRL = {
    "/sys/fs/resctrl/tasks": "1\n",
    "/sys/fs/resctrl/info/L3_MON/num_rmids": "64\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy": "30000000\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": "5000\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes": "3000\n",
    "/sys/fs/resctrl/mon_data/mon_L3_01/llc_occupancy": "Unavailable\n",
    "/sys/fs/resctrl/mon_groups/engine/mon_data/mon_L3_00/llc_occupancy": "20000000\n",
    "/sys/fs/resctrl/batch/mon_data/mon_L3_01/mbm_total_bytes": "77\n",
    "/sys/fs/resctrl/batch/mon_groups/one/mon_data/mon_L3_01/mbm_total_bytes": "70\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root."""
    for path, text in files.items():
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    return root


def process(root: Path, pid: int, arguments: list[str], cpus: str, opened: list[str], started: int = 5) -> None:
    """Write a process and its open files."""
    after = " ".join(["S", *["0"] * 18, str(started), "0"])
    write(
        root,
        {
            f"/proc/{pid}/stat": f"{pid} (a (b) c) {after}\n",
            f"/proc/{pid}/cmdline": "\0".join([*arguments, ""]) if arguments else "",
            f"/proc/{pid}/status": f"Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t{cpus}\n",
        },
    )
    folder = root / f"proc/{pid}/fd"
    folder.mkdir()
    for number, target in enumerate(opened):
        (folder / str(number)).symlink_to(target)
