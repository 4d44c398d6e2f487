"""What load tests leave behind → rows of `benchmarks`, and of `spans` where they state single requests."""
