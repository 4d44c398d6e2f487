"""Prometheus metrics in: exposition text, series, targets, scraping."""
