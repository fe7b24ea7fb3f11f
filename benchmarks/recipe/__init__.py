"""What each decision of the standard recipe is worth."""
