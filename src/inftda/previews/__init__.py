"""What a release would be like, tried out on something public before anything is spent."""
