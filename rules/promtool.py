"""promtool and amtool as judges: Prometheus' and Alertmanager's own checks, where they are installed."""

import shutil
import subprocess
from pathlib import Path

from store.errors import ConfigError, UsageError

PACKAGES = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}
"""Tool → Debian and Ubuntu package that brings it."""

TIMEOUT_S = 120.0


def check_rules(path: Path) -> str:
    """Have promtool read a rule file; return what it says. Raises ConfigError where it refuses the file."""
    return _run("promtool", "check", "rules", path=path)


def test_rules(path: Path) -> str:
    """Have promtool run a unit test file; return what it says. Raises ConfigError for a test that fails."""
    return _run("promtool", "test", "rules", path=path)


def check_alertmanager(path: Path) -> str:
    """Have amtool read an Alertmanager configuration; return what it says. Raises ConfigError where it refuses."""
    return _run("amtool", "check-config", path=path)


def is_installed(tool: str) -> bool:
    """Whether `promtool` or `amtool` is on the path."""
    return shutil.which(tool) is not None


def _run(tool: str, *words: str, path: Path) -> str:
    program = shutil.which(tool)
    if program is None:
        raise UsageError(f"{tool} is not installed", f"apt install {PACKAGES[tool]}, or put {tool} on the PATH")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and words of ours; the path is no option
            [program, *words, str(path.resolve())], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{tool} did not finish with {path} in {TIMEOUT_S:.0f} s") from None
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise ConfigError(f"{tool} {' '.join(words)} refuses {path}", said)
    return said
