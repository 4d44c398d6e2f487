"""Analyses: pure functions from frames to a Result, and the types they speak."""
