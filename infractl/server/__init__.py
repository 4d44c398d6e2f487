"""The one process: what `infractl serve` and `infractl demo` start."""
