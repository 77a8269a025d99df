"""Pictures are SVG in the page, one for each finding that there is."""

import base64

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.findings import findings_of
from sheafcoarsen.html_report.pictures import pictures_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_pictures_of_what_was_found():
    F = sc.CellularSheaf.constant(nx.path_graph(6))
    C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2)
    found = findings_of(C, {})
    assert list(pictures_of(C, found)) == ["partition", "spectra", "ledger", "quality"]
    without = found._replace(ledgers="none", quality="none")
    for uri in pictures_of(C, without).values():
        begin, _, data = uri.partition(",")
        assert begin == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(data)
    assert list(pictures_of(C, without)) == ["partition", "spectra"]
