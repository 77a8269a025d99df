"""A self-contained HTML report: a verdict, then sizes, losses, spectra, checks.

>>> import pathlib, tempfile
>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> C = sc.coarsen(F, sc.select(F, 4), rank=2)
>>> with tempfile.TemporaryDirectory() as folder:
...     page = pathlib.Path(folder) / "karate.html"
...     passed = sc.report(C, page, name="karate club").passed
...     passed, "<h1>karate club: 34 → 4 vertices</h1>" in page.read_text(encoding="utf-8")
(True, True)

``_report``
    `report` and the page: the notebook representations of objects, with pictures, in one
    template; written atomically.
``results``
    The data of the report: a smooth cochain, low spectra, worst edges, calls; and the verdict.
"""

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
