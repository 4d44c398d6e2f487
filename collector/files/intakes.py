"""The families of files that are told by their content, in the order they are asked. One module and one line each."""

from collector.files.devices import decode as devices
from collector.files.intake import Intake

INTAKES: tuple[Intake, ...] = (
    devices.INTAKE,
)  # fmt: skip
