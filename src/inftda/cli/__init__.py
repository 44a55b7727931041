"""Arguments to calls to exit codes."""
