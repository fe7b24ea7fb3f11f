"""The page about a fit. jinja2 only here."""

from precisionnet.report.build import render, verdict

__all__ = ["render", "verdict"]
