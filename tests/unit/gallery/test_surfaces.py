"""Tangent planes of surfaces: bases, transport, vertex areas and singularities of fields."""

import numpy as np
import pytest
import scipy.spatial

import sheafcoarsen as sc
from sheafcoarsen import gallery
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.support.meshes import CUBE, icosphere
from tests.unit.gallery.test_bundles import h0, transports
from tests.unit.synchronization.conftest import plane


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
    """Return the smallest rotation that maps normal_v to normal_u (Rodrigues)."""
    axis = np.cross(normal_v, normal_u)
    K = np.cross(axis, np.eye(3)).T  # K x = cross(axis, x)
    return np.eye(3) + K + K @ K / (1 + normal_u @ normal_v)


def test_transport_on_a_sphere_is_the_smallest_rotation_between_the_tangent_planes():
    points, faces = sphere(np.random.default_rng(6007))
    F = gallery.tangent_bundle(points, faces)
    sides = {tuple(sorted(s)) for f in faces.tolist() for s in zip(f, f[1:] + f[:1], strict=True)}
    assert F.edges.tolist() == sorted(map(list, sides))
    normals, T = normals_one_by_one(points, faces), gallery.tangent_frames(points, faces)
    assert_residual(T.swapaxes(1, 2) @ T - np.eye(2), T, n=3)
    assert_residual(np.cross(T[..., 0], T[..., 1]) - normals, normals, n=3)
    for (u, v), U in zip(F.edges, transports(F), strict=True):
        expected = T[u].T @ parallel_transport(normals[u], normals[v]) @ T[v]
        assert_residual(U - expected, U, 30.0, n=2)
    assert h0(F) == 0  # no parallel vector field
    assert gallery.tangent_frames(points.astype(np.float32), faces).dtype == np.float32


def test_determinants_are_minus_one_where_orientations_flip():
    """In the plane: a large triangle, a flipped large one (3, 4, 5), a small one between them."""
    flat = [[0, 0], [4, 0], [0, 4], [5, 0], [5, 4], [9, 0], [4.5, 1]]
    F = gallery.tangent_bundle(np.pad(flat, ((0, 0), (0, 1))), [[0, 1, 2], [3, 4, 5], [1, 3, 6]])
    flips = np.linalg.det(transports(F)) < 0
    assert (F.edges[flips].tolist(), F.n_edges) == ([[1, 3], [3, 6]], 9)


def moebius(n, width=4):
    """Return a Moebius strip of n by ``width`` vertices in triangles, and its unit normals."""
    angle, across = np.meshgrid(2 * np.pi * np.arange(n) / n, np.linspace(-0.2, 0.2, width))
    half, turn = angle.T.ravel() / 2, angle.T.ravel()
    outward = np.stack([np.cos(half) * np.cos(turn), np.cos(half) * np.sin(turn), np.sin(half)])
    along = np.stack([-np.sin(turn), np.cos(turn), 0 * turn])
    center = np.stack([np.cos(turn), np.sin(turn), 0 * turn])
    i, j = np.meshgrid(np.arange(n), np.arange(width - 1), indexing="ij")
    number = np.arange(n * width).reshape(n, width)
    ahead = np.vstack([number[1:], number[:1, ::-1]])  # the strip closes with a half turn
    a, b, c, d = number[i, j], number[i, j + 1], ahead[i, j + 1], ahead[i, j]
    faces = np.stack([[a, b, c], [a, c, d]], axis=-1).transpose(1, 2, 3, 0).reshape(-1, 3)
    return (center + across.T.ravel() * outward).T, faces, np.cross(outward.T, along.T)


