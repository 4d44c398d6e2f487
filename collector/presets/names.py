"""Spellings of one metric name: `vllm:x`, `vllm_x` and `ray_vllm_x`, with or without `_total`, are one."""

import re

_OUTSIDE = re.compile(r"[^a-zA-Z0-9_]")


def fold(name: str) -> str:
    """Replace every character outside [a-zA-Z0-9_] by `_`, as Prometheus' `escaping=underscores` does."""
    return _OUTSIDE.sub("_", name)


def key(name: str) -> str:
    """Return what all spellings of a name share: folded, without Ray's prefix and the counter suffix."""
    return fold(name).removeprefix("ray_").removesuffix("_total")
