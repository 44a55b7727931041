"""What an office hands to those who review a release or list it: made from what is published.

A dossier is a folder: the entry for the public registry of deployments, a summary for a reviewer
in plain words, and metadata for a data catalogue. What follows from the release is filled in;
what only the office knows comes from a file of its own.
"""
