"""Every method of a comparison by name, with its tuning space, and how one is tuned on validation rows."""
