"""Warning classes: each can be silenced without the others."""

import warnings

import networkx as nx
import pytest

import sheafcoarsen as sc

CAUSES = {
    sc.TiedModesWarning: lambda: sc.coarsen(
        sc.CellularSheaf.constant(nx.complete_graph(5)), sc.Partition([0] * 5), 2
    ),
    sc.SingularDegreeWarning: lambda: sc.normalize(
        sc.CellularSheaf.constant(nx.empty_graph(2), dim=1)
    ),
    sc.SingularProblemWarning: lambda: sc.harmonic_extension(
        sc.CellularSheaf.constant(nx.empty_graph(2)), [0], [[1.0]]
    ),
    sc.SmallComponentsWarning: lambda: sc.select(
        nx.disjoint_union(nx.path_graph(100), nx.empty_graph(20)), 21
    ),
}


@pytest.mark.parametrize("category", CAUSES)
def test_warning_classes_are_distinct_and_can_be_silenced_separately(category):
    assert issubclass(category, UserWarning)
    for other, cause in CAUSES.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", category)
            cause()
        assert [w.category for w in caught] == [other] * (other is not category)
        assert all(w.filename == __file__ for w in caught)
