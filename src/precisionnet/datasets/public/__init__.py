"""Public cohorts: where they are, how they get here, and what they become."""
