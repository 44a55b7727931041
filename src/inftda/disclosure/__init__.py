"""What offices do today beside what is promised: accuracy, and what a reader finds out."""
