"""The fleet asks for canonical metrics only: a name with a typing error would be silently empty."""

import tomllib
from importlib.resources import files

import pytest

from analytics.fleet.devices import DEVICE_METRICS
from analytics.fleet.engines import ENGINE_METRICS
from analytics.fleet.hosts import HOST_METRICS


@pytest.mark.parametrize("asked", [DEVICE_METRICS, ENGINE_METRICS, HOST_METRICS], ids=["devices", "engines", "hosts"])
def test_every_name_asked_for_is_canonical(asked: tuple[str, ...]) -> None:
    entries = tomllib.loads((files("collector.presets") / "canonical.toml").read_text("utf-8"))
    known = set(entries)
    for name, entry in entries.items():
        known |= {name + part for part in ("_bucket", "_sum", "_count")} if entry.get("histogram") else set()
    assert set(asked) - known == set()
    assert len(set(asked)) == len(asked)
