"""A self-contained HTML report: a verdict, then sizes, losses, spectra, checks."""

from sheafcoarsen.html_report._report import Positions, report, write_report
from sheafcoarsen.html_report.results import SMOOTHING_STEPS, smooth_cochain, stage, worst_edges

__all__ = [
    "SMOOTHING_STEPS",
    "Positions",
    "report",
    "smooth_cochain",
    "stage",
    "worst_edges",
    "write_report",
]