@pytest.mark.parametrize("turned", [False, True])
def test_planes_and_transports_of_a_moebius_strip_are_accurate_at_its_seam(turned):
    points, faces, normals = moebius(120)
    if turned:
        some = np.random.default_rng(0).random(len(faces)) < 0.5
        faces[some] = faces[some, ::-1]
    T = gallery.tangent_frames(points, faces)
    found = np.cross(T[:, :, 0], T[:, :, 1])
    assert (abs((found * normals).sum(axis=1)) > 0.99).all()
    F = gallery.tangent_bundle(points, faces)
    signs = np.zeros((len(points), len(points)))
    flips = np.linalg.det(transports(F)).round()
    signs[tuple(F.edges.T)] = signs[tuple(F.edges[:, ::-1].T)] = flips
    around = signs[faces, np.roll(faces, -1, axis=1)].prod(axis=1)
    np.testing.assert_array_equal(around, 1)
    middle = 4 * np.arange(120) + 1  # around the strip, to the other half after one turn
    way = signs[middle[:-1], middle[1:]].prod() * signs[middle[-1], 2] * signs[2, 1]
    assert way == -1


def test_normals_that_cancel_up_to_rounding_are_replaced():
    """Two faces in one plane, of the same area and of opposite orientation."""
    p, q = np.random.default_rng(0).standard_normal((2, 3))
    points = np.array([0 * p, p, q, p + 0.3 * q, 1.21 * q + 0.7 * p])
    T = gallery.tangent_frames(points, [[0, 1, 2], [0, 4, 3]])
    normals = np.cross(T[..., 0], T[..., 1])
    assert normals[0].tolist() == [0, 0, 1]
    assert_residual(normals[1] + normals[3], 1.0, n=3)


def test_transports_of_a_sharp_surface_are_rotations():
    """At the tips of a flat pyramid, normals of neighbours are more than 90 degrees apart."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 0.05]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    T = gallery.tangent_frames(points, faces)
    normals = np.cross(T[:, :, 0], T[:, :, 1])
    assert (normals @ normals.T).min() < -0.1
    assert (np.linalg.det(transports(gallery.tangent_bundle(points, faces))) > 0).all()
    T[1] = T[1, :, ::-1]  # the frame of vertex 1 has the opposite orientation
    mirrored = gallery.tangent_bundle(points, faces, frames=T)
    flips = np.linalg.det(transports(mirrored)) < 0
    np.testing.assert_array_equal(flips, (mirrored.edges == 1).any(axis=1))


def test_quadrilateral_meshes_are_accepted():
    grid = np.arange(12).reshape(3, 4)
    y, x = np.indices((3, 4)).reshape(2, -1)
    points = np.stack([x, y, np.sin(x) + y**2], axis=1)
    corners = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    quads = np.stack(corners, axis=-1).reshape(-1, 4)
    normals = np.cross(*np.moveaxis(gallery.tangent_frames(points, quads), 2, 0))
    assert_residual(normals - normals_one_by_one(points, quads), normals, 10.0, n=12)
    F = gallery.tangent_bundle(points, quads)
    sides = {(i, i + 1) for i in range(11) if i % 4 != 3} | {(i, i + 4) for i in range(8)}
    assert F.edges.tolist() == sorted(map(list, sides))
    cosines = (normals[F.edges[:, 0]] * normals[F.edges[:, 1]]).sum(axis=1)
    np.testing.assert_array_equal(np.sign(np.linalg.det(transports(F))), np.sign(cosines))


def test_vertices_without_a_normal_use_the_third_axis():
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 1], [7, 7, 7], [0, 0.3, 0.1]]
    T = gallery.tangent_frames(points, [[0, 1, 2], [0, 2, 1]])
    normals = np.cross(T[..., 0], T[..., 1])
    assert normals.tolist() == [[0, 0, 1.0]] * 5  # the two faces cancel; 3 and 4 have no face
    F = gallery.tangent_bundle(points, [[0, 1, 2], [0, 2, 1]])
    assert (F.n_edges, F.vertex_dims.tolist()) == (3, [2] * 5)
    assert_residual(transports(F) - np.eye(2), transports(F), n=5)


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [*((scale, np.float64) for scale in (1e-200, 1e-100, 1e100, 1e200)), (1.0, np.float32)],
)
def test_tangent_bundle_keeps_its_transports_at_every_scale_and_precision(scale, dtype):
    points, faces = sphere(np.random.default_rng(13), n=20)
    F = gallery.tangent_bundle((points * scale).astype(dtype), faces)
    assert F.dtype == dtype
    difference = F.head_data - gallery.tangent_bundle(points, faces).head_data
    assert_residual(difference, 20.0, n=20, eps=np.finfo(dtype).eps)


def test_edges_opposite_to_two_right_angles_have_weight_zero():
    """The weight is zero even if rounding in a rotated rectangle gives 1e-17."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0]])
    for seed in range(5):
        Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
        F = gallery.tangent_bundle(corners @ Q, [[0, 1, 2], [0, 2, 3]], weights="cotan")
        assert not F.tail_map(1).any()
        assert F.tail_map(0).any()


