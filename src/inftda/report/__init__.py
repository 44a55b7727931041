"""Pictures and pages made from releases."""
