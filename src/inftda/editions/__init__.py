"""Releases of one table again and again: what changed, and series of editions."""
