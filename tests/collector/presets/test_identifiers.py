"""One GPU has one name, whoever speaks of it."""

import pytest

from collector.presets.identifiers import normal
from collector.presets.preset import Preset


@pytest.mark.parametrize("spelling", ["00000000:9B:00.0", "0000:9b:00.0", "9B:00.0", "0000:9B:00.0"])
def test_a_pci_address_has_one_spelling(spelling: str):
    assert normal("pci_bus_id", spelling) == "0000:9b:00.0"


def test_a_label_may_be_copied_behind_a_prefix():
    preset = Preset("x", "y", "level", "sum", copy={"gpu_uuid": ("GPU-{uuid}", "serial")})
    assert preset.added_labels({"uuid": "6f"}) == {"gpu_uuid": "GPU-6f"}
    assert preset.added_labels({"serial": "7"}) == {"gpu_uuid": "7"}
    assert preset.added_labels({}) == {}


@pytest.mark.parametrize(
    ("label", "value"),
    [("pci_bus_id", "unknown"), ("host", "00000000:9B:00.0"), ("pci_bus_id", "")],
)
def test_what_is_no_such_name_stays_as_it_is(label: str, value: str):
    assert normal(label, value) == value
