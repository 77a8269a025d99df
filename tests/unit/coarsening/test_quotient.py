"""The quotient graph against that of networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.helpers import ties_allowed
from tests.support.strategies import partitions, sheaves

KARATE = nx.karate_club_graph()
F = sc.CellularSheaf.constant(KARATE)
C = sc.coarsen(F, sc.select(F, 5), rank=1)


@given(sheaves(), st.data())
def test_quotient_weights_match_networkx(F, data):
    P = data.draw(partitions(F.n_vertices))
    weights = np.random.default_rng(3).standard_normal(F.n_edges)
    with ties_allowed():
        coarsening = sc.coarsen(F, P, 1)
    Q = coarsening.quotient(weights)
    assert list(Q.nodes) == list(range(P.n_clusters))
    names = range(F.n_vertices) if F.vertex_labels is None else F.vertex_labels
    for a, node in Q.nodes(data=True):
        assert node["members"] == tuple(names[v] for v in P.cluster(a))
        assert node["size"] == P.sizes[a]
        assert node["dim"] == coarsening.ranks[a]
    ends = np.sort(P.labels[F.edges], axis=1)
    for a in range(P.n_clusters):
        inside = weights[(ends == a).all(axis=1)].sum()
        assert abs(Q.nodes[a]["inside"] - inside) < 1e-13
        for b in range(a + 1, P.n_clusters):
            across = (ends == [a, b]).all(axis=1)
            assert Q.has_edge(a, b) == across.any()
            if across.any():
                assert abs(Q.edges[a, b]["weight"] - weights[across].sum()) < 1e-13
                assert Q.edges[a, b]["count"] == across.sum()
    assert list(Q.edges) == sorted(Q.edges)


def test_edges_have_weight_1_by_default():
    Q = C.quotient()
    assert nx.utils.graphs_equal(Q, C.quotient(np.ones(F.n_edges)))
    names = [set(members) for _, members in Q.nodes(data="members")]
    assert nx.is_isomorphic(Q, nx.quotient_graph(KARATE, names, relabel=True))


def test_sheaf_weights_are_norms_of_products_of_maps():
    weight = [data["weight"] for *_, data in KARATE.edges(data=True)]
    by_maps, given_ones = C.quotient("sheaf"), C.quotient(weight)
    for a, b, w in given_ones.edges(data="weight"):
        assert by_maps.edges[a, b]["weight"] == pytest.approx(w, rel=1e-14)
    plain = C.quotient()
    assert any(w != plain.edges[a, b]["weight"] for a, b, w in given_ones.edges(data="weight"))
