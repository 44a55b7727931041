"""What has been spent on data sets, on disk: budgets, accounts, charges."""
