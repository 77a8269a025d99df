"""Singularities of tangent fields: theorems of Poincare and Hopf, smoothest fields, spectra."""

import numpy as np
import pytest
import scipy.spatial

import sheafcoarsen as sc
from sheafcoarsen import gallery
from tests.support.errors import raises
from tests.support.meshes import CUBE, icosphere
from tests.unit.gallery.test_bundles import transports
from tests.unit.gallery.test_surfaces import edge_weights
from tests.unit.synchronization.conftest import plane


def torus():
    """Return a torus of 24 x 12 squares, each divided into two triangles."""
    major, minor = np.meshgrid(np.arange(24), np.arange(12), indexing="ij")
    a, b = 2 * np.pi * major.ravel() / 24, 2 * np.pi * minor.ravel() / 12
    ring = 2 + 0.7 * np.cos(b)
    points = np.stack([ring * np.cos(a), ring * np.sin(a), 0.7 * np.sin(b)], axis=1)

    def at(i, j):
        return (i % 24 * 12 + j % 12).ravel()

    corners = [at(major + i, minor + j) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    faces = np.vstack([np.stack(corners, 1)[:, [0, 1, 2]], np.stack(corners, 1)[:, [0, 2, 3]]])
    return points, faces


def indices(faces, F, x):
    """Return the index of a field in every face, and the curvature of the face, in full turns.

    Between neighbours the field turns by an angle in (-pi, pi]; around a face these angles and the
    holonomy of the connection, the curvature, sum to a multiple of 2 pi. F has weight 1.
    """
    n = F.n_vertices
    keys = F.edges @ [n, 1]
    maps = transports(F)
    maps = maps[:, 0, 0] + 1j * maps[:, 1, 0]

    def carried(u, v):
        U = maps[np.searchsorted(keys, np.minimum(u, v) * n + np.maximum(u, v))]
        return np.where(u < v, U, U.conj())

    z = x.reshape(-1, 2) @ [1, 1j]
    a, b = faces, np.roll(faces, -1, axis=1)
    U = carried(a, b)
    curvature = -np.angle(np.prod(U, axis=1)) / (2 * np.pi)
    found = np.angle(U * z[b] * z[a].conj()).sum(axis=1) / (2 * np.pi) + curvature
    assert np.abs(found - found.round()).max() < 1e-9
    return found.round().astype(int), curvature


@pytest.mark.parametrize(("power", "weights"), [(1, "cotan"), (2, "uniform"), (4, "cotan")])
def test_singularities_of_the_smoothest_field_of_a_sphere_sum_to_two(power, weights):
    """By the Poincare-Hopf theorem; in a field of k directions a singularity counts 1/k."""
    points, faces = icosphere(2)
    turned = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0]
    points = points @ turned * [1.0, 1.1, 1.3]  # break the symmetry, which has multiplets
    F = gallery.tangent_bundle(points, faces, weights=weights, power=power)
    E = sc.eigenmodes(F, 1, mass=gallery.vertex_areas(points, faces))
    plain = gallery.tangent_bundle(points, faces, power=power)
    found, curvature = indices(faces, plain, E.vectors[:, 0])
    assert abs(curvature.sum() - 2 * power) < 1e-9
    assert found.sum() == 2 * power
    # a smooth field has no more singularities than necessary
    assert np.abs(found).sum() == 2 * power
    assert set(found.tolist()) == {0, 1}
    x = E.vectors[:, 0]
    np.testing.assert_array_equal(gallery.field_indices(points, faces, x, power), found)
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
        assert found.shape == (len(faces),)
        assert found.sum() == expected
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


def test_the_smoothest_field_of_a_torus_has_no_singularities():
    points, faces = torus()
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    E = sc.eigenmodes(F, 1, mass=gallery.vertex_areas(points, faces))
    assert not gallery.field_indices(points, faces, E.vectors[:, 0]).any()


def test_eigenvalues_of_the_sphere_are_those_of_tangent_fields():
    """With areas as masses, the lowest eigenvalue 1 has multiplicity 6 (curls and gradients)."""
    points, faces = icosphere(3)
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    values = sc.eigenmodes(F, 7, mass=gallery.vertex_areas(points, faces)).values
    assert np.abs(values[:6] - 1).max() < 0.02
    assert values[6] > 4


@pytest.mark.real_data
def test_the_smoothest_field_of_a_real_mesh_has_few_singularities(data_folder):
    points, faces = sc.read_mesh(data_folder / "mesh_spot.off.gz")
    F = gallery.tangent_bundle(points, faces, weights="cotan")
    assert (edge_weights(F) == 0).sum() > 100  # a real mesh, with negative cotans
    areas = gallery.vertex_areas(points, faces)
    E = sc.eigenmodes(F, 1, mass=areas)
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
