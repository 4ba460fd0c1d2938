"""Searching what was said: the query language, redaction and the full-text index."""
