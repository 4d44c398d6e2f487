"""Prometheus text with time stamps → series and samples."""

from collector.files.content import Content
from collector.files.options import ImportOptions
from store.batch import Batch


def decode_prometheus(content: Content, options: ImportOptions, source: str) -> Batch:
    raise NotImplementedError
