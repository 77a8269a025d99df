"""One self-contained page about a coarsening: a verdict first, then sizes, losses, spectra, checks.

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

``page``
    `report`, and the page: what objects show of themselves in notebooks, with pictures, in one
    template; written at once or not at all.
``findings``
    What is computed for it: ledgers of two cochains, low spectra, checks.
``summary``
    The verdict: one sentence of these findings.
"""

from sheafcoarsen.html_report.findings import SMOOTHING_STEPS, smooth_cochain, stage
from sheafcoarsen.html_report.page import Origin, report, write_report

__all__ = [
    "SMOOTHING_STEPS",
    "Origin",
    "report",
    "smooth_cochain",
    "stage",
    "write_report",
]
