"""Tables that were never anybody's: made-up countries and the paper's synthetic data sets."""
