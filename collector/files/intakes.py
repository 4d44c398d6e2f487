"""The families of files that are told by their content, in the order they are asked. One module and one line each."""

from collector.files.access import decode as access
from collector.files.benchmarks import decode as benchmarks
from collector.files.bills import decode as bills
from collector.files.blocks import decode as blocks
from collector.files.devices import decode as devices
from collector.files.intake import Intake
from collector.files.prices import decode as prices
from collector.files.traces import decode as traces

INTAKES: tuple[Intake, ...] = (
    devices.INTAKE,
    prices.INTAKE,
    access.INTAKE,
    benchmarks.INTAKE,
    traces.INTAKE,
    blocks.INTAKE,
    bills.INTAKE,
)  # fmt: skip
