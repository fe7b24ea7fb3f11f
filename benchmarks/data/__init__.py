"""What reading large tables costs."""
