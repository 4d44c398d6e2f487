"""The fleet as its metrics show it: one row per GPU, engine and host, each with its state where there is one."""
