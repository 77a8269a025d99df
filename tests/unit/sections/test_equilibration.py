"""Maps and edges of very different size have the sections that they have."""

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import (
    same_subspace,
)
from tests.unit.sections.test_global_sections import check_basis, neighbours


def scaled_edges(F, factors):
    tail = F.tail_data * np.repeat(factors, np.diff(F.tail_offsets))
    return F.with_maps(tail, F.head_data * np.repeat(factors, np.diff(F.head_offsets)))


def test_edges_over_six_decades():
    rng = np.random.default_rng(0)
    F = sc.gallery.bundle(neighbours(600), 3, seed=1)
    G = scaled_edges(F, 10.0 ** (-6 * rng.random(F.n_edges)))
    S, T = sc.global_sections(F), sc.global_sections(G)
    assert S.h0 == T.h0 == 3
    assert len(T.levels) == 2
    assert same_subspace(check_basis(G, T), S.basis, condition=1e3)


@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8])
def test_vertex_maps_of_any_condition(condition):
    """Bases of that condition at the vertices, random rotations of the edges' stalks.

    h0 stays 3.
    """
    rng = np.random.default_rng(1)
    edges, n = neighbours(400), 400

    def rotations(count):
        return np.linalg.qr(rng.standard_normal((count, 3, 3)))[0]

    gauge = rotations(n) * np.array([1, condition**-0.5, 1 / condition]) @ rotations(n)
    turns = rotations(len(edges))
    F = sc.CellularSheaf(edges, turns @ gauge[edges[:, 0]], turns @ gauge[edges[:, 1]])
    S = sc.global_sections(F)
    assert S.h0 == 3
    assert S.smallest_nonzero > 1e-2
    assert S.residual < 1e-13
    check_basis(F, S)
