"""Benchmarks: run from the root of a clone, not installed with the library."""