SEVEN = np.vstack([np.eye(3), -np.eye(3), [[1.0, 1.0, 1.0]]])
THREE_AT_A_SIDE = (
    "ValueError: edge (0, 1) is a side of `faces[0]`, `faces[2]` and `faces[4]`, but a surface has"
)


@pytest.mark.parametrize(
    ("points", "faces", "message"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], "ValueError: `points` must have shape (n, 3), got (3, 2)"),
        (np.eye(3), [[0, 1, 3]], "ValueError: `faces[0]` = (0, 1, 3) is out of range for 3 points"),
        (np.eye(3), [[0, 1, 2], [0, -1, 2]], "ValueError: `faces[1]` = (0, -1, 2) is out of range"),
        (np.eye(3), [[0, 1, 0]], "ValueError: `faces[0]` = (0, 1, 0) contains a vertex twice"),
        (np.eye(3), [[0, 1]], "ValueError: `faces` must have at least three columns"),
        (np.eye(3), [[0, 1, 0.5]], "ValueError: `faces` must hold whole numbers"),
        (SEVEN, [[0, 1, 2], [3, 4, 5], [1, 0, 6], [3, 5, 0], [0, 1, 4]], THREE_AT_A_SIDE),
    ],
)
@pytest.mark.parametrize(
    "function", [gallery.tangent_bundle, gallery.tangent_frames, gallery.vertex_areas]
)
def test_invalid_surfaces_raise(function, points, faces, message):
    with raises(message):
        function(points, faces)


@pytest.mark.parametrize("scale", [1e-160, 1e-3, 1.0, 1e150])
@pytest.mark.parametrize("offset", [0.0, 0.1, 7.3])
def test_faces_without_area_raise_at_every_scale(scale, offset):
    thin = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0]]) + offset
    gallery.tangent_frames(scale * thin, [[0, 1, 2]])
    flat = np.array([[0, 0, 0], [2, 4, 6], [1, 2, 3]]) + offset
    with raises("ValueError: has no area, since its corners lie on a line"):
        gallery.tangent_frames(scale * flat, [[0, 1, 2]])


def test_faces_are_oriented_like_the_first_of_their_component():
    points, faces = sphere(np.random.default_rng(230), n=80)
    points, inside_out = np.vstack([points, points + 3]), 80 + faces[:, ::-1]
    faces = np.vstack([faces, inside_out])
    mixed = faces.copy()
    mixed[1::2] = mixed[1::2, ::-1]  # but not the first of 156 faces of a sphere
    assert len(faces) == 2 * 156
    for weights in ("uniform", "cotan"):
        F, G = (gallery.tangent_bundle(points, f, weights=weights) for f in (faces, mixed))
        assert_residual(F.head_data - G.head_data, F.head_data, n=8)
        assert_residual(F.tail_data - G.tail_data, F.tail_data, n=4)
    T, U = (gallery.tangent_frames(points, f) for f in (faces, mixed))
    assert_residual(T - U, T, n=6)
    areas = gallery.vertex_areas(points, faces)
    assert_residual(areas - gallery.vertex_areas(points, mixed), areas, n=6)


