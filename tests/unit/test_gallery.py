import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.spatial
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import gallery
from sheafcoarsen.sheaf import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual, dense_kernel, dense_rank
from tests.support.strategies import multigraphs


def h0(F) -> int:
    return F.dim_c0 - dense_rank(reference.coboundary(F))


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def transports(F):
    """Return U_e for a connection of weight 1."""
    d = int(F.vertex_dims[0])
    assert (F.tail_data.reshape(-1, d, d) == np.eye(d)).all()
    return F.head_data.reshape(-1, d, d)


# ---------------------------------------------------------------- bundle


@given(multigraphs(), st.integers(1, 4), st.integers(0, 2**32))
def test_a_bundle_without_noise_has_the_spectrum_of_the_constant_sheaf(graph, dim, seed):
    F = gallery.bundle(graph, dim, seed=seed)
    constant = CellularSheaf.constant(graph, dim)
    assert F.vertex_labels == constant.vertex_labels == tuple(graph.nodes)
    np.testing.assert_array_equal(F.edges, constant.edges)
    L, L0 = reference.laplacian(F), reference.laplacian(constant)
    difference = np.linalg.eigvalsh(L) - np.linalg.eigvalsh(L0)
    if len(difference):
        delta = reference.coboundary(constant)  # loops cancel in it, but not their rounding in F
        scale = np.linalg.norm(delta) ** 2 + np.linalg.norm(constant.tail_data) ** 2
        assert_residual(difference, scale, n=len(L))


def test_sections_of_a_bundle_are_the_gauge_times_a_vector():
    graph = nx.grid_2d_graph(3, 4)
    F = gallery.bundle(graph, 3, seed=917)
    number = {v: i for i, v in enumerate(graph.nodes)}
    # the gauge from the tree of breadth-first paths: x_u = U_e x_v
    x = np.zeros((F.n_vertices, 3, 3))
    x[0] = np.eye(3)
    edge = {tuple(ends): e for e, ends in enumerate(F.edges.tolist())}
    for a, b in nx.bfs_edges(graph, (0, 0)):
        u, v = number[a], number[b]
        x[v] = F.head_map(edge[u, v]).T @ x[u] if (u, v) in edge else F.head_map(edge[v, u]) @ x[u]
    x = x.reshape(-1, 3)
    delta = reference.coboundary(F)
    assert_residual(delta @ x, delta, x, n=F.dim_c0)
    assert h0(F) == 3
    assert np.abs(transports(F) - np.eye(3)).max() > 0.1  # a disguise that hides something


def test_bundle_uses_weights_components_and_isolated_vertices():
    graph = nx.Graph()
    graph.add_nodes_from("abcd")
    graph.add_edge("a", "b", weight=9.0)
    graph.add_edge("c", "c", weight=2.0)
    F = gallery.bundle(graph, 2, seed=71)
    assert_residual(F.tail_map(0) - 3 * np.eye(2), 3.0, n=2)
    assert h0(F) == 6  # {a, b}, c with its loop, d


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e6])
def test_noise_keeps_transports_orthogonal_and_destroys_sections(dim, noise):
    F = gallery.bundle(nx.complete_graph(6), dim, noise, seed=23)
    U = transports(F)
    for e in range(F.n_edges):
        assert_residual(U[e].T @ U[e] - np.eye(dim), U[e], U[e], n=dim)
    if dim == 1:
        assert h0(F) == 1  # O(1) has no small rotations
    else:
        assert h0(F) < dim
    # a generic cocycle in odd dimension still has no common fixed vector
    assert dim == 1 or h0(F) == 0


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


def test_noise_goes_to_the_head_side():
    graph = nx.complete_graph(5)
    plain = transports(gallery.bundle(graph, 4, seed=88))
    noisy = transports(gallery.bundle(graph, 4, noise=1e-6, seed=88))
    K = (plain.swapaxes(1, 2) @ noisy - np.eye(4)) / 1e-6
    assert np.abs(K + K.swapaxes(1, 2)).max() < 1e-3  # skew up to noise K^2
    assert 0.3 < np.abs(K).max() < 10


