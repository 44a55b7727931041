"""How good a release is: guarantees known beforehand, and confidential comparisons."""
