"""Presets: what the metrics of an engine or exporter mean. One data file (TOML) per source is all a new one takes."""
