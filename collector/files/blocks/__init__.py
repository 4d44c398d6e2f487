"""Files about KV-cache blocks: traces of requests with the blocks of their prompts, recorded events of an engine."""
