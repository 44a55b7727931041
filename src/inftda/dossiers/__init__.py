"""What an office hands to those who review a release or list it: made from what is published.

A dossier is a folder: the entry for the public registry of deployments, and a summary for
reviewers in plain words. What follows from the release is filled in; what only the office knows
comes from a file of its own.
"""
