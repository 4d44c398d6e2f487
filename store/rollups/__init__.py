"""Rollups: five-minute and hourly summaries of requests, errors, latency and metrics, exact for late rows."""
