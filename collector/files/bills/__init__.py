"""Bills, usage reports and recorded calls of LLM providers → rows of `costs` and `spans`."""