def test_bundle_seeds():
    graph = nx.path_graph(4)
    one, same, other = (gallery.bundle(graph, 2, 0.1, seed=s).head_data for s in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(one, gallery.bundle(graph, 2, 0.1, seed=generator).head_data)


def test_gauge_reaches_both_components_of_the_orthogonal_group():
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
def test_bundle_takes_every_kind_of_graph(graph, dim):
    F = gallery.bundle(graph, dim, noise=0.0, seed=3)
    constant = CellularSheaf.constant(graph, dim)
    np.testing.assert_array_equal(F.edges, constant.edges)
    assert (F.vertex_dims == dim).all()
    assert F.n_vertices == constant.n_vertices
    assert h0(F) == h0(constant)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dim": 2.0}, TypeError, "`dim` must be an integer, got 2.0"),
        ({"dim": -1}, ValueError, "`dim` must be at least 0, got -1"),
        ({"dim": 2, "noise": -0.1}, ValueError, "`noise` must be finite and at least 0, got -0.1"),
        ({"dim": 2, "noise": np.nan}, ValueError, "`noise` must be finite"),
        ({"dim": 2, "noise": np.inf}, ValueError, "`noise` must be finite"),
        ({"dim": 2, "noise": "much"}, TypeError, "`noise` must be a real number, got 'much'"),
        ({"dim": 2, "noise": True}, TypeError, "`noise` must be a real number, got True"),
    ],
)
def test_bundle_refuses(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gallery.bundle(nx.path_graph(3), **arguments)


# ---------------------------------------------------------------- cycle


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("holonomy", "fixed"),
    [
        (0.0, 2),
        (0, 2),
        (0.7, 0),
        (np.pi, 0),
        ([[-1]], 0),
        ([[1.0]], 1),
        (np.diag([1.0, -1.0, 1.0]), 2),
        ([[0, 0, 1], [1, 0, 0], [0, 1, 0]], 1),
        ([[1j]], 0),
        (np.diag([1.0, 1j]), 1),
        (np.eye(2, dtype=np.float32), 2),
    ],
    ids=["0", "int-0", "0.7", "pi", "-1", "1", "mirror", "permutation", "i", "diag-1-i", "float32"],
)
def test_sections_of_a_cycle_are_what_the_holonomy_fixes(n, holonomy, fixed):
    F = gallery.cycle(n, holonomy)
    assert (F.n_vertices, F.n_edges) == (n, n)
    assert h0(F) == fixed


def test_cycle_spells_out_edges_and_transports():
    F = gallery.cycle(3, 0.3)
    assert F.edges.tolist() == [[0, 1], [1, 2], [2, 0]]
    np.testing.assert_array_equal(F.head_map(0), np.eye(2))
    np.testing.assert_array_equal(F.head_map(1), np.eye(2))
    assert_residual(F.head_map(2) - rotation(0.3), F.head_map(2), n=2)  # not rotation(-0.3)
    for e in range(3):
        np.testing.assert_array_equal(F.tail_map(e), np.eye(2))


@pytest.mark.parametrize(("n", "edges"), [(1, [[0, 0]]), (2, [[0, 1], [1, 0]])])
def test_short_cycles_are_a_loop_and_two_parallel_edges(n, edges):
    assert gallery.cycle(n, 0.3).edges.tolist() == edges


