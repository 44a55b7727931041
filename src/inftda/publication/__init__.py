"""The published table, its manifest and its folder; nothing here ever sees the truth."""
