"""Importing a floor loads nothing of the floors above it, nor what only one package may use."""

import subprocess
import sys

import pytest

FLOORS = {
    "store": {"collector", "analytics", "rules", "dashboards", "sample_data", "infractl", "dash", "plotly"},
    "collector": {"analytics", "rules", "dashboards", "sample_data", "infractl", "duckdb", "dash", "plotly"},
    "analytics": {"collector", "rules", "dashboards", "sample_data", "infractl", "duckdb", "dash", "statsmodels"},
    "rules": {"dashboards", "sample_data", "infractl", "duckdb", "dash", "plotly"},
    "dashboards": {"collector", "rules", "sample_data", "infractl", "duckdb"},
    "sample_data": {"rules", "dashboards", "infractl", "duckdb", "dash", "plotly"},
}
LOADER = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print("\\n".join({name.partition(".")[0] for name in sys.modules}))
print("\\n".join(name for name in sys.modules if name.startswith("collector.")))
"""


@pytest.mark.parametrize("package", FLOORS)
def test_a_floor_loads_nothing_from_above(package: str):
    done = subprocess.run([sys.executable, "-c", LOADER, package], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert FLOORS[package] & set(done.stdout.split()) == set()


def test_rules_see_of_the_collector_its_presets_alone():
    done = subprocess.run([sys.executable, "-c", LOADER, "rules"], capture_output=True, text=True, timeout=120)
    seen = {name for name in done.stdout.split() if name.startswith("collector.")}
    assert seen
    assert {name for name in seen if not name.startswith("collector.presets")} == set()
