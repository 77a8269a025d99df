"""Eigenpairs orthogonal to the global sections; rotations of planes as complex numbers."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.solve import EigenProblem, Pencil, eigensolver, lowest_eigenpairs
from sheafcoarsen.solve.eigensolver import complex_line
from tests.support.helpers import assert_residual, maps_of, subspace_difference
from tests.unit.solve.problems import GRID, SHEAVES

pytestmark = pytest.mark.usefixtures("several_levels")


def problem(F, k, tol=1e-8, **options) -> EigenProblem:
    pencil = Pencil(sc.sheaf.unit_sheaf(F)[0])
    return EigenProblem(pencil, -(-k // pencil.copies), tol, positive=True, **options)


def positive_pairs(F):
    values, vectors = np.linalg.eigh(sc.laplacian(F).toarray())
    zeros = int((values <= 1e-10 * values[-1]).sum())
    return values[zeros:], vectors[:, zeros:], zeros


@pytest.mark.parametrize("singular", [0.0, 1.0])
@pytest.mark.parametrize("method", ["direct", "multilevel"])
@pytest.mark.parametrize("name", ["graph", "two components", "noisy bundle", "mixed stalks"])
def test_pairs_are_the_lowest_orthogonal_to_all_sections(name, method, singular, monkeypatch):
    """L may be recognized as singular before the iteration, or by the zeros that it finds."""
    monkeypatch.setattr(eigensolver, "NEAR_SINGULAR", singular)
    F = sc.sheaf.unit_sheaf(SHEAVES[name])[0]
    values, vectors, zeros = positive_pairs(F)
    wanted = problem(F, 5, 1e-9)
    found, pencil = lowest_eigenpairs(wanted, method), wanted.pencil
    assert pencil.expand(found.sections).shape[1] == zeros
    error = np.repeat(found.values, pencil.copies)[:5] - values[:5]
    assert np.abs(error).max() <= 1e-9 * values[-1]
    if values[5] - values[4] > 1e-3 * values[-1]:
        assert subspace_difference(pencil.expand(found.vectors)[:, :5], vectors[:, :5]) < 1e-5


@pytest.mark.parametrize("mass", [1.0, 2.0**-44])
def test_eigenvalues_near_zero_are_counted_in_any_unit_of_mass(mass):
    F = SHEAVES["graph"]
    pencil = Pencil(F, np.full(F.dim_c0, mass))
    X = np.eye(F.dim_c0, 3) / np.sqrt(mass)
    values = np.array([1e-14, 1e-10, 1e-3]) * pencil.norm / mass
    assert EigenProblem(pencil, 3, 1e-8).count_near(values, X) == 2


@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_known_sections_are_not_computed_again(method, monkeypatch):
    monkeypatch.setattr(eigensolver, "_kernel", None)
    F = sc.sheaf.unit_sheaf(SHEAVES["consistent bundle"])[0]
    values, _, zeros = positive_pairs(F)
    Z = sc.global_sections(F).toarray()
    for start in (None, np.hstack([Z, np.eye(len(Z), 4)])):
        found = lowest_eigenpairs(problem(F, 5), method, start, Z)
        assert found.sections.shape[1] == zeros
        assert np.abs(found.values[:5] - values[:5]).max() <= 1e-8 * values[-1]
        assert np.abs(Z.T @ found.vectors).max() <= 1e-12


def test_none_is_returned_if_the_complement_of_the_kernel_is_small():
    F = SHEAVES["large kernel"]
    left = F.dim_c0 - positive_pairs(F)[2]
    assert lowest_eigenpairs(problem(F, left // 4), "multilevel") is None


@pytest.mark.large
@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_residual_targets_far_below_the_tolerance_are_reached(method):
    F = sc.sheaf.unit_sheaf(SHEAVES["complex connection"])[0]
    exact = positive_pairs(F)[0]
    fine = problem(F, 5, 1e-4, targets=lambda values: np.full(len(values), 1e-10))
    for start in (None, lowest_eigenpairs(fine, method).vectors[:, [0, 2, 3, 4]]):
        found = lowest_eigenpairs(fine, method, start)
        errors = fine.pencil.L @ found.vectors - found.vectors * found.values
        assert np.linalg.norm(errors, axis=0)[:5].max() <= 1.01e-10
        assert np.abs(found.values[:5] - exact[:5]).max() <= 1e-13
        assert found.completeness == {"direct": "inertia", "multilevel": "probe"}[method]


@pytest.mark.large
def test_the_cost_of_factors_chooses_the_method(monkeypatch):
    """It is not estimated for large graphs with cycles."""
    counted, real = [], eigensolver.elimination_order
    monkeypatch.setattr(
        eigensolver, "elimination_order", lambda *args: counted.append(args) or real(*args)
    )
    rng = np.random.default_rng(1)
    chords = rng.integers(0, 4800, 2500)
    path = np.stack([np.arange(4999), np.arange(1, 5000)], axis=1)
    chords = np.stack([chords, chords + rng.integers(2, 200, 2500)], axis=1)
    for graph, dim, method, looks in (
        (np.concatenate([path, chords]), 3, "direct", 1),
        (nx.convert_node_labels_to_integers(nx.grid_graph((14, 14, 14))), 3, "multilevel", 1),
        (nx.grid_2d_graph(142, 142), 1, "multilevel", 0),
        (nx.path_graph(20_001), 1, "direct", 1),
    ):
        counted.clear()
        F = sc.gallery.bundle(graph, dim, noise=0.02, seed=1)
        assert problem(F, 10 if dim == 3 else 3).chosen() == method
        assert len(counted) == looks


def test_more_pairs_than_inertia_counts_raise(monkeypatch):
    monkeypatch.setattr(eigensolver, "_counted", lambda *_: (9, 0.5, 1))
    problem = EigenProblem(Pencil(SHEAVES["noisy bundle"]), 9, 1e-8)
    message = "found 9 eigenvalues below 0.5, but inertia counts 1"
    with pytest.raises(sc.NotConverged, match=message):
        lowest_eigenpairs(problem, "direct")


LOOPS = nx.MultiGraph([(0, 0), (0, 1), (0, 1), (1, 2), (2, 0), (3, 3), (3, 4)])


def turns(graph, mirrored):
    """Return a sheaf whose maps are scaled rotations in bases of which some are reflected."""
    rng = np.random.default_rng(0)
    edges = np.array([e[:2] for e in graph.edges])
    n, m = graph.number_of_nodes(), len(edges)
    z = rng.standard_normal((2, m)) + 1j * rng.standard_normal((2, m))
    z[1, 0] = 0
    maps = np.stack([[z.real, -z.imag], [z.imag, z.real]]).transpose(2, 3, 0, 1)
    for end in (0, 1):
        maps[end][mirrored[edges[:, end]], :, 1] *= -1
    maps[:, rng.random(m) < 0.5, 1] *= -1
    return CellularSheaf.constant(edges, 2, n_vertices=n, weight=None).with_maps(*maps)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("graph", [GRID, LOOPS], ids=["grid", "loops"])
def test_the_complex_sheaf_has_the_same_laplacian(graph, mirror):
    F = turns(graph, mirror * np.arange(graph.number_of_nodes()) % 3 == 1)
    assert complex_line(F)[1].any() == mirror
    pencil, L = Pencil(F), sc.laplacian(F)
    X = np.random.default_rng(1).standard_normal((F.dim_c0, 2))
    Z = pencil.contract(X)
    Y = pencil.expand(Z)
    assert_residual(Y @ (Y.T @ X) - X, X, n=F.dim_c0)
    assert_residual(pencil.expand(sc.laplacian(pencil.sheaf) @ Z) - L @ Y, L.toarray(), Y, n=9)
    Z[Z.real < 0.1] = 0
    sparse = pencil.expand(scipy.sparse.csr_array(Z))
    assert sparse.nnz <= 4 * np.count_nonzero(Z)
    assert np.array_equal(sparse.toarray(), pencil.expand(Z))


def test_sheaves_without_complex_structure_return_none():
    """As on a cycle with a single reflection; with two, there is one."""
    for name in ("graph", "consistent bundle", "complex connection", "mixed stalks"):
        assert complex_line(SHEAVES[name])[1] is None
    F = SHEAVES["noisy bundle"]
    assert complex_line(F)[1] is not None
    tail, head = maps_of(F)
    tail[3, 0, 1] += 1e-12
    assert complex_line(F.with_maps(tail, head))[1] is None
    F = CellularSheaf.constant(nx.cycle_graph(7), 2)
    tail, head = maps_of(F)
    for e, is_none in ((2, True), (4, False)):
        head[e, 1, 1] = -1
        assert (complex_line(F.with_maps(tail, head))[1] is None) == is_none


def test_edges_with_a_zero_map_do_not_constrain_reflections():
    """In a cycle of three, the edge with a reflection has a zero map at its other end."""
    F = CellularSheaf.constant(nx.cycle_graph(3), 2)
    tail, head = maps_of(F)
    tail[0], head[0] = np.diag([1.0, -1.0]), 0
    F = F.with_maps(tail, head)
    L = sc.laplacian(F).toarray()
    found = np.linalg.eigvalsh(sc.laplacian(complex_line(F)[0]).toarray())
    assert_residual(np.repeat(found, 2) - np.linalg.eigvalsh(L), L, n=6)
