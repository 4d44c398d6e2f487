"""All presets, found by metric name. Data files are read at the first look-up, once."""

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from collector.presets.names import key
from collector.presets.preset import Preset, PresetFile, presets_of
from store.errors import ConfigError


def lookup(name: str) -> Preset | None:
    """Return what is known of a metric, by its name on the wire in any spelling; None for an unknown one."""
    return _by_key().get(key(name))


@cache
def load() -> dict[str, PresetFile]:
    """Return the data files by source name. Raises ConfigError for one that cannot be read."""
    found = {}
    for path in sorted(files("collector.presets").iterdir(), key=lambda p: p.name):
        if path.name.endswith(".toml"):
            try:
                raw = tomllib.loads(path.read_text("utf-8"))
                found[path.name.removesuffix(".toml")] = msgspec.convert(raw, PresetFile)
            except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
                raise ConfigError(f"preset {path.name}: {error}", "reinstall infractl") from error
    return found


@cache
def _by_key() -> dict[str, Preset]:
    merged: dict[str, Preset] = {}
    for source, file in load().items():
        merged |= presets_of(source, file)
    return merged
