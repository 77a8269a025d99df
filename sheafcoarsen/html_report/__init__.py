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
    `report`, and the whole page, written at once or not at all.
``findings``
    What is computed for it: ledgers, low spectra, checks; ``smoothing`` makes its cochains.
``eliminations``
    The page about an elimination.
``summary``
    The verdict: one sentence of these findings.
``origin``
    What went in: name, date, version, parameters, and what to type for the same again.
``parts``, ``pictures``, ``style``
    The parts of the page; pictures, which dark pages turn over; rules for wide, narrow and dark.
"""

from sheafcoarsen.html_report.findings import stage
from sheafcoarsen.html_report.origin import Origin
from sheafcoarsen.html_report.page import report, write_report
from sheafcoarsen.html_report.smoothing import SMOOTHING_STEPS, smooth_cochain

__all__ = [
    "SMOOTHING_STEPS",
    "Origin",
    "report",
    "smooth_cochain",
    "stage",
    "write_report",
]
