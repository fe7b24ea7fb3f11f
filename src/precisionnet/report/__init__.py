"""The page about a fit. jinja2 only here."""

from precisionnet.report.fit_page import render, verdict

__all__ = ["render", "verdict"]
