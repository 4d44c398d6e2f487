"""`infractl doctor`: what is missing, stale, renamed, mistyped or unmeasurable, each with the line to add.

A check is one module with a function `check(facts)` and one line in `catalog.py`.
"""
