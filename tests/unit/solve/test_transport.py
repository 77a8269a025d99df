"""`transport` and `transported_frames` on connections; on a sphere, along meridians."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere


@pytest.mark.parametrize("t", [None, 0.01, 1e4])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("dim", [1, 3])
def test_transport_on_a_flat_connection_is_the_parallel_section(dim, scale, t):
    F = gallery.bundle(nx.grid_2d_graph(12, 9), dim, seed=3).with_labels(None)
    S = sc.global_sections(F).basis
    value = np.arange(1.0, dim + 1)
    at = F.vertex_offsets[40]
    section = S @ np.linalg.solve(S[at : at + dim], value)
    scaled = F.with_maps(scale * F.tail_data, scale * F.head_data)
    for unit in (1e-170, 1.0, 1e160):
        x = sc.transport(scaled, 40, unit * value, None if t is None else t / scale**2) / unit
        assert_residual(x - section, section, n=F.dim_c0)


def test_transport_accepts_single_precision_complex_maps_and_names():
    F = gallery.bundle(nx.path_graph(list("cab")), 1, seed=0).with_maps([[[1j]]] * 2, [[[1.0]]] * 2)
    F = F.with_maps(F.tail_data.astype(np.complex64), F.head_data.astype(np.complex64))
    x = sc.transport(F, "b", np.array([2.0], np.float32))
    assert x.dtype == np.complex64
    assert_residual(sc.coboundary(F) @ x, x, n=3)
    assert abs(x[2] - 2) < 1e-5


def test_edges_of_weight_zero_do_not_change_the_default_time():
    F = gallery.bundle(nx.path_graph(9), 2, noise=1.0, seed=0)
    edges = [*F.edges, [0, 4], [1, 7], [2, 8], [0, 2]]  # the connection does not close them
    maps = (np.append(data, np.zeros(16)) for data in (F.tail_data, F.head_data))
    G = sc.CellularSheaf.from_flat(edges, *maps, F.vertex_dims, 2)
    x = sc.transport(F, [0, 8], np.eye(2))
    assert_residual(sc.transport(G, [0, 8], np.eye(2)) - x, x, n=F.dim_c0)


def test_numbers_are_values_at_stalks_of_dimension_1():
    F = sc.CellularSheaf.signed([[0, 1], [1, 2]], sign=[-1, 1])
    x = sc.transport(F, 0, [2.0])
    assert_residual(x - [2, -2, -2], x, n=3)
    np.testing.assert_array_equal(sc.transport(F, 0, 2.0), x)
    both = sc.transport(F, [0, 2], [[2.0], [1.0]])
    np.testing.assert_array_equal(sc.transport(F, [0, 2], [2.0, 1.0]), both)


def along_meridians(points, given):
    """Apply the smallest rotation of the first point to every other; mask those not opposite."""
    pole = points[0]
    axis, cosine = np.cross(pole, points), points @ pole
    cross = np.cross(axis, given)
    exact = given + cross + np.cross(axis, cross) / (1 + np.maximum(cosine, -0.99))[:, None]
    return exact, cosine > -0.8


def test_transport_on_a_sphere_follows_meridians():
    points, faces = icosphere(3)
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    T = gallery.tangent_frames(points, faces)
    given = T[0] @ [1.0, 0.5]
    x = np.einsum("vij,vj->vi", T, sc.transport(F, 0, [1.0, 0.5]).reshape(-1, 2))
    exact, near = along_meridians(points, given)
    assert np.linalg.norm(x - exact, axis=1)[near].max() < 0.1 * np.linalg.norm(given)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), np.linalg.norm(given), rtol=1e-10)


@pytest.mark.large
@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_areas_make_paths_short_on_the_surface(scale):
    """A conformal map makes a sphere's points denser on one side: edges do not measure length."""
    points, faces = icosphere(4)
    up, down = 4 * (1 + points[:, 0]), 1 - points[:, 0]
    points = np.column_stack([up - down, 4 * points[:, 1:]]) / (up + down)[:, None]
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    T, areas = gallery.tangent_frames(points, faces), gallery.vertex_areas(points, faces)
    exact, near = along_meridians(points, T[0] @ [1.0, 0.5])
    t = float(areas.mean())

    def error(x):
        x = np.einsum("vij,vj->vi", T, x.reshape(-1, 2))
        return np.median(np.linalg.norm(x - exact, axis=1)[near]) / np.linalg.norm([1.0, 0.5])

    x = sc.transport(F, 0, [1.0, 0.5], mass=scale * areas)
    assert error(x) < 0.02
    assert error(sc.transport(F, 0, [1.0, 0.5])) > 0.08
    same = sc.transport(F, 0, [1.0, 0.5], t=scale * t, mass=scale * areas)
    assert error(same) < 0.02
    assert_residual(sc.transport(F, 0, [1.0, 0.5], t=t, mass=areas) - same, same, n=F.dim_c0)


