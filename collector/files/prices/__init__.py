"""Lists of what tokens cost → rows of `prices`: LiteLLM, llm-prices, genai-prices, and a person's own file."""
