"""Metrics that senders push: which series they are, and what of them is new to the store."""
