"""The command line and the one process: configuration, serve, API, renderers."""

__version__ = "0.1.0"
