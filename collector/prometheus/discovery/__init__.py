"""Service discovery: where the targets of a job come from, and what is known of each source."""
