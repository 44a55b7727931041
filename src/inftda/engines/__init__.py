"""Where a mechanism's level steps are carried out."""
