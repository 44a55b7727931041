"""Pages that open from disk and load nothing: templates, scripts and their data."""
