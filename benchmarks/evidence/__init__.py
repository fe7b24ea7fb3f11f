"""Simulations of what ``precisionnet.evidence`` claims: coverage, false alarms and power."""
