"""KV-cache events that vLLM and SGLang publish over ZMQ: which blocks were stored, removed, cleared."""
