"""Own files: damaged, or shadowed by another distribution that owns the same top-level names."""

import hashlib
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

_REINSTALL = "install infractl again, in an environment of its own: pipx install infractl"
PACKAGES = ("store", "collector", "analytics", "rules", "dashboards", "infractl", "sample_data")


def check(facts: Facts) -> Iterator[Advice]:
    """Compare every installed file with the hash recorded for it, and every loaded package with its place."""
    del facts
    try:
        found = distribution("infractl")
    except PackageNotFoundError:
        return
    yield from damaged(found)
    yield from shadowed(Path(sys.modules["infractl"].__file__ or "").resolve().parents[1])


def damaged(found: Distribution) -> Iterator[Advice]:
    """Name the files of a distribution that are missing or differ from its RECORD."""
    for file in found.files or ():
        if file.hash is None:
            continue
        fact = _difference(file)
        if fact:
            yield Advice("installation", Severity.CRITICAL, str(file), fact, _REINSTALL)


def shadowed(home: Path) -> Iterator[Advice]:
    """Name the packages that were loaded from elsewhere: PyPI's `rules` and `analytics` own the same names."""
    for name in PACKAGES:
        module = sys.modules.get(name)
        if module is not None and module.__file__ and Path(module.__file__).resolve().parents[1] != home:
            fact = f"package {name} comes from {Path(module.__file__).parent}, not from infractl"
            yield Advice("installation", Severity.CRITICAL, name, fact, _REINSTALL)


def _difference(file: PackagePath) -> str:
    assert file.hash is not None
    try:
        content = Path(str(file.locate())).read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    made = hashlib.new(file.hash.mode, content).digest()
    same = urlsafe_b64encode(made).rstrip(b"=").decode() == file.hash.value
    return "" if same else "differs from what was installed"
