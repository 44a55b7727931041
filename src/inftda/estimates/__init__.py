"""The model that estimates all flows from the measurements of a release."""
