"""From measurements to estimates and intervals: whole arrays, no files, no truth."""
