"""Bundles, cycles, connections of points and bar frameworks have the documented sections."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import gallery
from sheafcoarsen.sheaf import CellularSheaf
from tests.support import reference
from tests.support.errors import raises
from tests.support.helpers import assert_residual, dense_rank
from tests.support.strategies import examples, multigraphs
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
    plain, noisy = (transports(gallery.bundle(graph, 2, n, seed=5021)) for n in (0.0, 0.01))
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
    assert set(np.sign(np.linalg.det(U))) == {-1.0, 1.0}


GRAPHS = {
    "edges": np.array([[0, 1], [1, 2], [2, 0]]),
    "adjacency": scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3)),
    "networkx": nx.cycle_graph(3),
    "empty": np.zeros((0, 2), dtype=int),
    "no-edges": nx.empty_graph(3),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
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
    assert (F.n_vertices, F.edges.tolist()) == (n, [[v, (v + 1) % n] for v in range(n)])
    U = transports(F)
    np.testing.assert_array_equal(U[:-1], np.tile(np.eye(U.shape[1]), (n - 1, 1, 1)))
    expected = np.array(holonomy) if np.ndim(holonomy) else plane(holonomy)
    assert_residual(U[-1] - expected, expected, n=len(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cycle_keeps_the_scalar_type_of_a_matrix(dtype):
    assert gallery.cycle(3, np.eye(2, dtype=dtype)).dtype == dtype
    assert gallery.cycle(3, dtype(0.5).real).dtype == np.float64


# ---------------------------------------------------------------- points and bars
def neighbours_one_by_one(points, k):
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    pairs = {tuple(sorted((i, j))) for i in range(len(points)) for j in np.argsort(squared[i])[:k]}
    return [[int(i), int(j)] for i, j in sorted(pairs)]


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 2**32), st.data())
@examples(20)
def test_nearest_neighbors_match_sorted_distances(scale, n, d, seed, data):
    k = data.draw(st.integers(1, n - 1))
    points = np.random.default_rng(seed).standard_normal((n, d))
    edges = gallery.nearest_neighbors(scale * points, k)
    assert (edges.dtype, edges.tolist()) == (np.int64, neighbours_one_by_one(points, k))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_coinciding_points_are_neighbours_without_loops(k):
    points = np.repeat([[0.0, 0.0], [10.0, 0.0]], [6, 3], axis=0)
    edges = gallery.nearest_neighbors(points, k)
    assert (edges[:, 0] < edges[:, 1]).all()
    degrees = np.bincount(edges.ravel(), minlength=9)
    assert (degrees >= k).all()
    across = (edges[:, 0] < 6) & (edges[:, 1] >= 6)
    assert across.any() == (k > 2)  # three coinciding points have only two neighbours there


def sphere(n):
    """Return evenly distributed (Fibonacci) points on the sphere, and its tangent planes."""
    i = np.arange(n) + 0.5
    z, phi = 1 - 2 * i / n, np.pi * (1 + np.sqrt(5)) * i
    r = np.sqrt(1 - z**2)
    points = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)
    east = np.stack([-np.sin(phi), np.cos(phi), 0 * z], axis=1)
    return points, np.stack([east, np.cross(points, east)], axis=2)


def torus(n):
    """Return points on the flat torus in four dimensions and its tangent planes."""
    a, b = 2 * np.pi * np.random.default_rng(17).random((2, n))
    o = 0 * a
    points = np.stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)], axis=1)
    first = np.stack([-np.sin(a), np.cos(a), o, o], axis=1)
    return points, np.stack([first, np.stack([o, o, -np.sin(b), np.cos(b)], axis=1)], axis=2)


def polar(A):
    left, _, right = np.linalg.svd(A)
    return left @ right


@pytest.mark.parametrize(("manifold", "smaller"), [(sphere, 0.45), (torus, 0.55)])
def test_the_connection_of_points_converges_to_that_of_the_manifold(manifold, smaller):
    """Four times as many points halve the distances, and about halve the errors or better."""
    worst = []
    for n in (500, 2000):
        points, planes = manifold(n)
        F, frames = gallery.connection_from_points(points, k=12, dim=2)
        np.testing.assert_array_equal(F.edges, gallery.nearest_neighbors(points, 12))
        assert frames.shape == (n, points.shape[1], 2)
        assert_residual(frames.swapaxes(1, 2) @ frames - np.eye(2), frames, n=2)
        u, v = F.edges.T
        G = polar(planes.swapaxes(1, 2) @ frames)  # from coordinates in frames to those in planes
        true = polar(planes[u].swapaxes(1, 2) @ planes[v])
        error = transports(F) - G[u].swapaxes(1, 2) @ true @ G[v]
        turns = np.abs(error).max(axis=(1, 2))
        outside = frames - planes @ (planes.swapaxes(1, 2) @ frames)
        tilts = np.linalg.norm(outside, ord=2, axis=(1, 2))  # sines of the largest angles
        worst.append((np.median(tilts), np.median(turns)))
    (coarse, coarse_turn), (fine, fine_turn) = worst
    assert fine < min(smaller * coarse, 0.05)
    assert fine_turn < min(smaller * coarse_turn, 0.01)


def test_the_connection_of_full_dimension_is_trivial():
    points = np.random.default_rng(5).standard_normal((40, 3))
    F, frames = gallery.connection_from_points(points, 6, 3)
    assert F.vertex_dims.tolist() == [3] * 40
    x = frames.swapaxes(1, 2) @ np.array([1.0, -2.0, 0.5])  # the same vector at every point
    assert_residual(sc.coboundary(F) @ x.ravel(), x, n=F.dim_c0)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_connection_does_not_depend_on_the_scale(scale):
    points = torus(60)[0]
    F, frames = gallery.connection_from_points(points, 6, 2)
    G, scaled = gallery.connection_from_points(points * scale, 6, 2)
    assert_residual(scaled - frames, frames, 100.0, n=6)
    assert_residual(G.head_data - F.head_data, F.head_data, 100.0, n=6)
    single, frames = gallery.connection_from_points(points.astype(np.float32), 6, 2)
    assert single.dtype == frames.dtype == np.float32


def test_the_chunk_size_does_not_change_the_connection(monkeypatch):
    points = sphere(100)[0]
    F, frames = gallery.connection_from_points(points, 6, 2)
    monkeypatch.setattr("sheafcoarsen.gallery.points.CHUNK", 6 * 3 * 7)
    G, again = gallery.connection_from_points(points, 6, 2)
    np.testing.assert_array_equal(again, frames)
    np.testing.assert_array_equal(G.head_data, F.head_data)


ROUND, LINE = sphere(20)[0], np.arange(12.0)[:, None] * [1.0, 2.0, 3.0]
APART = [*ROUND, *LINE[:6] / 50 + 9]


@pytest.mark.parametrize(
    ("points", "k", "dim", "message"),
    [
        (ROUND, 1, 2, "ValueError: `k` must be at least `dim` = 2"),
        (ROUND, 20, 2, "ValueError: `k` must be below the number of points, 20, got 20"),
        (ROUND, 5, 4, "ValueError: `dim` must be at most 3, the dimension of the points"),
        (ROUND, 5, 0, "ValueError: `dim` must be at least 1, got 0"),
        (ROUND, 5, 2.0, "TypeError: `dim` must be an integer, got 2.0"),
        ([*ROUND, ROUND[7]], 5, 2, "ValueError: `points` 7 and 20 coincide: remove duplicates"),
        (LINE, 4, 2, "ValueError: neighbours of point 0 span 1 of `dim` = 2 dimensions: increase"),
        (APART, 3, 2, "ValueError: the 3 nearest neighbours of point 20 span 1 of"),
        (LINE * [np.nan, 1, 1], 4, 1, "ValueError: `points` must be finite"),
        (LINE * 1j, 4, 1, "TypeError: `points` must be real"),
    ],
)
def test_invalid_arguments_of_connection_from_points_raise(points, k, dim, message):
    with raises(message):
        gallery.connection_from_points(points, k, dim)


# ---------------------------------------------------------------- bar frameworks
@pytest.mark.parametrize("d", [1, 2, 3])
def test_maps_of_a_bar_are_its_unit_direction_from_tail_to_head(d):
    """So rigid motions are sections: velocities whose difference is orthogonal to every bar."""
    points = np.random.default_rng(99).standard_normal((8, d)) + 5  # the last one has no bar
    edges = [[1, 0], [0, 2], [3, 1], [5, 6], [6, 5]]
    F = gallery.bar_framework(edges, points)
    assert (F.edges.tolist(), F.vertex_dims.tolist()) == (edges, [d] * 8)
    steps = np.array([points[v] - points[u] for u, v in edges])
    expected = steps / np.linalg.norm(steps, axis=1)[:, None]
    for data in (F.tail_data, F.head_data):
        assert_residual(data.reshape(-1, d) - expected, expected, n=d)


def test_bar_framework_ignores_weights_and_keeps_names_and_scalar_type():
    graph = nx.Graph([("b", "a", {"weight": 100.0})])
    F = gallery.bar_framework(graph, np.array([[0, 0], [2, 0]], dtype=np.float32))
    assert (F.vertex_labels, F.dtype) == (("b", "a"), np.float32)
    assert F.tail_map(0).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("points", "direction"),
    [
        *(([[-x, 0], [0, x], [0.5, 0]], np.sqrt([0.5, 0.5])) for x in (5e-324, 1e-300, 1, 1e308)),
        ([[0, 0], [3e-20, 4e-20], [1e304, 0]], [0.6, 0.8]),  # one point is distant
        ([[1, 1], [1 + 4 * 2**-52, 1 + 3 * 2**-52]], [0.8, 0.6]),
    ],
)
def test_bar_directions_are_accurate_at_every_scale_and_far_from_the_origin(points, direction):
    F = gallery.bar_framework([[0, 1]], np.array(points, float))
    assert_residual(F.head_map(0) - [direction], F.head_map(0), n=2)
