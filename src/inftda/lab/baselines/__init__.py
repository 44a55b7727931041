"""The mechanisms that the paper compares with, and what they are made of."""