@pytest.mark.parametrize("power", [1, 2, 4])
def test_cochains_are_coordinates_in_the_given_frames(power):
    """Rotating frames by angles g_v rotates coordinates by -k g_v; reflections reflect them."""
    rng = np.random.default_rng(4211)
    points, faces = icosphere(1)
    T = gallery.tangent_frames(points, faces)
    angles, mirrored = rng.uniform(0, 6, len(T)), rng.random(len(T)) < 0.3
    # coordinates x_v in the old frame become Q_v^T x_v in the new frame
    turns, Q = (plane(k * angles) for k in (1, power))
    for each in (turns, Q):
        each[mirrored] *= [1.0, -1.0]
    F = gallery.tangent_bundle(points, faces, power=power)
    G = gallery.tangent_bundle(points, faces, frames=T @ turns, power=power)
    u, v = F.edges.T
    expected = Q[u].swapaxes(1, 2) @ transports(F) @ Q[v]
    assert_residual(transports(G) - expected, expected, n=len(T))
    assert mirrored.any()
    assert (np.linalg.det(transports(G)) < 0).any()


@pytest.mark.parametrize("power", [2, 3, 4, 7])
def test_powers_multiply_transport_angles_and_keep_reflections(power):
    points, faces = sphere(np.random.default_rng(61), n=30)
    rng = np.random.default_rng(3)
    T = gallery.tangent_frames(points, faces)
    T[rng.random(30) < 0.5] *= [1.0, -1.0]  # reflect some frames
    U, V = (transports(gallery.tangent_bundle(points, faces, T, power=k)) for k in (1, power))
    angles = np.arctan2(U[:, 1, 0], U[:, 0, 0])
    expected = plane(power * angles)
    expected[np.linalg.det(U) < 0] @= np.diag([1.0, -1.0])
    assert_residual(V - expected, V, n=2 * power)


# ---------------------------------------------------------------- cotan weights and areas
def cotan_laplacian(points, faces):
    """Return the stiffness matrix of piecewise linear functions, from their gradients."""
    L = np.zeros((len(points), len(points)))
    for face in faces:
        p = points[face]
        a, b = p[1] - p[0], p[2] - p[0]
        gram = np.array([[a @ a, a @ b], [a @ b, b @ b]])
        slopes = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])  # of hat functions
        area = np.sqrt(np.linalg.det(gram)) / 2
        L[np.ix_(face, face)] += area * slopes @ np.linalg.solve(gram, slopes.T)
    return L


def edge_weights(F):
    return F.tail_data.reshape(-1, 4)[:, 0] ** 2


def inner_delaunay():
    """Return a plane mesh without its boundary, which may have obtuse angles."""
    flat = np.random.default_rng(87).standard_normal((60, 2))
    faces = scipy.spatial.Delaunay(flat).simplices.astype(int)
    inner = np.linalg.norm(flat, axis=1) < 1.1
    return np.pad(flat, ((0, 0), (0, 1))), faces[inner[faces].all(axis=1)]


@pytest.mark.parametrize("make", [inner_delaunay, lambda: icosphere(2)], ids=["plane", "sphere"])
@pytest.mark.parametrize(
    ("scale", "dtype"),
    [*((scale, np.float64) for scale in (1e-100, 1.0, 1e100)), (1.0, np.float32)],
)
def test_cotan_weights_are_those_of_the_cotan_laplacian(make, scale, dtype):
    """Negative weights are replaced by zero; the transports are those of uniform weights."""
    points, faces = make()
    L = cotan_laplacian(points, faces)
    scaled = (scale * points).astype(dtype)
    F = gallery.tangent_bundle(scaled, faces, weights="cotan")
    assert F.dtype == dtype
    u, v = F.edges.T
    assert (L[u, v] > 0).sum() < 6
    w = edge_weights(F)
    assert_residual(w - np.maximum(-L[u, v], 0), L, n=60, eps=np.finfo(dtype).eps)
    U = F.head_data.reshape(-1, 2, 2) / np.sqrt(np.where(w > 0, w, 1))[:, None, None]
    plain = transports(gallery.tangent_bundle(scaled, faces)) * (w > 0)[:, None, None]
    assert_residual(U - plain, U, n=4, eps=np.finfo(dtype).eps)


