"""State of a GPU: what is wrong with it, how bad, and what to do. One check per kind of trouble, declared once."""

from dataclasses import dataclass

import polars as pl

from analytics.fleet.ecc import ACTIONS
from analytics.result import Severity

OK, UNKNOWN = "ok", "unknown"
HEADROOM_C = 2.0
"""Distance to the slowdown limit within which a GPU is as good as slowed down: sensors are whole degrees."""
_LINK = "reseat the link (or its bridge or cable) or route around it"
_SILENT = "see why its source says nothing: the targets of infractl status"
_SEVERITIES = (Severity.WARNING, Severity.CRITICAL)


@dataclass(frozen=True, slots=True)
class Check:
    """`when` (null counts as no) makes a device `severity`; `says` is the reason, `action` the next step."""

    severity: Severity
    when: pl.Expr
    says: pl.Expr
    action: pl.Expr


def _check(severity: Severity, when: pl.Expr, says: str | pl.Expr, action: str | pl.Expr) -> Check:
    texts = [pl.lit(one) if isinstance(one, str) else one for one in (says, action)]
    return Check(severity, when.fill_null(value=False), texts[0], texts[1])


def _whole(name: str) -> pl.Expr:
    return pl.col(name).round(0).cast(pl.Int64)


def _xid(severity: Severity) -> Check:
    minutes = (pl.col("xid_age_s") / 60).floor().cast(pl.Int64)
    ago = pl.when(pl.col("xid_exact")).then(pl.format("{} min ago", minutes))
    said = pl.format("Xid {} ({}), {}", "xid", "xid_text", ago.otherwise(pl.format("{} min ago or earlier", minutes)))
    when = pl.col("xid_current") & (pl.col("xid_severity") == str(severity))
    return _check(severity, when, said, pl.col("xid_action"))


def checks() -> tuple[Check, ...]:
    """Return all checks, the most telling first within a severity."""
    bad, worse = _SEVERITIES
    return (
        _check(worse, pl.col("lost"), "GPU does not answer while its host does",
               "drain and reboot the node; if the GPU stays away, reseat or replace it"),
        _xid(worse),
        _check(worse, pl.col("row_remap_failed"), "a memory row could not be remapped", ACTIONS["remap_failure"]),
        _check(worse, pl.col("ecc_uncorrected") > 0, pl.format("{} uncorrected ECC errors", _whole("ecc_uncorrected")),
               ACTIONS["ecc_dbe"]),
        _check(worse, pl.col("health_status") >= 20, "the exporter's health watch reports a failure", "run dcgmi diag"),
        _xid(bad),
        _check(bad, pl.col("row_remap_pending"), "a memory row waits to be remapped", ACTIONS["remap_pending"]),
        _check(bad, pl.col("link_crc_errors") > 0, pl.format("{} CRC errors on links", _whole("link_crc_errors")),
               _LINK),
        _check(bad, (pl.col("links_up") > 0) & (pl.col("links_up") < pl.col("links_total")),
               pl.format("{} of {} links up", "links_up", "links_total"), _LINK),
        _check(bad, pl.col("link_errors") > pl.coalesce("link_crc_errors", 0.0),
               pl.format("{} link replays or recoveries", _whole("link_errors")), _LINK),
        _check(bad, pl.col("throttle_severity") == "alert", pl.format("clocks held down: {}", "throttle"),
               "check cooling, airflow and power supply of the node"),
        _check(bad, pl.col("temperature_headroom_celsius") <= HEADROOM_C,
               pl.format("{} C, at its slowdown limit", _whole("temperature_celsius")), "check cooling and airflow"),
        _check(bad, pl.col("pcie_width") < pl.col("pcie_width_max"),
               pl.format("PCIe x{} of x{}", _whole("pcie_width"), _whole("pcie_width_max")),
               "reseat the card or its riser"),
        _check(bad, pl.col("healthy") == 0, "the exporter's own check fails", "see the exporter's log"),
        _check(bad, pl.col("health_status").is_between(1, 19), "the exporter's health watch warns", "run dcgmi diag"),
    )  # fmt: skip


def judged(devices: pl.DataFrame) -> pl.DataFrame:
    """Add state (ok, warning, critical; unknown without a fresh sample), reason and action (null where ok)."""
    found = checks()
    at = {severity: pl.any_horizontal(c.when for c in found if c.severity is severity) for severity in _SEVERITIES}
    bad, worse = (at[severity] for severity in _SEVERITIES)
    ordered = sorted(found, key=lambda c: -c.severity.rank)
    reasons = pl.concat_str([pl.when(c.when).then(c.says) for c in ordered], separator="; ", ignore_nulls=True)
    silent = ~pl.col("fresh") & ~worse
    graver = pl.when(worse).then(pl.lit("critical")).when(bad).then(pl.lit("warning")).otherwise(pl.lit(OK))
    action = pl.coalesce([pl.when(c.when).then(c.action) for c in ordered])
    ago = pl.format("no sample for {} min", (pl.col("age_s") / 60).floor().cast(pl.Int64))
    return devices.with_columns(
        pl.when(silent).then(pl.lit(UNKNOWN)).otherwise(graver).alias("state"),
        pl.when(silent).then(ago).otherwise(pl.when(reasons != "").then(reasons)).alias("reason"),
        pl.when(silent).then(pl.lit(_SILENT)).otherwise(action).alias("action"),
    )
