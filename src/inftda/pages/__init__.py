"""Pages that open from disk and load nothing: templates, scripts and what is put into them."""