def test_negative_cotan_weights_become_zero_without_disconnecting_components():
    """As in two triangles in a plane whose common side is opposite to two obtuse angles."""
    points = [[-1, 0, 0], [1, 0, 0], [0, 0.1, 0], [0, -0.1, 0]]
    faces = [[0, 1, 2], [1, 0, 3]]
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    w = dict(zip(map(tuple, F.edges.tolist()), edge_weights(F).tolist(), strict=True))
    assert w.pop((0, 1)) == 0
    assert all(weight > 0 for weight in w.values())
    assert cotan_laplacian(np.array(points), faces)[0, 1] > 0
    assert sc.global_sections(F).h0 == 2


def test_cotan_weights_need_triangles():
    with raises("ValueError: needs triangles, but `faces` has 4 columns"):
        gallery.tangent_bundle(np.eye(4, 3), [[0, 1, 2, 3]], weights="cotan")


def test_vertex_areas_are_equal_shares_of_face_areas():
    points, faces = sphere(np.random.default_rng(70), n=40)
    expected = np.zeros(41)
    for face in faces:
        a, b, c = points[face]
        expected[face] += np.linalg.norm(np.cross(b - a, c - a)) / 6
    lonely = np.vstack([points, [[5.0, 5.0, 5.0]]])
    areas = gallery.vertex_areas(lonely, faces)
    assert_residual(areas - expected, expected, n=40)
    assert areas[40] == 0
    square = [[0, 0, 2], [3, 0, 2], [3, 1, 2], [0, 1, 2]]
    assert_residual(gallery.vertex_areas(square, [[0, 1, 2, 3]]) - 0.75, 3.0, n=4)
    assert gallery.vertex_areas(np.array(square, np.float32), [[0, 1, 2, 3]]).dtype == np.float32


def test_vertex_areas_are_accurate_at_every_representable_scale():
    points, faces = icosphere(0)
    areas = gallery.vertex_areas(points, faces)
    for exponent in (-400, 400):
        scaled = gallery.vertex_areas(np.ldexp(points, exponent), faces)
        np.testing.assert_array_equal(scaled, np.ldexp(areas, 2 * exponent))
    for exponent, dtype in ((600, "float64"), (-80, "float32")):
        with raises(f"ValueError: the area of vertex 0 is not representable in {dtype}"):
            gallery.vertex_areas(np.ldexp(points, exponent).astype(dtype), faces)


# ---------------------------------------------------------------- singularities
def torus():
    """Return a torus of 24 x 12 squares, each divided into two triangles."""
    i, j = np.indices((24, 12)).reshape(2, -1)
    a, b = 2 * np.pi * i / 24, 2 * np.pi * j / 12
    ring = 2 + 0.7 * np.cos(b)
    points = np.stack([ring * np.cos(a), ring * np.sin(a), 0.7 * np.sin(b)], axis=1)
    steps = ((0, 0), (1, 0), (1, 1), (0, 1))
    squares = np.stack([(i + x) % 24 * 12 + (j + y) % 12 for x, y in steps], axis=1)
    return points, np.vstack([squares[:, [0, 1, 2]], squares[:, [0, 2, 3]]])


@pytest.mark.parametrize(("power", "weights"), [(1, "cotan"), (2, "uniform"), (4, "cotan")])
def test_singularities_of_the_smoothest_field_of_a_sphere_sum_to_two(power, weights):
    """By the Poincare-Hopf theorem; in a field of k directions a singularity counts 1/k."""
    points, faces = icosphere(2)
    turned = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0]
    points = points @ turned * [1.0, 1.1, 1.3]  # break the symmetry, which has multiplets
    F = gallery.tangent_bundle(points, faces, weights=weights, power=power)
    x = sc.eigenmodes(F, 1, mass=gallery.vertex_areas(points, faces)).vectors[:, 0]
    found = gallery.field_indices(points, faces, x, power)
    assert (found.sum(), set(found.tolist())) == (2 * power, {0, 1})  # no more than necessary
    z = x.reshape(-1, 2) @ [1, 1j]
    np.testing.assert_array_equal(gallery.field_indices(points, faces, z, power), found)
    angle = (np.angle(z) + 2 * np.pi) / power  # of one direction
    roots = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    frames = gallery.tangent_frames(points, faces)
    inside = np.einsum("vik,vk->vi", frames, roots)
    np.testing.assert_array_equal(gallery.field_indices(points, faces, inside, power), found)
    turn = np.random.default_rng(1).uniform(0, 2 * np.pi, len(points))
    own = frames @ plane(turn)
    z = np.exp(1j * power * (angle - turn))  # the same field in bases turned by ``turn``
    y = np.stack([z.real, z.imag], axis=1)
    np.testing.assert_array_equal(gallery.field_indices(points, faces, y, power, own), found)


