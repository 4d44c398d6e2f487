"""Files in: request logs, time-series tables, OTLP and Prometheus text become batches of the store's tables.

`read(path, options)` gives the batches of one file, to be appended together; `load` says also how it was read.
"""

from collector.files.load import Imported, load, read, sniff
from collector.files.options import FileKind, ImportOptions, kind_named, parse_pairs

__all__ = ["FileKind", "ImportOptions", "Imported", "kind_named", "load", "parse_pairs", "read", "sniff"]
