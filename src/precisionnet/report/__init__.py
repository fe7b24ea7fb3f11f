"""Pages about a fit and about an experiment. jinja2 only here."""

from precisionnet.report.fit_page import render, verdict

__all__ = ["render", "verdict"]
