"""The host, read from /proc and /sys: one module per area, each a pure function from file texts to samples."""
