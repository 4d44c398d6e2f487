"""The browser client: a script for pages that show streamed answers, sending what the reader saw as OTLP/HTTP JSON."""
