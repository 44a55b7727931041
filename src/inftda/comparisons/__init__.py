"""What offices do today beside a release: accuracy, and what a reader can find out."""
