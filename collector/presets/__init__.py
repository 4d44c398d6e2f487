"""Presets: what the metrics of an engine or exporter mean. One data file (TOML) per source; a new source is a new file."""
