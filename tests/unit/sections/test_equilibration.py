"""Sections of sheaves with maps and edges of very different size."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sections.equilibration import check_status, equilibrate
from tests.support.helpers import assert_residual, same_subspace
from tests.support.strategies import DTYPES
from tests.unit.sections.test_global_sections import check_basis, neighbours


def scaled_edges(F, factors):
    tail = F.tail_data * np.repeat(factors, np.diff(F.tail_offsets))
    return F.with_maps(tail, F.head_data * np.repeat(factors, np.diff(F.head_offsets)))


def test_sections_of_edges_scaled_over_six_decades():
    rng = np.random.default_rng(0)
    F = sc.gallery.bundle(neighbours(600), 3, seed=1)
    G = scaled_edges(F, 10.0 ** (-6 * rng.random(F.n_edges)))
    S, T = sc.global_sections(F), sc.global_sections(G)
    assert S.h0 == T.h0 == 3
    assert len(T.levels) == 2
    assert same_subspace(check_basis(G, T), S.basis, condition=1e3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("triangle", [False, True])
def test_rounding_errors_of_loops_alone_at_a_vertex_do_not_count_as_rank(triangle, dtype):
    """They form a matrix of full rank, which is often well-conditioned."""
    edges = [[0, 0], [0, 0], *([[1, 2], [2, 3], [3, 1]] if triangle else [])]
    rng = np.random.default_rng(0)
    for n in rng.integers(1, 4, 10).tolist():
        tail = rng.standard_normal((len(edges), n, n)).astype(dtype)
        head, up = tail.copy(), rng.random(tail.shape) < 0.5
        head[up] = np.nextafter(tail.real, np.inf)[up]
        F = sc.CellularSheaf(edges, tail, head)
        assert sc.global_sections(F).h0 == n * (1 + triangle)


@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8])
def test_sections_do_not_depend_on_the_condition_number_of_vertex_bases(condition):
    """h0 stays 3 for ill-conditioned bases of vertex stalks and rotated edge stalks."""
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


def test_a_failure_of_lapack_raises_with_the_cluster():
    check_status([-1, -1], "cluster")
    check_status([], "cluster")
    with pytest.raises(np.linalg.LinAlgError, match="LAPACK failed on cluster 3"):
        check_status([-1, 3, 5], "cluster")


def test_weights_are_1_if_maps_are_isometries():
    """Weights are the sensitivity of equilibrated coordinates to errors of the maps."""
    _, stalks = equilibrate(sc.gallery.bundle(neighbours(50), 3, seed=1), 2.0**-52)
    y = np.random.default_rng(0).standard_normal(150)
    x = stalks.columns(stalks.bases.W) @ y
    assert_residual(stalks.weights @ x**2 - y @ y, y, y, n=150)
