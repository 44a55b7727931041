"""ISTAT's commuting matrices of the 2011 census, as downloaded."""
