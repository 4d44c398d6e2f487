"""Statistics that analyses share: numpy in, numpy out, seeded, and tested against a known truth."""
