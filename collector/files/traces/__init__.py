"""Traces as other tools export them: Jaeger's JSON, Langfuse's export, spans printed by an SDK."""
