"""The counters file of dcgm-exporter."""

from pathlib import Path

import pytest

from collector.files.devices.dcgm_counters import Counter, read_counters
from store.errors import SourceError


def test_counters_are_read_with_their_lines(shared: Path) -> None:
    text = (shared / "data" / "dcgm_counters" / "default-counters.csv").read_text()
    found = read_counters(text)
    assert found[0] == Counter("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", 6)
    assert {c.field for c in found} >= {"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_DEC_UTIL"}
    assert not any("NVLINK_TX_BYTES" in c.field for c in found)


def test_every_public_list_is_read(shared: Path) -> None:
    folder = shared / "data" / "dcgm_counters"
    counts = {path.name: len(read_counters(path.read_text())) for path in folder.iterdir()}
    lines = {p.name: sum(bool(x.strip()) and x[0] != "#" for x in p.read_text().split("\n")) for p in folder.iterdir()}
    assert counts == lines


@pytest.mark.parametrize("line", ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK, gage, help", ", gauge, help"])
def test_a_line_that_is_no_counter_is_named(line: str) -> None:
    with pytest.raises(SourceError, match=r"^2: no counter of dcgm-exporter"):
        read_counters(f"# comment\n{line}\n")
