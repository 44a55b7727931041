"""Files, tables, numbers, threads and the screen: helpers that know nothing of the domain."""
