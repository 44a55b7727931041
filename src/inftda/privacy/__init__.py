"""Privacy unit, accounting, plans of noise, and ledgers."""
