"""The tuning grid: fits one after another against the experiment runner."""