def test_the_lowest_eigenvalue_of_a_cycle_measures_its_angle():
    F = gallery.cycle(10, 0.5)
    lowest = np.linalg.eigvalsh(reference.laplacian(F))[:2]
    expected = 2 - 2 * np.cos(0.5 / 10)
    assert_residual(lowest - expected, 4.0, n=20)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cycle_keeps_the_scalar_type_of_a_matrix(dtype):
    assert gallery.cycle(3, np.eye(2, dtype=dtype)).dtype == dtype
    assert gallery.cycle(3, dtype(0.5).real).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 0.1), ValueError, "`n` must be at least 1, got 0"),
        ((3.0, 0.1), TypeError, "`n` must be an integer, got 3.0"),
        ((3, np.nan), ValueError, "`holonomy` must be finite, got nan"),
        ((3, [[1, 0], [0, np.inf]]), ValueError, "must be finite, got inf at index (1, 1)"),
        ((3, [1.0, 0.0]), ValueError, "an angle or a square matrix, got shape (2,)"),
        ((3, np.ones((2, 3))), ValueError, "an angle or a square matrix, got shape (2, 3)"),
        ((3, np.eye(2) * 1.1), ValueError, "an entry of U* U - I is 0.21"),
        ((3, np.eye(2) * 1e200), ValueError, "must be orthogonal or unitary"),
        ((3, 1j), TypeError, "for a phase z pass [[z]]"),
        ((3, "pi"), TypeError, "`holonomy` must hold"),
        ((3, True), TypeError, "`holonomy` must hold"),
    ],
)
def test_cycle_refuses(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gallery.cycle(*arguments)


# ---------------------------------------------------------------- tangent bundle


def sphere(rng, n=60):
    """Return random points on the sphere and the outward triangles of their convex hull."""
    points = rng.standard_normal((n, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    faces = scipy.spatial.ConvexHull(points).simplices.astype(np.int64)
    inward = np.linalg.det(points[faces]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return points, faces


def normals_one_by_one(points, faces):
    """Sum the area vectors (half the sum of p_i x p_{i+1}) of the faces around each vertex."""
    normals = np.zeros((len(points), 3))
    for face in faces:
        corners = points[face]
        normals[face] += np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0) / 2
    return normals / np.linalg.norm(normals, axis=1)[:, None]


def parallel_transport(normal_u, normal_v):
    """Return the smallest rotation that takes normal_v to normal_u (Rodrigues)."""
    axis = np.cross(normal_v, normal_u)
    K = np.cross(np.eye(3), axis)  # K x = axis x x, up to the sign fixed below
    K = -K if not np.allclose(K @ normal_v, np.cross(axis, normal_v)) else K
    return np.eye(3) + K + K @ K / (1 + normal_u @ normal_v)


def frame(normal):
    """Return some basis of the plane orthogonal to a normal, right-handed with it."""
    q = np.linalg.qr(np.column_stack([normal, np.eye(3)[:, :2]]))[0]
    T = q[:, 1:]
    return T if np.linalg.det(np.column_stack([normal, T])) > 0 else T[:, ::-1]


def test_transport_on_a_sphere_is_the_smallest_rotation_between_the_tangent_planes():
    points, faces = sphere(np.random.default_rng(6007))
    F = gallery.tangent_bundle(points, faces)
    sides = {tuple(sorted(s)) for f in faces.tolist() for s in zip(f, f[1:] + f[:1], strict=True)}
    assert F.edges.tolist() == sorted(map(list, sides))
    U = transports(F)
    normals = normals_one_by_one(points, faces)
    T = [frame(normal) for normal in normals]
    edge = {tuple(ends): e for e, ends in enumerate(F.edges.tolist())}

    def ours(u, v):
        return U[edge[u, v]] if (u, v) in edge else U[edge[v, u]].T

    def theirs(u, v):
        return T[u].T @ parallel_transport(normals[u], normals[v]) @ T[v]

    largest = 0.0
    for (
        a,
        b,
        c,
    ) in faces.tolist():  # around a triangle the bases cancel, up to a rotation that commutes
        around = ours(a, b) @ ours(b, c) @ ours(c, a)
        assert_residual(around - theirs(a, b) @ theirs(b, c) @ theirs(c, a), around, 30.0, n=2)
        largest = max(largest, np.abs(around - around.T).max())
    assert largest > 0.01  # the sphere is curved, so that a transposed transport would be noticed
    np.testing.assert_array_equal(np.sign(np.linalg.det(U)), 1.0)
    assert h0(F) == 0  # no parallel vector field


def test_holonomy_around_a_face_of_the_icosahedron_is_a_twentieth_of_the_sphere():
    golden = (1 + np.sqrt(5)) / 2
    points = np.array([[0, a, b * golden] for a in (1, -1) for b in (1, -1)])
    points = np.vstack([np.roll(points, shift, axis=1) for shift in range(3)])
    faces = scipy.spatial.ConvexHull(points).simplices
    faces = np.array([f if np.linalg.det(points[f]) > 0 else f[::-1] for f in faces])
    assert len(faces) == 20
    F = gallery.tangent_bundle(points, faces)
    U = np.zeros((12, 12, 2, 2))
    U[F.edges[:, 0], F.edges[:, 1]] = transports(F)
    U[F.edges[:, 1], F.edges[:, 0]] = transports(F).swapaxes(1, 2)
    for a, b, c in faces.tolist():  # carried from a to c to b to a, clockwise seen from outside
        around = U[a, b] @ U[b, c] @ U[c, a]
        assert_residual(around - rotation(-4 * np.pi / 20), around, 12.0, n=2)


def test_a_flat_mesh_has_two_parallel_fields_in_any_position():
    rng = np.random.default_rng(313)
    plane = rng.standard_normal((12, 2))
    faces = scipy.spatial.Delaunay(plane).simplices.astype(int)
    corners = plane[faces]
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    turned = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] < 0
    faces[turned] = faces[turned][:, ::-1]
    points = plane @ np.linalg.qr(rng.standard_normal((3, 3)))[0][:2] + rng.standard_normal(3)
    F = gallery.tangent_bundle(points, faces)
    assert_residual(transports(F) - np.eye(2), transports(F), n=2 * F.n_vertices)


def test_determinant_is_minus_one_where_two_neighbouring_faces_disagree():
    # in the plane: a large triangle, a large one turned over (3, 4, 5), a small one between them
    plane = [[0, 0], [4, 0], [0, 4], [5, 0], [5, 4], [9, 0], [4.5, 1]]
    F = gallery.tangent_bundle(np.pad(plane, ((0, 0), (0, 1))), [[0, 1, 2], [3, 4, 5], [1, 3, 6]])
    flips = np.linalg.det(transports(F)) < 0
    assert F.edges[flips].tolist() == [[1, 3], [3, 6]]
    assert F.n_edges == 9


def test_area_weighs_the_normals():
    # vertex 0: a large face in the plane z = 0 and a small one in the plane y = 0
    points = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 1], [-1, 0, 0.0]])
    normals = gallery._vertex_normals(points, np.array([[0, 1, 2], [0, 3, 4]]))
    expected = np.array([0, 0, 8.0]) + np.cross([0, 0, 1], [-1, 0, 0]) / 2
    expected /= np.linalg.norm(expected)
    assert_residual(normals[0] - expected, expected, n=3)


