"""Detectors of unusual points in many series at once: pure functions of points x series, none of which looks ahead."""
