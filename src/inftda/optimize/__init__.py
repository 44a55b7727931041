"""From noisy vectors to non-negative integers with a given sum."""
