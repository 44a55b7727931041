"""Tools side by side on one table: the same budget, the same measures, file to file.

Each rival runs in an environment of its own, which the command sets up from pinned versions.
Errors are computed from the true counts, so results on a confidential table are as confidential
as the table.
"""
