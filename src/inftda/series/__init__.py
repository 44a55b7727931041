"""Several releases of one table: series, and changes between two editions."""
