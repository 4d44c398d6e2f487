"""`infractl import` of what GPU tools and the kernel print: from the file to a SELECT."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from infractl.commands.import_ import KINDS, command
from store.database import Database
from store.errors import UsageError

CSV = """timestamp, index, uuid, pci.bus_id, power.draw [W], memory.used [MiB], utilization.gpu [%]
2026/11/30 12:00:00.500, 0, GPU-a, 00000000:9B:00.0, 612.34 W, 70123 MiB, 97 %
2026/11/30 12:00:00.500, 1, GPU-b, 00000000:9C:00.0, [Unknown Error], 0 MiB, [GPU is lost]
"""
DMESG = "[Mon Nov 30 12:00:01 2026] NVRM: Xid (PCI:0000:9b:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
LINKS = "GPU 0: NVIDIA A100 (UUID: GPU-a)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    texts = {"gpus.csv": CSV, "dmesg.log": DMESG, "nvlink.txt": LINKS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in texts]


def run(data: Path, *args: object) -> list[dict[str, object]]:
    given = [*map(str, args), "--data", str(data), "--format", "json"]
    result = CliRunner().invoke(command, given, catch_exceptions=False)
    lines: list[dict[str, object]] = json.loads(result.stdout)
    return lines


def test_values_and_events_are_stored_once_and_can_be_selected(tmp_path: Path, files: list[Path]) -> None:
    options = ("--time", "2026-11-30T12:00:02Z", "--label", "host=node-1")
    lines = run(tmp_path / "data", *files, *options)
    assert [(line["kind"], line["stored"], line["duplicates"]) for line in lines] == [
        ("nvidia_smi", 8, 0), ("kernel_log", 1, 0), ("nvidia_smi", 3, 0),
    ]  # fmt: skip
    again = run(tmp_path / "data", *files, *options)
    assert [(line["stored"], line["duplicates"]) for line in again] == [(0, 8), (0, 1), (0, 3)]
    with Database(tmp_path / "data") as store:
        values = store.sql(
            "SELECT canonical, json_extract_string(labels, '$.gpu') AS gpu,"
            " json_extract_string(labels, '$.host') AS host, unit, ts, value"
            " FROM metric_samples JOIN metric_series USING (series_id)"
            " WHERE canonical IN ('gpu_power_watts', 'gpu_lost', 'gpu_link_up') ORDER BY canonical, gpu, value"
        ).to_pylist()
        events = store.sql("SELECT ts, kind, severity, host, entity, code, source FROM events").to_pylist()
    at, later = datetime(2026, 11, 30, 12, 0, 0, 500_000), datetime(2026, 11, 30, 12, 0, 2)
    assert [tuple(row.values()) for row in values] == [
        ("gpu_link_up", "0", "node-1", None, later, 0.0),
        ("gpu_link_up", "0", "node-1", None, later, 1.0),
        ("gpu_lost", "0", "node-1", None, at, 0.0),
        ("gpu_lost", "1", "node-1", None, at, 1.0),
        ("gpu_power_watts", "0", "node-1", "watts", at, 612.34),
        ("gpu_power_watts", "1", "node-1", "watts", at, None),
    ]
    assert [tuple(row.values()) for row in events] == [
        (datetime(2026, 11, 30, 12, 0, 1), "xid", "critical", "node-1", "0000:9b:00.0", "79", "import:dmesg.log")
    ]


def test_events_are_read_within_a_window(tmp_path: Path, files: list[Path]) -> None:
    run(tmp_path / "data", files[1])
    with Database(tmp_path / "data") as store:
        extent = store.extent("events")
        assert extent is not None
        assert extent.start == datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)
        assert store.table("events", extent)["code"].to_list() == ["79"]


def test_values_without_a_time_are_refused_with_the_option_to_give(tmp_path: Path, files: list[Path]) -> None:
    with pytest.raises(UsageError, match="3 of 3 values state no time"):
        run(tmp_path / "data", files[2])


def test_the_command_offers_every_kind_there_is() -> None:
    from collector.files import FileKind

    assert set(KINDS) == set(FileKind)
