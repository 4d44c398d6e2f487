"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("INFRACTL_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with public captures and cases, kept outside the project for their licences ($INFRACTL_SHARED)."""
    if not SHARED.is_dir():
        pytest.skip(f"no shared captures at {SHARED}; set INFRACTL_SHARED to their folder")
    return SHARED
