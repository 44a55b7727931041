"""What is done to the counts; where it runs is the business of engines."""
