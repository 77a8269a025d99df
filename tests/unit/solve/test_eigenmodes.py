from functools import partial
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.solve import (
    EigenProblem,
    Pencil,
    _eigenmodes,
    eigensolver,
    lowest_eigenpairs,
    multigrid,
)
from sheafcoarsen.solve.eigensolver import complex_line
from tests.support.helpers import assert_residual, covering, maps_of, subspace_difference
from tests.unit.solve.conftest import GRID, SHEAVES, unit_coboundary

METHODS = ("dense", "direct", "multilevel")

pytestmark = pytest.mark.usefixtures("several_levels")


def reference(F: CellularSheaf, mass=None) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Return eigenvalues, eigenvectors, the number of zeros, and the unit: the largest entry."""
    delta, unit = unit_coboundary(F)
    roots = np.repeat(np.sqrt(np.ones(F.n_vertices) if mass is None else mass), F.vertex_dims)
    delta = delta / roots
    values, vectors = np.linalg.eigh(delta.conj().T @ delta)
    singular = np.linalg.svd(delta, compute_uv=False)
    zeros = len(values) - int((singular > 1e-12 * singular[0]).sum())
    return values, vectors / roots[:, None], zeros, unit


def assert_orthonormal(E, F, mass) -> None:
    """Assert that eigenvectors are orthonormal in the inner product of the masses."""
    M = np.repeat(mass, F.vertex_dims)[:, None]
    error = E.vectors.conj().T @ (M * E.vectors) - np.eye(len(E.values))
    assert np.abs(error).max() <= 1e-11


def assert_lowest(E, values, unit) -> None:
    """Assert that eigenvalues, in another unit, are the lowest of a full spectrum."""
    error = np.abs(E.values / unit**2 - values[: len(E.values)]).max()
    assert error <= 1e-8 * values[-1]


@pytest.mark.parametrize(("k", "name", "method"), covering([1, 4, 9], SHEAVES, METHODS))
def test_eigenmodes_are_the_lowest_of_the_full_spectrum(name, method, k):
    F = SHEAVES[name]
    values, vectors, zeros, unit = reference(F)
    E = sc.eigenmodes(F, k, method=method)
    top = values[-1]
    assert_lowest(E, values, unit)
    assert E.n_zero == min(k, zeros)
    assert_orthonormal(E, F, np.ones(F.n_vertices))
    assert (E.residuals <= 1e-8).all()
    assert E.tied == (k < len(values) and values[k] - values[k - 1] <= 1e-8 * top)
    gap = (values[k] - values[k - 1]) / top if k < len(values) else 1.0
    if gap > 1e-3:
        assert subspace_difference(E.vectors, vectors[:, :k]) <= 2e-8 / gap


CUBE = nx.grid_graph([4, 4, 4])
SPLIT = [(nx.cycle_graph(60), 1, 11, 113), (nx.hypercube_graph(6), 3, 8, 100)]


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize(
    ("graph", "d", "k", "seed"),
    [*SPLIT, *((CUBE, d, k, 0) for d in (1, 2) for k in range(9 * d - 1, 11 * d + 1))],
)
def test_split_multiplets_converge_to_rounding(graph, d, k, seed, method):
    """At shifts within tol of a multiplet, pivots would have arbitrary signs."""
    F = CellularSheaf.constant(nx.convert_node_labels_to_integers(graph), d)
    E = sc.eigenmodes(F, k, method=method, tol=1e-12, seed=seed)
    values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
    assert np.abs(E.values - np.repeat(values, d)[:k]).max() <= 1e-12 * values[-1]


@pytest.mark.parametrize(
    ("seed", "name", "method"),
    covering([3, 8, 25], ["noisy bundle", "complex connection", "loops, parallel edges"], METHODS),
)
def test_eigenvalues_are_accurate_for_masses_over_sixteen_orders_of_magnitude(name, method, seed):
    """The inverse of L gives the lowest ones with small relative errors."""
    F = SHEAVES[name]
    mass = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, F.n_vertices)
    delta, roots = sc.coboundary(F).toarray(), np.diag(np.repeat(np.sqrt(mass), F.vertex_dims))
    factor = np.linalg.cholesky(delta.conj().T @ delta)
    inverse = scipy.linalg.solve_triangular(factor, roots, lower=True)
    wanted = np.linalg.svd(inverse, compute_uv=False)[:6] ** -2.0
    E = sc.eigenmodes(F, 6, method=method, mass=mass)
    assert np.abs(E.values / wanted - 1).max() <= 1e-6
    assert_orthonormal(E, F, mass)
    assert E.completeness == {"dense": "dense", "direct": "inertia", "multilevel": "probe"}[method]


@pytest.mark.parametrize("seed", [2, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_iteration_with_mass_finds_eigenvalues_at_rounding_level(dtype, seed, monkeypatch):
    """All k + 1 lowest eigenvalues are below eps norm(L)."""
    monkeypatch.setattr(multigrid, "COARSEST", 500)
    rng = np.random.default_rng(seed)
    F = sc.gallery.bundle(nx.cycle_graph(80), 2, noise=0.1, seed=0)
    weights = np.repeat(10.0 ** rng.uniform(-6, 6, 80), 4)
    F = F.with_maps(*((weights * data).astype(dtype) for data in (F.tail_data, F.head_data)))
    mass = 10.0 ** rng.uniform(-1, 1, 80)
    E = sc.eigenmodes(F, 3, method="multilevel", mass=mass)
    M, V = np.repeat(mass, 2)[:, None], E.vectors.astype(float)
    L = sc.laplacian(F).astype(float)
    eps = np.finfo(dtype).eps
    assert_residual(V.T @ (M * V) - np.eye(3), 1.0, n=160, eps=eps)
    assert_residual(V.T @ (L @ V), 1 / mass.min(), abs(L).sum(axis=1).max(), n=160, eps=eps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1e-200, 5e307])
def test_scaling_the_mass_scales_the_eigenvalues_inversely(method, unit):
    F = SHEAVES["noisy bundle"]
    mass = np.random.default_rng(1).uniform(0.1, 3.0, F.n_vertices)
    one, other = (sc.eigenmodes(F, 5, method=method, mass=m) for m in (mass, unit * mass))
    assert np.abs(other.values * unit / one.values - 1).max() <= 1e-6
    assert_orthonormal(other, F, unit * mass)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_the_kernel_matches_global_sections_for_any_mass(dtype, method):
    """Eigenvalues that are zero up to rounding of the maps count as zeros."""
    F = sc.gallery.bundle(nx.grid_2d_graph(9, 9), 3, seed=2)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    delta = sc.coboundary(F).toarray()
    assert sc.global_sections(F).h0 == 3
    for mass in (None, 10.0 ** np.random.default_rng(0).uniform(-6, 6, 81)):
        E = sc.eigenmodes(F, 5, method=method, mass=mass)
        assert (E.vectors.dtype, E.values.dtype) == (dtype, dtype(0).real.dtype)
        assert E.n_zero == 3
        assert not E.values[:3].any()
        assert E.values[3] > 0.01 / (1 if mass is None else mass.max())
        zeros = np.linalg.qr(E.vectors[:, :3])[0]
        assert_residual(delta @ zeros, delta, n=F.dim_c0, eps=np.finfo(dtype).eps)


@pytest.mark.large
def test_a_multiplet_wider_than_the_block_gets_more_columns(monkeypatch):
    """The second eigenvalue of a cubic grid has multiplicity 3 for each of 3 stalk dimensions."""
    F = sc.gallery.bundle(nx.grid_graph((12, 12, 12)), 3, noise=0.01, seed=0)
    E = sc.eigenmodes(F, 4, tol=1e-10, method="multilevel")
    monkeypatch.setattr(eigensolver, "SLOW", (8, 0.7))
    slow = sc.eigenmodes(F, 4, tol=1e-10, method="multilevel")
    assert np.abs(E.values - slow.values).max() <= 1e-9
    assert E.iterations < slow.iterations


BIPARTITE = nx.complete_bipartite_graph(15, 30)
POINT_AND_RING = nx.disjoint_union(nx.empty_graph(1), nx.cycle_graph(60))
LIGHT = np.append(1.0, np.full(60, 2.0**-40))
MULTIPLETS = {  # numbers of pairs, and those of them that split a multiplet
    "all but one of 9": (CellularSheaf.constant(nx.complete_graph(9)), [1, 3, 9], [3]),
    "all but one of 40": (CellularSheaf.constant(nx.complete_graph(40)), [1, 3, 40], [3]),
    "87 of 135": (CellularSheaf.constant(BIPARTITE, 3), [3, 8, 16], [8, 16]),
    # rounding errors of equal eigenvalues at vertices of mass m are divided by m
    "light vertices": (CellularSheaf.constant(POINT_AND_RING), [3, 4], [3]),
    "all of 3": (CellularSheaf([[0, 1], [1, 2]], *np.zeros((2, 2, 1, 1))), [1, 2, 3], [1, 2]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MULTIPLETS)
def test_large_multiplets_are_tied_where_they_are_split(name, method):
    """The pair after the k-th converges too, and may be above those resolved again by "dense"."""
    F, ks, split = MULTIPLETS[name]
    mass = LIGHT if name == "light vertices" else None
    assert [k for k in ks if sc.eigenmodes(F, k, method=method, mass=mass).tied] == split


def test_inverse_iteration_takes_few_steps():
    """With `graded_ritz`, whose rounding errors are larger, there would be twice as many."""
    F = CellularSheaf.constant(nx.path_graph(3000))
    assert sc.eigenmodes(F, 8, method="direct", tol=1e-12).iterations < 12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_several_pairs_missing_from_the_start_are_found(method, seed):
    """The other vectors of the start have converged, and are more than requested."""
    rng = np.random.default_rng(seed)
    F = sc.gallery.bundle(nx.grid_2d_graph(8 + seed % 4, 9), 3, noise=0.05, seed=seed)
    values, vectors, _, unit = reference(F)
    k = int(rng.integers(4, 10))
    lacking = rng.choice(k, size=int(rng.integers(1, 4)), replace=False)
    start = np.delete(vectors[:, : k + 5], lacking, axis=1)
    assert_lowest(sc.eigenmodes(F, k, method=method, start=start, seed=seed), values, unit)


def test_vectors_are_orthonormal_even_for_a_loose_tolerance():
    """Without orthogonalization they would deviate by 1e-9."""
    rng = np.random.default_rng(14)
    edges = rng.integers(0, 66, (267, 2))
    F = CellularSheaf(edges, *rng.standard_normal((2, 267, 2, 2)), vertex_dims=[2] * 66)
    E = sc.eigenmodes(F, 17, tol=1e-4, method="multilevel")
    assert_residual(E.vectors.T @ E.vectors - np.eye(17), E.vectors, E.vectors, n=F.dim_c0)


@pytest.mark.parametrize("coarsest", [20, 400])
@pytest.mark.parametrize("method", METHODS)
def test_nearly_unseen_stalk_directions_are_not_sections(method, coarsest, monkeypatch):
    """Their maps are 1e-9 times as large as others: not sections, but zeros of L to rounding."""
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.COARSEST", coarsest)
    F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), 2, noise=0.3, seed=1)
    maps = maps_of(F)
    for end, data in enumerate(maps):
        data[F.edges[:, end] == 17, :, 1] *= 1e-9
        data[F.edges[:, end] == 40, :, 0] *= 1e-10
    F = F.with_maps(*maps)
    values, _, _, unit = reference(F)
    E = sc.eigenmodes(F, 5, method=method)
    assert_lowest(E, values, unit)
    assert E.values[2] > 1e-3
    assert sc.eigenmodes(F, 1, method=method).values[0] <= 1e-8 * values[-1] * unit**2


@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_a_start_is_used_for_sheaves_of_rotations(method):
    F = sc.gallery.bundle(nx.grid_2d_graph(30, 30), 2, noise=0.1, seed=1)
    first = sc.eigenmodes(F, 7, method=method)
    again = sc.eigenmodes(F, 7, method=method, start=first.vectors)
    assert (first.tied, again.tied) == (True, True)
    assert again.iterations < first.iterations
    assert np.abs(again.values - first.values).max() <= 1e-8 * F.largest_entry**2
    whole = sc.eigenmodes(F, 8, method=method).vectors
    assert subspace_difference(first.vectors[:, :6], whole[:, :6]) <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_complex_start_of_a_real_sheaf_is_used(method):
    """Its real and imaginary parts span eigenvectors that were mixed by a unitary matrix."""
    F = SHEAVES["noisy bundle"]
    values, vectors, _, unit = reference(F)
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((9, 9)) + 1j * rng.standard_normal((9, 9)))[0]
    for start in (vectors[:, :9] @ turn, 1j * np.ones((F.dim_c0, 1))):
        E = sc.eigenmodes(F, 5, method=method, start=start)
        assert E.vectors.dtype == F.dtype
        assert_lowest(E, values, unit)
    alone = sc.eigenmodes(F, 5, method=method)
    mixed = vectors[:, :9] @ turn[:, :2]  # four real dimensions, the real parts span two
    good = sc.eigenmodes(F, 5, method=method, start=mixed)
    half = sc.eigenmodes(F, 5, method=method, start=mixed.real)
    assert method == "dense" or good.iterations < min(alone.iterations, half.iterations)


@pytest.mark.parametrize("mass", [False, True])
@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_starts_may_contain_sections(method, mass):
    """Without them, the columns of the start depend on each other, or none is left."""
    F = CellularSheaf.constant([[i, i + 1] for i in range(99)], n_vertices=101)
    mass = np.random.default_rng(0).uniform(1, 2, 101) if mass else None
    values, _, zeros, unit = reference(F, mass)
    for start in (np.eye(101), np.eye(101)[:, 100:]):
        E = sc.eigenmodes(F, 3, method=method, mass=mass, start=start)
        assert_lowest(E, values, unit)
        assert E.n_zero == zeros == 2
        assert E.values[2] / unit**2 > 0.9 * values[2]
        assert_orthonormal(E, F, np.ones(101) if mass is None else mass)


def weakly_joined(weight: float, seed: int, n: int = 60) -> CellularSheaf:
    """Return two expanders joined by a weak edge, with a leaf attached by another weak edge."""
    halves = (nx.random_regular_graph(4, n, seed=s) for s in (seed, seed + 50))
    edges = [*nx.disjoint_union(*halves).edges, (0, n), (2 * n - 1, 2 * n)]
    weights = np.append(np.ones(len(edges) - 2), [weight, weight])
    return CellularSheaf.constant(np.array(edges), weight=weights)


@pytest.mark.parametrize("weight", [3e-4, 1e-5, 1e-7])
def test_zeros_are_told_apart_from_tiny_eigenvalues(weight):
    for seed in range(6):
        E = sc.eigenmodes(weakly_joined(weight, seed), 2, method="dense")
        assert E.n_zero == 1
        assert E.values[0] == 0
        assert abs(E.values[1] - 0.033 * weight) <= 0.02 * weight
    F = weakly_joined(1e-6, 2)  # columns of LOBPCG become dependent
    E = sc.eigenmodes(F, 4, method="direct")
    assert E.n_zero == 1
    assert_lowest(E, reference(F)[0], 1.0)


def test_lobpcg_restarts_if_columns_were_lost(monkeypatch):
    real, calls = eigensolver.lowest_pairs, []

    def losing(*args, **options):
        calls.append(1)
        found = real(*args, **options)
        if len(calls) > 1:
            return found
        kept = {name: getattr(found, name)[:2] for name in ("values", "residuals")}
        return found._replace(vectors=found.vectors[:, :2], **kept)

    monkeypatch.setattr(eigensolver, "lowest_pairs", losing)
    F = SHEAVES["noisy bundle"]
    values, _, _, unit = reference(F)
    assert_lowest(sc.eigenmodes(F, 5, method="direct"), values, unit)
    assert len(calls) == 2


def test_auto_chooses_the_cheapest_method(monkeypatch):
    F = SHEAVES["noisy bundle"]
    assert sc.eigenmodes(F, 3).method == "dense"
    monkeypatch.setattr(eigensolver, "DENSE_BELOW", 50)
    assert sc.eigenmodes(F, 3).method == "direct"
    monkeypatch.setattr(eigensolver, "SETTING_UP", 0.0)
    monkeypatch.setattr(eigensolver, "PER_PAIR", 0.0)
    E = sc.eigenmodes(F, 3)
    assert E.method == "multilevel"
    assert E.iterations > 0
    assert "method='multilevel'" in repr(E)
    for text in ("multilevel", "<caption>Eigenmodes</caption>"):
        assert text in E._repr_html_()


def test_auto_uses_direct_if_multilevel_does_not_converge(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.MISSED", np.inf)
    weights = 10.0 ** np.random.default_rng(0).uniform(-1.5, 1.5, 2 * 30 * 29)
    F = CellularSheaf.constant(nx.grid_2d_graph(30, 30)).with_maps(weights, weights)
    monkeypatch.setattr(eigensolver, "SETTING_UP", 0.0)
    monkeypatch.setattr(eigensolver, "PER_PAIR", 0.0)
    runs, run = [], eigensolver.lowest_pairs
    monkeypatch.setattr(
        eigensolver, "lowest_pairs", lambda *a, **b: runs.append(run(*a, **b)) or runs[-1]
    )
    E = sc.eigenmodes(F, 6)
    assert E.iterations == sum(found.steps for found in runs)
    assert (E.method, E.completeness, E.n_zero) == ("direct", "inertia", 1)
    values = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    assert np.abs(E.values[1:] / values[1:6] - 1).max() <= 1e-6
    with pytest.raises(sc.NotConverged, match="method 'multilevel'") as failed:
        sc.eigenmodes(F, 6, method="multilevel")
    assert E.iterations > failed.value.result.iterations
    monkeypatch.setattr(_eigenmodes, "AFFORDABLE", 1e-9)
    with pytest.raises(sc.NotConverged, match="method 'multilevel'"):
        sc.eigenmodes(F, 6)


def test_not_converged_holds_the_computed_pairs(monkeypatch):
    monkeypatch.setattr(eigensolver, "ROUNDS", 1)
    start = np.random.default_rng(0).standard_normal((112, 7))
    few = partial(eigensolver.lowest_pairs, steps=(0, 1))
    monkeypatch.setattr(eigensolver, "lowest_pairs", lambda *a, steps, **k: few(*a, **k))
    with pytest.raises(sc.NotConverged, match="of 3 pairs reached the residual `tol`") as error:
        sc.eigenmodes(SHEAVES["noisy bundle"], 3, method="multilevel", start=start)
    assert len(error.value.result.values) == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_slow_convergence_adds_columns(seed):
    """These graphs converge from each of twenty random starts, but not with two more columns."""
    graph = nx.cycle_graph(63) if seed % 2 else nx.path_graph(55)
    weights = 10.0 ** np.random.default_rng(seed).uniform(-2, 2, (graph.number_of_edges(), 1, 1))
    F = CellularSheaf.constant(graph, 2)
    F = F.with_maps(*(weights * maps for maps in maps_of(F)))
    L = sc.laplacian(F).toarray()
    found = sc.eigenmodes(F, 6, method="multilevel")
    assert_residual(found.values - np.linalg.eigvalsh(L)[:6], L, n=F.dim_c0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_multiplets_are_tied_within_the_rounding_errors_of_the_maps(dtype):
    """One edge has the eigenvalues 0 and 2, each four times."""
    for seed in range(10):
        F = CellularSheaf.random([[0, 1]], 4, 4, kind="orthogonal", seed=seed, dtype=dtype)
        assert [sc.eigenmodes(F, k).tied for k in (3, 4, 5)] == [True, False, True]


@pytest.mark.parametrize("scale", [1.0, 1e100])
def test_eigenvalues_are_finite_up_to_the_limits_of_the_scalar_type(scale):
    F = CellularSheaf.constant(nx.path_graph(5))
    G = F.with_maps(scale * F.tail_data, scale * F.head_data)
    lightest = scale * scale * 1e-300
    for mass in (lightest, scale * 1e190):
        values = sc.eigenmodes(G, 5, mass=np.full(5, mass)).values
        assert np.isfinite(values).all()
        assert values[1:].min() > 0
    mixed = np.array([1, 1e-10, 1, 1, 1])
    with pytest.raises(ValueError, match="which overflows float64"):
        sc.eigenmodes(G, 5, mass=lightest * mixed)
    low = sc.eigenmodes(G, 3, mass=lightest * mixed).values  # only the last two overflow
    ordinary = sc.eigenmodes(F, 3, mass=mixed).values
    assert_residual(low * 1e-300 - ordinary, ordinary[-1], n=5)


# ---------------------------------------------------------------- the eigensolver
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
    order = Mock(wraps=eigensolver.elimination_order)
    monkeypatch.setattr(eigensolver, "elimination_order", order)
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
        order.reset_mock()
        F = sc.gallery.bundle(graph, dim, noise=0.02, seed=1)
        assert problem(F, 10 if dim == 3 else 3).chosen() == method
        assert order.call_count == looks


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