def test_quads():
    grid = np.arange(12).reshape(3, 4)
    x, y = np.meshgrid(np.arange(4.0), np.arange(3.0))
    points = np.stack([x, y, np.sin(x) + y**2], axis=-1).reshape(-1, 3)
    quads = np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]], axis=-1)
    quads = quads.reshape(-1, 4)
    normals = gallery._vertex_normals(points, quads)
    assert_residual(normals - normals_one_by_one(points, quads), normals, 10.0, n=12)
    F = gallery.tangent_bundle(points, quads)
    sides = {(i, i + 1) for i in range(11) if i % 4 != 3} | {(i, i + 4) for i in range(8)}
    assert F.edges.tolist() == sorted(map(list, sides))
    cosines = (normals[F.edges[:, 0]] * normals[F.edges[:, 1]]).sum(axis=1)
    np.testing.assert_array_equal(np.sign(np.linalg.det(transports(F))), np.sign(cosines))


def test_vertices_without_a_normal_take_the_third_axis():
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 1], [7, 7, 7], [0, 0.3, 0.1]]
    normals = gallery._vertex_normals(np.array(points), np.array([[0, 1, 2], [0, 2, 1]]))
    assert normals.tolist() == [[0, 0, 1.0]] * 5  # the two faces cancel; 3 and 4 are in none
    F = gallery.tangent_bundle(points, [[0, 1, 2], [0, 2, 1]])
    assert (F.n_vertices, F.n_edges) == (5, 3)
    assert F.vertex_dims.tolist() == [2] * 5
    assert_residual(transports(F) - np.eye(2), transports(F), n=5)


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1.0, 1e100, 1e200])
def test_tangent_bundle_does_not_depend_on_the_scale(scale):
    points, faces = sphere(np.random.default_rng(13), n=20)
    difference = gallery.tangent_bundle(points * scale, faces).head_data
    difference = difference - gallery.tangent_bundle(points, faces).head_data
    assert_residual(difference, 20.0, n=20)


def test_tangent_bundle_keeps_single_precision():
    points, faces = sphere(np.random.default_rng(13), n=20)
    F = gallery.tangent_bundle(points.astype(np.float32), faces)
    assert F.dtype == np.float32
    difference = F.head_data - gallery.tangent_bundle(points, faces).head_data
    assert_residual(difference, 20.0, n=20, eps=np.finfo(np.float32).eps)


