"""The browser client: where its one file is, to be copied beside a page or served with it."""

from importlib.resources import files

NAME = "infractl-stream.js"
MEDIA_TYPE = "text/javascript"


def script() -> bytes:
    """Return the script, UTF-8: it is both a classic script and a module, and defines the global `infractl`."""
    return files("collector.browser").joinpath(NAME).read_bytes()
