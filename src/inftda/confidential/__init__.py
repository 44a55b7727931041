"""CONFIDENTIAL: comparisons of releases and other methods with the confidential table."""
