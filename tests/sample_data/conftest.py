"""One simulation for all tests of this folder."""

import pytest

from sample_data.engine import Engine
from sample_data.simulate import SEED, Simulation, run_engines, simulate


@pytest.fixture(scope="session")
def fresh() -> Simulation:
    """A run of the generator with the shipped seed."""
    return simulate()


@pytest.fixture(scope="session")
def engines() -> dict[str, Engine]:
    """The engines of that run, by service."""
    return {engine.service.name: engine for engine in run_engines(SEED)}
