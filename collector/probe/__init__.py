"""Synthetic requests: how long names, connections, TLS, first tokens and the tokens after them take, from here."""
