"""Whatever text reaches a parser, it answers with values or with an error for a person, never with a crash."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.files.content import Content, Format
from collector.files.devices.dcgm_counters import read_counters
from collector.files.devices.decode import INTAKE, decode_devices, device_kind
from collector.files.devices.nvlink import read_list, read_nvlink
from collector.files.devices.reading import When
from collector.files.devices.smi_csv import read_csv
from collector.files.devices.smi_table import read_table
from collector.files.devices.smi_text import read_text
from collector.files.devices.smi_xml import read_xml
from collector.files.devices.topology import read_topology
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError
from tests.collector.files.devices.test_nvidia_smi import A100, CSV, LOG, TABLE, XML

WHEN = When(at_ms=1_796_000_000_000)
OPTIONS = ImportOptions(at=datetime(2026, 11, 30, tzinfo=UTC), start=datetime(2026, 11, 30, tzinfo=UTC))
SEEDS = (
    XML, CSV, LOG, A100, "# gpu pid type sm command\n# Idx # C/G % name\n 0 1 C 5 a\n",
    "GPU 0: A (UUID: B)\n Link 0: 25 GB/s\n Link 1: <inactive>\n", "$ nvidia-smi topo -m\n" + A100,
    "[12.5] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=a, x\n", "4,1,2,-;Killed process 1 (a)\n",
    "[Feb 25 2025 13:59:45] [ERROR] [tid 1] detected NVSwitch fatal error 1 on NVSwitch pci bus id 0:86:00.0 port 6\n",
    '{"file": "m/ports/1/rate", "value": "4 Gb/sec"}\n',
    '[{"period": {"duration": 1}, "rc6": {}, "engines": {"V/0": {}}}', TABLE,
    '{"card0": {"GPU use (%)": "3", "Temperature (Sensor edge) (C)": "x"}}', "a/ports/1/state:4: ACTIVE\n",
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Any text, or what a tool prints with a piece cut out and another text put there."""
    if draw(st.booleans()):
        return draw(st.text())
    seed = draw(st.sampled_from(SEEDS))
    at = draw(st.integers(0, len(seed)))
    end = draw(st.integers(at, len(seed)))
    return seed[:at] + draw(st.text(max_size=20) | st.sampled_from(SEEDS)) + seed[end:]


@pytest.mark.parametrize("kind", sorted(INTAKE.kinds))
@settings(max_examples=150, deadline=None)
@given(text=texts())
def test_every_kind_answers_any_text(kind: FileKind, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = Content(tmp_path_factory.getbasetemp() / "f", text.encode(errors="replace"), Format.CSV)
    with contextlib.suppress(SourceError, UsageError):
        decode_devices(content, kind, OPTIONS, "import:f")


@pytest.mark.parametrize("parse", [read_xml, read_text, read_csv, read_table, read_topology, read_nvlink])
@settings(max_examples=100, deadline=None)
@given(text=texts())
def test_every_parser_answers_any_text(parse: Callable[[str, When], object], text: str) -> None:
    with contextlib.suppress(SourceError):
        parse(text, WHEN)


@settings(max_examples=100, deadline=None)
@given(texts())
def test_recognition_and_lists_answer_any_text(text: str) -> None:
    assert device_kind(text) in (None, *INTAKE.kinds)
    read_list(text, WHEN)
    with contextlib.suppress(SourceError):
        read_counters(text)


def test_a_document_that_nests_without_end_is_answered() -> None:
    deep = "<nvidia_smi_log><gpu id='x'>" + "<a>" * 50_000 + "</a>" * 50_000 + "</gpu></nvidia_smi_log>"
    assert [s.name for s in read_xml(deep, WHEN).samples] == ["gpu_lost"]
