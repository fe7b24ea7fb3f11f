"""Cortical atlases, and one name for one region."""
