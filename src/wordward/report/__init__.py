"""What a run is like, on one page: scores, robustness, words, examples."""

from wordward.report.gathering import ReportSettings, gather
from wordward.report.html import draw, write_report

__all__ = ["ReportSettings", "draw", "gather", "write_report"]
