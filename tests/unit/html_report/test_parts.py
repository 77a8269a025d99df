"""The parts of the page are text, escaped; the page's own tests read them together."""

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.origin import Origin, call_of, parameters_of
from sheafcoarsen.html_report.page import UNKNOWN
from sheafcoarsen.html_report.parts import _cluster_rows, eigenvalues, losses, made_by, times

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

F = sc.CellularSheaf.constant(nx.path_graph(6))
C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2)


def test_what_a_caller_says_is_escaped():
    origin = Origin("<name>", {"a & b": "<c>"}, "type <this>")
    page = "".join(made_by(origin, {}, "", ""))
    for text in ("&lt;name&gt;", "a &amp; b", "&lt;c&gt;", "type &lt;this&gt;"):
        assert text in page
    assert "<c>" not in page


def test_without_a_caller_the_coarsening_speaks_for_itself():
    page = "".join(made_by(Origin(), parameters_of(C), call_of(C), UNKNOWN))
    assert "sc.coarsen(F, P, rank=2, local_operator=&quot;internal&quot;" in page
    assert "does not hold where its sheaf F" in page


def test_reasons_stand_where_there_are_no_numbers():
    assert "because" in "".join(losses(C, "because", {}))
    assert "too large" in "".join(eigenvalues("too large", {}))
    assert "does not hold how long" in "".join(times({}, {"pictures": 1.0}, "A page"))
    assert "does not hold how long" not in "".join(times({"read": 2.0}, {}, "A page"))


def test_discarded_sections_have_the_eigenvalue_zero():
    """Not what rounding leaves of it, such as 8e-16."""
    G = sc.CellularSheaf.constant(nx.grid_2d_graph(12, 12), weight=None)
    E = sc.coarsen(G, sc.select(G, 4), 0)
    assert (E.modes.next_eigenvalues != 0).any()
    assert {row[5] for row in _cluster_rows(E)} == {"0"}
    assert ("first discarded eigenvalues", "0") in E.modes._rows()
