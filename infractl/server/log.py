"""The log of `infractl serve`: warnings and worse on stderr, whoever writes them, without secrets in their URLs."""

import logging

from collector.prometheus.masking import shown


class SafeFormatter(logging.Formatter):
    """Masks every line, tracebacks too: libraries write the address they could not reach, token and all."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        return shown(super().format(record))


def log_to_stderr() -> None:
    """Start logging, unless the program around has done so."""
    handler = logging.StreamHandler()
    handler.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
