"""Plans with their stated errors, target accuracies, and simulated releases of a public table."""
