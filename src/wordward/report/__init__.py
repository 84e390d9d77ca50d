"""What a run is like, on one page: scores, robustness, words, examples."""

from wordward.report.checked import card, check_page
from wordward.report.checked_xml import junit
from wordward.report.contents import ReportSettings
from wordward.report.gathering import gather
from wordward.report.html import draw, write_report
from wordward.report.record import record

__all__ = ["ReportSettings", "card", "check_page", "draw", "gather", "junit", "record", "write_report"]
