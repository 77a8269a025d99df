"""Bundles and cycles have the documented sections and spectra."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import gallery
from sheafcoarsen.sheaf import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual, dense_rank
from tests.support.strategies import multigraphs
from tests.unit.synchronization.conftest import plane


def h0(F) -> int:
    return F.dim_c0 - dense_rank(reference.coboundary(F))


def transports(F):
    """Return U_e for a connection of weight 1."""
    d = int(F.vertex_dims[0])
    assert (F.tail_data.reshape(-1, d, d) == np.eye(d)).all()
    return F.head_data.reshape(-1, d, d)


@given(multigraphs(), st.integers(1, 4), st.integers(0, 2**32))
def test_a_bundle_without_noise_has_the_spectrum_of_the_constant_sheaf(graph, dim, seed):
    F = gallery.bundle(graph, dim, seed=seed)
    constant = CellularSheaf.constant(graph, dim)
    assert F.vertex_labels == constant.vertex_labels == tuple(graph.nodes)
    np.testing.assert_array_equal(F.edges, constant.edges)
    L, L0 = reference.laplacian(F), reference.laplacian(constant)
    difference = np.linalg.eigvalsh(L) - np.linalg.eigvalsh(L0)
    if len(difference):
        delta = reference.coboundary(constant)  # loops cancel here, but in F only up to rounding
        scale = np.linalg.norm(delta) ** 2 + np.linalg.norm(constant.tail_data) ** 2
        assert_residual(difference, scale, n=len(L))


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e6])
def test_noise_keeps_transports_orthogonal_and_destroys_sections(dim, noise):
    F = gallery.bundle(nx.complete_graph(6), dim, noise, seed=23)
    U = transports(F)
    for e in range(F.n_edges):
        assert_residual(U[e].T @ U[e] - np.eye(dim), U[e], U[e], n=dim)
    # O(1) has no small rotations; a generic cocycle has no common fixed vector
    assert h0(F) == (1 if dim == 1 else 0)


def test_noise_is_the_standard_deviation_of_the_angle():
    graph = nx.complete_graph(80)
    plain = transports(gallery.bundle(graph, 2, seed=5021))
    noisy = transports(gallery.bundle(graph, 2, noise=0.01, seed=5021))
    turn = plain.swapaxes(1, 2) @ noisy  # U_e^T U_e exp(noise K)
    angles = np.arctan2(turn[:, 1, 0], turn[:, 0, 0])
    m = len(angles)
    assert m == 3160
    assert abs(angles.std() / 0.01 - 1) < 6 / np.sqrt(2 * m)
    assert abs(angles.mean()) < 6 * 0.01 / np.sqrt(m)


def test_equal_seeds_give_equal_bundles():
    graph = nx.path_graph(4)
    one, same, other = (gallery.bundle(graph, 2, 0.1, seed=s).head_data for s in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(one, gallery.bundle(graph, 2, 0.1, seed=generator).head_data)


def test_random_bases_have_both_orientations():
    U = transports(gallery.bundle(nx.complete_graph(30), 3, seed=41))
    signs = np.sign(np.linalg.det(U))
    assert {-1.0, 1.0} == set(signs)


@pytest.mark.parametrize(
    "graph",
    [
        np.array([[0, 1], [1, 2], [2, 0]]),
        scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3)),
        nx.cycle_graph(3),
        np.zeros((0, 2), dtype=int),
        nx.empty_graph(3),
    ],
    ids=["edges", "adjacency", "networkx", "empty", "no-edges"],
)
@pytest.mark.parametrize("dim", [0, 2])
def test_bundle_accepts_every_kind_of_graph(graph, dim):
    F = gallery.bundle(graph, dim, noise=0.0, seed=3)
    constant = CellularSheaf.constant(graph, dim)
    np.testing.assert_array_equal(F.edges, constant.edges)
    assert (F.vertex_dims == dim).all()
    assert F.n_vertices == constant.n_vertices
    assert h0(F) == h0(constant)


HOLONOMIES = {
    "-1": [[-1]],
    "mirror": np.diag([1.0, -1.0, 1.0]),
    "i": [[1j]],
    "diag-1-i": np.diag([1.0, 1j]),
    "float32": np.eye(2, dtype=np.float32),
    **{str(angle): angle for angle in (0.0, 0, 0.7, np.pi)},
}


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("holonomy", HOLONOMIES.values(), ids=HOLONOMIES)
def test_cycle_has_identity_transports_except_for_the_holonomy(n, holonomy):
    """So its sections are the fixed vectors of the holonomy."""
    F = gallery.cycle(n, holonomy)
    assert F.n_vertices == n
    assert F.edges.tolist() == [[v, (v + 1) % n] for v in range(n)]
    U = transports(F)
    np.testing.assert_array_equal(U[:-1], np.tile(np.eye(U.shape[1]), (n - 1, 1, 1)))
    # not the rotation by minus the angle
    expected = np.array(holonomy) if np.ndim(holonomy) else plane(holonomy)
    assert_residual(U[-1] - expected, expected, n=len(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cycle_keeps_the_scalar_type_of_a_matrix(dtype):
    assert gallery.cycle(3, np.eye(2, dtype=dtype)).dtype == dtype
    assert gallery.cycle(3, dtype(0.5).real).dtype == np.float64
