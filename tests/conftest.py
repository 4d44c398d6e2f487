"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as infractl.main does, before numpy is imported

SHARED = Path(os.environ.get("INFRACTL_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with public captures and cases, kept outside the project for their licences ($INFRACTL_SHARED)."""
    if not SHARED.is_dir():
        pytest.skip(f"no shared captures at {SHARED}; set INFRACTL_SHARED to their folder")
    return SHARED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files, then read the diff")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
