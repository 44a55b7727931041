"""Secure random bits and exact samplers; knows nothing of mechanisms."""
