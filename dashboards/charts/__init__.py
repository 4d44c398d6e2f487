"""Figures of analyses, declared as values: which column is drawn, by which label, in which unit.

A chart is drawn from a `Plate` alone, so the dashboard and the report that is written to a file share them.
"""
