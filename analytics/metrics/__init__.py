"""What stored metrics mean over time: counters, histograms and gauges as pure functions over rows of a MetricQuery."""
