"""The paper reproduced: its baselines, its data sets, its table and its figures.

Uses the product's public parts. Nothing here publishes anything: noise is seeded, and errors are
computed from the true counts.
"""
