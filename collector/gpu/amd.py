"""`AmdReader`: the AMD GPUs of this machine as canonical metrics, by running amd-smi or else rocm-smi."""

import shutil
import subprocess
from pathlib import Path
from threading import Lock

from collector.gpu.amdsmi import amd_smi_samples
from collector.gpu.lane import Lane
from collector.gpu.rocm import rocm_samples
from collector.prometheus.exposition import Sample
from store.errors import SourceError

TIMEOUT_S = 8.0
TOOLS = ("amd-smi", "rocm-smi")
_PLACE = "/opt/rocm/bin"
_HINT = "install amd-smi-lib and put it on the PATH, or scrape AMD's device-metrics-exporter"


class AmdReader:
    """Reads all AMD GPUs, by the tool named `command` (None: the first of TOOLS that is found). Safe for threads."""

    def __init__(self, command: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._static: str | None = None
        self._lane: Lane[list[Sample]] = Lane("amd-smi")
        self._lock = Lock()

    def read(self) -> list[Sample]:
        """Return the samples of all GPUs. Raises SourceError where no tool is there, or it fails or is too slow."""
        with self._lock:
            command = self._command or find_tool()
            # a tool that waits for a driver that hangs cannot be killed: the lane is left behind, not this thread
            if self._lane.start(lambda: self._ask(command)):
                try:
                    return self._lane.result(self._timeout_s + 1.0)
                except TimeoutError:
                    pass
            raise SourceError(
                f"{command} has not answered for {self._lane.stuck_s:.0f} s", "see dmesg for amdgpu; reset the GPU"
            )

    def absences(self) -> tuple[()]:
        """Return nothing: the tools do not say what they leave out."""
        return ()

    def close(self) -> None:
        """Nothing is held between reads."""

    def _ask(self, command: str) -> list[Sample]:
        if Path(command).name.startswith("rocm-smi"):
            return rocm_samples(self._run(command, "--showallinfo", "--json"))
        if self._static is None:
            self._static = self._run(command, "static", "--json")
        return amd_smi_samples(self._run(command, "metric", "--json"), self._static)

    def _run(self, *command: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - a fixed command, no shell
                command, capture_output=True, timeout=self._timeout_s, check=False
            )
        except OSError as error:
            raise SourceError(f"{command[0]}: {error.strerror}", _HINT) from error
        except subprocess.TimeoutExpired as error:
            raise SourceError(
                f"{' '.join(command)} took longer than {self._timeout_s:g} s", "run it by hand"
            ) from error
        text = done.stdout.decode(errors="replace")
        if done.returncode and "{" not in text:
            said = (done.stderr.decode(errors="replace").strip() or text.strip()).splitlines()
            raise SourceError(f"{' '.join(command)} failed: {said[-1] if said else done.returncode}", "run it by hand")
        return text


def find_tool() -> str:
    """Return the path of the first tool that is there. Raises SourceError where none is."""
    for tool in TOOLS:
        found = shutil.which(tool) or shutil.which(tool, path=_PLACE)
        if found:
            return found
    raise SourceError(f"none of {', '.join(TOOLS)} is on this machine", _HINT)
