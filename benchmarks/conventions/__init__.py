"""What each convention that the paper leaves open is worth."""
