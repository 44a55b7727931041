"""The laboratory: what the product is compared with, and on what. The product never imports it.

Baselines and commands are found through the entry points of this package, as those of any other.
"""
