"""What synchronization returns."""

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import cost_by_hand, pose_graph, ring_with_chords


def test_edges_tell_their_disagreement(dim):
    G, _ = pose_graph(dim, ring_with_chords(15, 10), noise=0.2)
    S = sc.synchronize(G)
    i, j = G.edges.T
    off = S.translations[j] - S.translations[i]
    off -= np.einsum("eij,ej->ei", S.rotations[i], G.translations)
    np.testing.assert_allclose(S.distances, np.linalg.norm(off, axis=1), rtol=1e-9)
    turns = (S.rotations[i] @ G.rotations).swapaxes(1, 2) @ S.rotations[j]
    cosines = (np.trace(turns, axis1=1, axis2=2) - (dim - 2)) / 2
    assert_residual(np.cos(S.angles) - cosines, S.rotations[0], n=G.n_edges)
    assert S.cost == pytest.approx(cost_by_hand(G, S.rotations, S.translations))
    assert S.edge_costs.sum() == pytest.approx(S.cost)


def test_the_result_is_read_only_and_says_what_it_is():
    G, _ = pose_graph(2, [[0, 1], [2, 3]], vertex_labels="abcd")
    S = sc.synchronize(G)
    assert S.vertex_labels == tuple("abcd")
    assert (S.n_vertices, S.n_edges) == (4, 2)
    assert "2 components, a frame for each" in repr(S)
    assert "2 components, a frame for each" in S._repr_html_()
    for name in ("rotations", "translations", "angles", "distances", "edge_costs", "component"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(S, name)[0] = 0


def test_a_sheaf_has_no_translations(dim):
    G, _ = pose_graph(dim, ring_with_chords(15, 10), noise=0.2)
    S = sc.synchronize(G.sheaf)
    assert S.translations is None
    assert S.distances is None
    frames = S.rotations.swapaxes(1, 2).reshape(-1, dim)
    assert S.cost == pytest.approx(sc.energy(G.sheaf, frames).sum())