@pytest.mark.parametrize(
    ("points", "faces", "error", "message"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], ValueError, "`points` must have shape (n, 3), got (3, 2)"),
        (np.eye(3) * np.nan, [[0, 1, 2]], ValueError, "`points` must be finite"),
        (np.eye(3) * 1j, [[0, 1, 2]], TypeError, "`points` must be real"),
        (np.eye(3), [[0, 1, 3]], ValueError, "`faces[0]` = (0, 1, 3) is out of range for 3 points"),
        (np.eye(3), [[0, 1, 2], [0, -1, 2]], ValueError, "`faces[1]` = (0, -1, 2) is out of range"),
        (np.eye(3), [[0, 1, 0]], ValueError, "`faces[0]` = (0, 1, 0) names a vertex twice"),
        (np.eye(3), [[0, 1]], ValueError, "`faces` must have at least three columns"),
        (np.eye(3), [0, 1, 2], ValueError, "`faces` must be 2-dimensional"),
        (np.eye(3), [[0, 1, 2], [0, 1]], ValueError, "`faces` must be a rectangular array"),
        (np.eye(3), [[0, 1, 0.5]], ValueError, "`faces` must hold whole numbers"),
    ],
)
def test_tangent_bundle_refuses(points, faces, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gallery.tangent_bundle(points, faces)


@pytest.mark.real_data
def test_the_orientation_of_a_moebius_strip_flips_somewhere(data_folder):
    lines = (data_folder / "mesh_moebius.off").read_text().split("\n")
    n, f = map(int, lines[1].split()[:2])
    points = np.array([line.split() for line in lines[2 : 2 + n]], dtype=float)
    quads = np.array([line.split()[1:] for line in lines[2 + n : 2 + n + f]], dtype=int)
    F = gallery.tangent_bundle(points, quads)
    assert (F.n_vertices, F.n_edges) == (280, 504)
    determinants = np.linalg.det(transports(F))
    assert_residual(np.abs(determinants) - 1, determinants, n=2)
    flips = np.flatnonzero(determinants < 0)
    assert 0 < len(flips) < 10
    # no choice of a side for each vertex removes the flips: the strip has only one
    orientation = CellularSheaf.signed(F.edges, np.sign(determinants), n_vertices=F.n_vertices)
    assert h0(orientation) == 0
    unflipped = CellularSheaf.signed(F.edges, np.ones(504), n_vertices=F.n_vertices)
    assert h0(unflipped) == 1


# ---------------------------------------------------------------- bar framework


def test_maps_of_a_bar_are_its_unit_direction_from_tail_to_head():
    F = gallery.bar_framework([[1, 0], [0, 2]], [[0, 0], [3, 4], [0, -2]])
    assert F.edges.tolist() == [[1, 0], [0, 2]]
    assert F.edge_dims.tolist() == [1, 1]
    for e, direction in enumerate([[-0.6, -0.8], [0.0, -1.0]]):
        for given_map in (F.tail_map(e), F.head_map(e)):
            assert_residual(given_map - np.array([direction]), given_map, n=2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rigid_motions_are_in_the_kernel_and_a_stretch_is_not(d):
    rng = np.random.default_rng(99)
    points = rng.standard_normal((7, d)) + 5
    F = gallery.bar_framework(nx.complete_graph(7), points)
    delta = reference.coboundary(F)
    A = rng.standard_normal((d, d))
    velocity = (points @ (A - A.T) + rng.standard_normal(d)).reshape(-1)
    assert_residual(delta @ velocity, delta, velocity, n=F.dim_c0)
    assert dense_kernel(delta).shape[1] == d * (d + 1) // 2  # complete graphs are rigid
    lengths = np.linalg.norm(points[F.edges[:, 0]] - points[F.edges[:, 1]], axis=1)
    assert_residual(delta @ points.reshape(-1) + lengths, delta, points, n=F.dim_c0)


def test_a_square_without_diagonal_has_one_more_motion_than_with_one():
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    sides = [[0, 1], [1, 2], [2, 3], [3, 0]]
    assert h0(gallery.bar_framework(sides, square)) == 4
    assert h0(gallery.bar_framework([*sides, [0, 2]], square)) == 3
    assert h0(gallery.bar_framework([*sides, [0, 2]], [*square, [9.0, 9.0]])) == 5


def test_bar_framework_ignores_weights_and_keeps_names_and_scalar_type():
    graph = nx.Graph()
    graph.add_edge("b", "a", weight=100.0)
    F = gallery.bar_framework(graph, np.array([[0, 0], [2, 0]], dtype=np.float32))
    assert F.vertex_labels == ("b", "a")
    assert F.dtype == np.float32
    assert F.tail_map(0).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e308])
