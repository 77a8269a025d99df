"""Levels that stall, hubs with many leaves, stalks too large: met, or said clearly."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sections import cohomology, reduction, sizes
from tests.support.helpers import (
    assert_residual,
)
from tests.unit.sections.test_cohomology import check_basis


def test_stalling_is_met_by_larger_clusters_and_ends(monkeypatch):
    """A long path keeps nearly everything in clusters of two."""
    monkeypatch.setattr("sheafcoarsen.sections.sizes.VERTICES", 1)
    monkeypatch.setattr("sheafcoarsen.sections.sizes.LAST", 10)
    F = sc.CellularSheaf.constant(nx.path_graph(60))
    S = sc.global_sections(F)
    assert S.h0 == 1
    assert S.levels[-1] <= 10
    assert_residual(abs(S.basis) - 1 / np.sqrt(60), n=60)


def test_a_clear_error_where_coarsening_gets_nowhere(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.sizes.LAST", 1)
    monkeypatch.setattr("sheafcoarsen.sections.sizes.LARGEST_LAST", 1)
    monkeypatch.setattr(
        "sheafcoarsen.sections.clustering.cluster_count", lambda sheaf, growth: sheaf.n_vertices
    )
    with pytest.raises(np.linalg.LinAlgError, match="no further than dimension 60"):
        sc.global_sections(sc.CellularSheaf.constant(nx.path_graph(60)))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_hub_and_its_leaves_are_no_dense_problem(monkeypatch, request, sparse):
    """Clusters of a star cannot share its leaves unless they may fall apart."""
    if sparse:
        request.getfixturevalue("always_sparse")
    for name, value in (("VERTICES", 10), ("DIMENSION", 30), ("LAST", 30)):
        monkeypatch.setattr(sizes, name, value)
    largest, reduced = [], reduction.reduce_level
    monkeypatch.setattr(
        cohomology,
        "reduce_level",
        lambda F, P, *rest: largest.append(_heaviest(F, P)) or reduced(F, P, *rest),
    )
    hubs = nx.disjoint_union(nx.star_graph(150), nx.star_graph(150))
    hubs.add_edge(0, 151)
    for F, h0 in (
        (sc.gallery.bundle(hubs, 2, seed=0), 2),
        (sc.CellularSheaf.random(nx.star_graph(200), 3, 1, seed=0), 403),
        (sc.CellularSheaf.random(nx.star_graph(200), 2, 3, seed=0, dtype=complex), 0),
    ):
        S = sc.global_sections(F)
        assert S.h0 == h0
        assert len(S.levels) > 3
        assert S.residual < 1e-13
        check_basis(F, S)
    assert max(largest) <= 120


def _heaviest(F, P):
    return np.bincount(P.labels, F.vertex_dims).max()


def test_a_clear_error_for_a_stalk_that_is_too_large(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.sizes.LAST", 20)
    monkeypatch.setattr("sheafcoarsen.sections.sizes.LARGEST_LAST", 30)
    with pytest.raises(
        np.linalg.LinAlgError, match="a cluster of dimension 40 would .* it is a single stalk"
    ):
        sc.global_sections(sc.CellularSheaf.random(nx.path_graph(4), [40, 1, 1, 1], 45, seed=0))
