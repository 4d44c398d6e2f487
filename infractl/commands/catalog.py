"""The commands, in the order of `infractl --help`. A command is one module with a `command` and one line here."""

from typing import NamedTuple


class Entry(NamedTuple):
    """Module below infractl.commands and the one-line help."""

    module: str
    help: str


COMMANDS = {
    "demo": Entry("demo", "Load the sample data, run every analysis, print the findings, serve the dashboard."),
    "serve": Entry("serve", "Collect, store, analyse, alert and show, in one process."),
    "collect": Entry("collect", "Read metrics into the store: from URLs, GPUs, this host or configured jobs."),
    "import": Entry("import_", "Take files in: traces, metrics, request and access logs, bills, what tools print."),
    "analyze": Entry("analyze", "Run an analysis and print what it found."),
    "status": Entry("status", "Sources, rows, refused rows by reason, store size, lock holder."),
    "doctor": Entry("doctor", "What is missing, stale, renamed, mistyped or unmeasurable; with the line to add."),
    "probe": Entry("probe", "Make synthetic requests: name lookup, TCP, TLS, first token, tokens after it, errors."),
    "sql": Entry("sql", "Run one read-only SELECT."),
    "export": Entry("export", "Write a table to a Parquet or CSV file."),
    "maintain": Entry("maintain", "Seal, roll up, keep in bounds, verify, back up and restore what is stored."),
    "rules": Entry("rules", "Prometheus rules and Alertmanager configuration from the same triggers."),
    "config": Entry("config", "Write, show and check infractl.yaml."),
}
