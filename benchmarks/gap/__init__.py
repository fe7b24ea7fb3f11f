"""What ``precisionnet.gap`` claims: planted shifts are found, and corrected gaps do not go with age."""
