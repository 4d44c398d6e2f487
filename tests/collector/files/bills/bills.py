"""Helpers of these tests: import text as a file and take its frames."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from collector.files.load import Imported, load
from collector.files.options import ImportOptions

FOCUS = {
    "BillingAccountId": "acct", "BillingCurrency": "USD", "BillingPeriodStart": "2026-11-01T00:00:00Z",
    "ChargePeriodStart": "2026-11-16T00:00:00Z", "ChargePeriodEnd": "2026-11-16T01:00:00Z", "ChargeCategory": "Usage",
    "ChargeClass": "", "ServiceName": "LLM API", "ResourceId": "res-1", "BilledCost": "1.5", "EffectiveCost": "1.5",
    "Tags": "",
}  # fmt: skip


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """CSV text of rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def focus(*changes: Mapping[str, str]) -> str:
    """FOCUS export with a line for each set of changes."""
    return table([{**FOCUS, **change} for change in changes])


def imported(folder: Path, text: str, options: ImportOptions | None = None, name: str = "bill.csv") -> Imported:
    """Import text as a file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load(path, options or ImportOptions())


def costs(found: Imported) -> pl.DataFrame:
    """Rows of `costs` of an import."""
    return found.batches[0].frames["costs"]


def spans(found: Imported) -> pl.DataFrame:
    """Rows of `spans` of an import."""
    return found.batches[0].frames["spans"]
