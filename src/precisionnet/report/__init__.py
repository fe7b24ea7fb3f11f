"""Pages about a fit and about an experiment. jinja2 only here."""

from precisionnet.report.fit_page import render
from precisionnet.report.fit_verdict import how_tested, score_lines, verdict

__all__ = ["how_tested", "render", "score_lines", "verdict"]
