"""Who is protected, how strongly, and how the budget is spent."""