def test_directions_at_every_scale(scale):
    F = gallery.bar_framework([[0, 1]], np.array([[-1.0, 0.0], [0.0, 1.0]]) * scale)
    assert_residual(F.head_map(0) - np.sqrt([[0.5, 0.5]]), F.head_map(0), n=2)


def test_points_far_from_the_origin_keep_their_distances():
    eps = np.finfo(float).eps
    F = gallery.bar_framework([[0, 1]], [[1.0, 1.0], [1.0 + 4 * eps, 1.0 + 3 * eps]])
    assert_residual(F.tail_map(0) - [[0.8, 0.6]], F.tail_map(0), n=2)


@pytest.mark.parametrize(
    ("graph", "points", "error", "message"),
    [
        ([[0, 1], [1, 2]], [[0.0], [1.0], [1.0]], ValueError, "edge 1 (1, 2) has length zero"),
        ([[0, 1], [1, 1]], [[0.0], [1.0]], ValueError, "edge 1 (1, 1) has length zero"),
        ([[0, 1]], [[0.0]], ValueError, "one row per vertex, 2 in all, got 1"),
        (nx.path_graph(2), np.eye(3), ValueError, "one row per vertex, 2 in all, got 3"),
        (scipy.sparse.eye_array(2), np.eye(3), ValueError, "one row per vertex, 2 in all, got 3"),
        ([[0, 1]], [0.0, 1.0], ValueError, "`points` must have shape (n, d), got (2,)"),
        ([[0, 1]], np.zeros((2, 0)), ValueError, "`points` must have shape (n, d), got (2, 0)"),
        ([[0, 1]], [[0.0], [np.inf]], ValueError, "`points` must be finite, got [inf] in row 1"),
    ],
)
def test_bar_framework_refuses(graph, points, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gallery.bar_framework(graph, points)


# ---------------------------------------------------------------- nearest neighbours


def neighbours_one_by_one(points, k):
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    pairs = {tuple(sorted((i, j))) for i in range(len(points)) for j in np.argsort(squared[i])[:k]}
    return [[int(i), int(j)] for i, j in sorted(pairs)]


@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 2**32), st.data())
def test_nearest_neighbors_equals_sorting_all_distances(n, d, seed, data):
    k = data.draw(st.integers(1, n - 1))
    points = np.random.default_rng(seed).standard_normal((n, d))
    edges = gallery.nearest_neighbors(points, k)
    assert edges.dtype == np.int64
    assert edges.tolist() == neighbours_one_by_one(points, k)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_points_in_one_place_are_neighbours_but_not_of_themselves(k):
    points = np.repeat([[0.0, 0.0], [10.0, 0.0]], [6, 3], axis=0)
    edges = gallery.nearest_neighbors(points, k)
    assert (edges[:, 0] < edges[:, 1]).all()
    degrees = np.bincount(edges.ravel(), minlength=9)
    assert (degrees >= k).all()
    across = (edges[:, 0] < 6) & (edges[:, 1] >= 6)
    assert across.any() == (k > 2)  # the three points need others only for k > 2


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_nearest_neighbors_at_every_scale(scale):
    points = np.random.default_rng(77).standard_normal((40, 3))
    edges = gallery.nearest_neighbors(points * scale, 4)
    assert edges.tolist() == neighbours_one_by_one(points, 4)


@pytest.mark.parametrize(
    ("points", "k", "error", "message"),
    [
        (np.eye(3), 3, ValueError, "`k` must be below the number of points, 3, got 3"),
        (np.eye(3), 0, ValueError, "`k` must be at least 1, got 0"),
        (np.eye(3), 1.0, TypeError, "`k` must be an integer, got 1.0"),
        (np.zeros((0, 2)), 1, ValueError, "`k` must be below the number of points, 0, got 1"),
        ([1.0, 2.0], 1, ValueError, "`points` must have shape (n, d), got (2,)"),
        ([[1.0], [np.nan]], 1, ValueError, "`points` must be finite, got [nan] in row 1"),
        (np.eye(3) * 1j, 1, TypeError, "`points` must be real"),
    ],
)
def test_nearest_neighbors_refuses(points, k, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gallery.nearest_neighbors(points, k)
