"""Whole conversations in forms that outlive the bridge: Markdown, one HTML page, JSON, JSON lines."""
