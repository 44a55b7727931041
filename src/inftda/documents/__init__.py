"""Documents for reviewers of a release, made from published files.

A dossier is a folder: the entry for the public registry of deployments, for the office to
complete, and a summary in plain words.
"""
