"""One file per command: it parses, calls and renders; it computes nothing."""
