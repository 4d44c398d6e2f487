"""A real store behind the receiver."""

from tests.collector.otlp.conftest import database, submit

__all__ = ["database", "submit"]
