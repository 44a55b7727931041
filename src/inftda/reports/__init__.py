"""Pages made from releases, and confidential ones with the truth beside."""
