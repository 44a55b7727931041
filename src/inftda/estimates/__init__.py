"""The estimate: a second table beside a release, model-based and labelled so."""