CLOSED = {
    "sphere": (*icosphere(2), 2),
    "octahedron": (
        [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]],
        [[0, 2, 4], [1, 2, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
        2,
    ),
    "tetrahedron": (np.eye(4)[:, :3], [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], 2),
    "cube": (*CUBE, 2),
    "torus": (*torus(), 0),
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("power", [1, 2, 3, 3000])
def test_field_indices_sum_to_the_euler_characteristic(name, columns, power):
    """With ``power`` p every singularity of p directions counts 1 / p."""
    points, faces, euler = CLOSED[name]
    expected = power * euler
    for seed in range(5):
        vectors = np.random.default_rng(seed).standard_normal((len(points), columns))
        found = gallery.field_indices(points, faces, vectors, power)
        assert (found.shape, found.sum()) == ((len(faces),), expected)
        assert np.abs(found).sum() > expected or len(faces) < 20 or power > 1000
    for scale in (1e-200, 1e200):
        scaled = gallery.field_indices(points, faces, scale * vectors, power)
        np.testing.assert_array_equal(scaled, found)
    over = np.fliplr(faces)
    assert gallery.field_indices(points, over, vectors, power).sum() == expected


def test_field_indices_locate_singularities_of_smooth_fields():
    flat = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    faces = scipy.spatial.Delaunay(flat).simplices
    z = flat @ [1, 1j]
    for k in (1, -1, 2):
        w = (z - 0.1) ** k if k > 0 else (z - 0.1).conj()
        field = np.stack([w.real, w.imag, 0 * w.real], axis=1)
        found = gallery.field_indices(np.insert(flat, 2, 7.0, axis=1), faces, field)
        hit = scipy.spatial.Delaunay(flat).find_simplex([[0.1, 0.0]])[0]
        near = np.abs(flat[faces].mean(axis=1) - [0.1, 0.0]).max(axis=1) < 0.5
        assert found.sum() == k
        assert not found[~near].any()
        assert abs(k) > 1 or found[hit] == k


@pytest.mark.real_data
def test_the_smoothest_field_of_a_real_mesh_has_few_singularities(data_folder):
    points, faces = sc.read_mesh(data_folder / "mesh_spot.off.gz")
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    assert (edge_weights(F) == 0).sum() > 100  # a real mesh, with negative cotans
    E = sc.eigenmodes(F, 1, mass=gallery.vertex_areas(points, faces))
    found = gallery.field_indices(points, faces, E.vectors[:, 0])
    assert found.sum() == 2
    assert np.abs(found).sum() < 20


TRIANGLE = (np.eye(3), [[0, 1, 2]])
ONE_SIDED = (
    np.random.default_rng(0).standard_normal((5, 3)),
    [[i, (i + 1) % 5, (i + 2) % 5] for i in range(5)],
)


@pytest.mark.parametrize(
    ("surface", "vectors", "frames", "message"),
    [
        (ONE_SIDED, np.ones((5, 2)), None, "ValueError: `faces` must form an orientable surface"),
        (TRIANGLE, np.ones((3, 2)) * 1j, None, "TypeError: `vectors` must be real"),
        (TRIANGLE, np.ones(6), np.ones((3, 3, 2)), "ValueError: `frames[0]`"),
    ],
)
def test_fields_without_indices_raise(surface, vectors, frames, message):
    with raises(message):
        gallery.field_indices(*surface, vectors, frames=frames)
