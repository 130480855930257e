"""What a finished model is, and using it."""
