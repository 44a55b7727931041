"""Placeholder; filled at the end."""
