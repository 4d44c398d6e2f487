"""Prometheus remote write in: protocol 1.0 and 2.0, received over HTTP."""