def test_equal_masses_change_nothing_but_the_unit_of_t():
    F = gallery.bundle(nx.grid_2d_graph(12, 9), 2, seed=3, noise=0.3).with_labels(None)
    x = sc.transport(F, 5, [1.0, 2.0])
    assert_residual(sc.transport(F, 5, [1.0, 2.0], mass=np.full(108, 7.0)) - x, x, n=F.dim_c0)
    x = sc.transport(F, 5, [1.0, 2.0], t=2.0)
    again = sc.transport(F, 5, [1.0, 2.0], t=14.0, mass=np.full(108, 7.0))
    assert_residual(again - x, x, n=F.dim_c0)


def test_lengths_between_two_sources_depend_on_t():
    F = sc.CellularSheaf.constant(nx.path_graph(21), 2)
    values = [[3.0, 0.0], [0.0, 1.0]]
    sharp, wide = (sc.transport(F, [20, 0], values, t).reshape(-1, 2) for t in (0.1, 1e3))
    sharp, wide = np.linalg.norm(sharp, axis=1), np.linalg.norm(wide, axis=1)
    np.testing.assert_allclose(sharp[[0, 4, 10, 16, 20]], [1, 1, 2, 3, 3], rtol=1e-4)
    np.testing.assert_allclose(wide, 2, rtol=0.2)
    alone = sc.transport(sc.CellularSheaf.constant([[0, 1]], 2, n_vertices=4), 1, [1.0, 2.0])
    assert alone.tolist() == pytest.approx([1, 2, 1, 2, 0, 0, 0, 0])


def test_frames_of_a_map_that_is_singular_in_single_precision_are_bounded():
    """The rows of the map are (1, 3) / 10 and 7 (1, 3) / 10, up to rounding."""
    near = np.array([[0.1, 0.3], [0.7, 2.1]], np.float32)
    F = sc.CellularSheaf([[0, 1]], [np.eye(2, dtype=np.float32)], [near])
    exact = np.linalg.pinv(np.outer([0.1, 0.7], [1.0, 3.0]))
    frame = sc.transported_frames(F)[2:]
    assert_residual(frame - exact, exact, n=2, eps=np.finfo(np.float32).eps)


@pytest.mark.parametrize("dtype", [np.float32, complex])
def test_frames_on_a_tree_are_sections(dtype):
    """The identity delta B = 0 holds for any regular maps, orthogonal or not."""
    tree = nx.random_labeled_tree(60, seed=3)
    rng = np.random.default_rng(3)
    maps = [np.eye(3) + 0.3 * rng.standard_normal((59, 3, 3)) for _ in range(2)]
    F = CellularSheaf(np.array(tree.edges), *(m.astype(dtype) for m in maps))
    B = sc.transported_frames(F)
    assert (B.shape, B.dtype) == ((180, 3), dtype)
    assert_residual(sc.coboundary(F) @ B, sc.coboundary(F), B, n=60)
    assert np.array_equal(B[:3], np.eye(3))
    assert np.linalg.matrix_rank(B) == 3


def test_every_component_has_its_own_root_frame():
    F = sc.gallery.bundle(nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(5)), 2, seed=1)
    B = sc.transported_frames(F)
    assert_residual(sc.coboundary(F) @ B, sc.coboundary(F), B, n=2)
    for root in (0, 8):
        assert np.array_equal(B[root : root + 2], np.eye(2))


def test_a_long_chain_of_growing_maps_does_not_overflow():
    n = 3000
    F = CellularSheaf.diagonal(nx.path_graph(n + 1), np.full((n, 1), 3.0), np.ones((n, 1)))
    B = sc.transported_frames(F)  # 3^k at vertex k, up to a common factor
    assert np.isfinite(B**2).all()
    seen = B[:-1] > 1e-300
    np.testing.assert_allclose(B[1:][seen] / B[:-1][seen], 3, rtol=1e-12)
    assert B[0] == 0
    assert B[-1] > 1e150
    both = sc.disjoint_union([F, CellularSheaf.constant([[0, 1]])])[0]
    np.testing.assert_array_equal(sc.transported_frames(both), np.append(B, [[1], [1]], axis=0))


def test_frames_exist_with_loops_parallel_edges_and_isolated_vertices():
    edges = np.array([[0, 0], [0, 1], [1, 0]])
    F = CellularSheaf.constant(edges, 2, n_vertices=3, weight=None)
    assert np.array_equal(sc.transported_frames(F), np.tile(np.eye(2), (3, 1)))


def test_empty_stalks_and_sheaves_have_nothing_to_transport():
    assert sc.transport(sc.CellularSheaf.constant([[0, 1]], dim=0), 0, []).shape == (0,)
    empty = CellularSheaf(np.zeros((0, 2), int), [], [], vertex_dims=[])
    assert sc.transported_frames(empty).shape == (0, 0)
