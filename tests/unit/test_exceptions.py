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
def test_warning_classes_are_distinct_user_warnings(category):
    assert issubclass(category, UserWarning)
    with pytest.warns(category) as caught:
        CAUSES[category]()
    assert [warning.category for warning in caught] == [category]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("category", CAUSES)
def test_warning_classes_can_be_silenced_separately(category):
    for other, cause in CAUSES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category)
            if other is category:
                cause()
            else:
                with pytest.raises(other):  # warnings are errors here
                    cause()
