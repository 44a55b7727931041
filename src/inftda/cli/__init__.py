"""The command line: from arguments to function calls and exit codes."""
