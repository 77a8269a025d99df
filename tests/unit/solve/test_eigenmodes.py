import networkx as nx
import numpy as np
import pytest
import scipy.linalg

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.solve import _eigenmodes, eigensolver, multigrid
from tests.support.helpers import assert_residual, subspace_difference
from tests.unit.solve.problems import GRID, SHEAVES

METHODS = ("dense", "direct", "multilevel")


@pytest.fixture(autouse=True)
def _several_levels(monkeypatch):
    monkeypatch.setattr(multigrid, "COARSEST", 20)


def reference(F: CellularSheaf, mass=None) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Return eigenvalues and vectors in units of the largest entry, how many are zero, the unit."""
    delta = sc.coboundary(F).toarray()
    unit = float(np.abs(delta).max())
    roots = np.repeat(np.sqrt(np.ones(F.n_vertices) if mass is None else mass), F.vertex_dims)
    delta = delta / unit / roots
    values, vectors = np.linalg.eigh(delta.conj().T @ delta)
    singular = np.linalg.svd(delta, compute_uv=False)
    zeros = len(values) - int((singular > 1e-12 * singular[0]).sum())
    return values, vectors / roots[:, None], zeros, unit


@pytest.mark.parametrize("k", [1, 4, 9])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHEAVES)
def test_the_lowest_of_all(name, method, k):
    F = SHEAVES[name]
    values, vectors, zeros, unit = reference(F)
    E = sc.eigenmodes(F, k, method=method)
    top = values[-1]
    assert np.abs(E.values / unit**2 - values[:k]).max() <= 1e-8 * top
    assert E.n_zero == min(k, zeros)
    assert np.abs(E.vectors.conj().T @ E.vectors - np.eye(k)).max() <= 1e-11
    assert (E.residuals <= 1e-8).all()
    assert E.tied == (k < len(values) and values[k] - values[k - 1] <= 1e-8 * top)
    gap = (values[k] - values[k - 1]) / top if k < len(values) else 1.0
    if gap > 1e-3:
        assert subspace_difference(E.vectors, vectors[:, :k]) <= 2e-8 / gap


@pytest.mark.parametrize("method", METHODS)
def test_vertices_of_different_mass(method):
    F = SHEAVES["noisy bundle"]
    mass = np.random.default_rng(1).uniform(0.1, 3.0, F.n_vertices)
    values, _, _, unit = reference(F, mass)
    E = sc.eigenmodes(F, 5, method=method, mass=mass)
    assert np.abs(E.values / unit**2 - values[:5]).max() <= 1e-8 * values[-1]
    M = np.repeat(mass, F.vertex_dims)[:, None]
    assert np.abs(E.vectors.T @ (M * E.vectors) - np.eye(5)).max() <= 1e-11
    error = sc.laplacian(F) @ E.vectors - M * E.vectors * E.values
    assert np.abs(error).max() <= 1e-7 * unit**2


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize(
    ("graph", "d", "k", "seed"),
    [(nx.cycle_graph(60), 1, 11, 113), (nx.hypercube_graph(6), 3, 8, 100)],
)
def test_split_multiplets_converge_to_residuals_near_rounding(graph, d, k, seed, method):
    F = CellularSheaf.constant(nx.convert_node_labels_to_integers(graph), d)
    E = sc.eigenmodes(F, k, method=method, tol=1e-12, seed=seed)
    values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
    assert np.abs(E.values - np.repeat(values, d)[:k]).max() <= 1e-12 * values[-1]


@pytest.mark.parametrize("method", METHODS)
def test_a_split_multiplet_of_light_vertices_is_told(method):
    """Equal eigenvalues of vertices with the mass m differ by rounding over m."""
    F = CellularSheaf.constant(nx.cycle_graph(60))
    F = sc.disjoint_union([CellularSheaf.constant(np.zeros((0, 2), int), n_vertices=1), F])[0]
    mass = np.append(1.0, np.full(60, 2.0**-40))
    assert sc.eigenmodes(F, 3, method=method, mass=mass).tied
    assert not sc.eigenmodes(F, 4, method=method, mass=mass).tied


def heavy_reference(F: CellularSheaf, mass: np.ndarray, k: int) -> np.ndarray:
    """Return the k lowest eigenvalues, each to rounding: the largest of the inverse of L."""
    delta = sc.coboundary(F).toarray()
    factor = np.linalg.cholesky(delta.conj().T @ delta)
    roots = np.diag(np.repeat(np.sqrt(mass), F.vertex_dims))
    inverse = scipy.linalg.solve_triangular(factor, roots, lower=True)
    return np.linalg.svd(inverse, compute_uv=False)[:k] ** -2.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["noisy bundle", "complex connection", "loops, parallel edges"])
@pytest.mark.parametrize("seed", [3, 8, 25])
def test_masses_over_sixteen_orders_of_magnitude(name, method, seed):
    """Low eigenvalues are those of heavy vertices: each is right relative to itself."""
    F = SHEAVES[name]
    mass = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, F.n_vertices)
    wanted = heavy_reference(F, mass, 6)
    E = sc.eigenmodes(F, 6, method=method, mass=mass)
    assert np.abs(E.values / wanted - 1).max() <= 1e-6
    M = np.repeat(mass, F.vertex_dims)[:, None]
    assert np.abs(E.vectors.conj().T @ (M * E.vectors) - np.eye(6)).max() <= 1e-11
    assert E.completeness == {"dense": "dense", "direct": "inertia", "multilevel": "probe"}[method]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e20, 1e200])
def test_the_unit_of_the_mass_is_that_of_the_eigenvalues(method, unit):
    F = SHEAVES["noisy bundle"]
    mass = np.random.default_rng(1).uniform(0.1, 3.0, F.n_vertices)
    one, other = (sc.eigenmodes(F, 5, method=method, mass=m) for m in (mass, unit * mass))
    assert np.abs(other.values * unit / one.values - 1).max() <= 1e-6
    M = np.repeat(unit * mass, F.vertex_dims)[:, None]
    assert np.abs(other.vectors.T @ (M * other.vectors) - np.eye(5)).max() <= 1e-11


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_the_kernel_does_not_depend_on_the_mass(dtype, spread, method):
    F = sc.gallery.bundle(nx.grid_2d_graph(9, 9), 3, seed=2)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    mass = 10.0 ** np.random.default_rng(0).uniform(-spread, spread, 81)
    E = sc.eigenmodes(F, 5, method=method, mass=mass)
    assert E.n_zero == 3
    assert not E.values[:3].any()
    assert E.values[3] > 0.01 / mass.max()
    delta = sc.coboundary(F).toarray()
    zeros = np.linalg.qr(E.vectors[:, :3])[0]
    assert_residual(delta @ zeros, delta, n=F.dim_c0, eps=np.finfo(dtype).eps)


@pytest.mark.parametrize("method", METHODS)
def test_residuals_are_those_of_the_vectors_with_mass(method):
    """Loose, so that they are far above rounding; not in the norm of M or of its inverse."""
    F = SHEAVES["noisy bundle"]
    mass = 10.0 ** np.random.default_rng(1).uniform(-2, 2, F.n_vertices)
    E = sc.eigenmodes(F, 5, method=method, mass=mass, tol=1e-3, seed=1)
    L = sc.laplacian(F)
    M = np.repeat(mass, F.vertex_dims)[:, None]
    error = np.linalg.norm(L @ E.vectors - M * E.vectors * E.values, axis=0)
    norm = abs(L).sum(axis=1).max()
    assert np.abs(E.residuals - error / norm).max() <= 1e-14 * np.abs(E.vectors).max()
    assert method == "dense" or E.residuals.max() > 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [9, 40])
def test_a_multiplet_of_large_eigenvalues_is_tied(n, method):
    """The complete graph: all but one are n, beyond those that "dense" takes for its own needs."""
    F = CellularSheaf.constant(nx.complete_graph(n))
    assert [sc.eigenmodes(F, k, method=method).tied for k in (1, 3, n)] == [False, True, False]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_at_any_scale(method, scale):
    F = SHEAVES["complex connection"]
    wanted = sc.eigenmodes(F, 4, method=method).values
    E = sc.eigenmodes(F.with_maps(F.tail_data * scale, F.head_data * scale), 4, method=method)
    assert np.abs(E.values / scale / scale - wanted).max() <= 1e-8 * wanted[-1]


@pytest.mark.parametrize("k", [2, 3, 7, 10, 13])
def test_multiplets_that_k_cuts(k):
    """A kernel of dimension 3, then nine equal eigenvalues."""
    F = CellularSheaf.constant(nx.grid_graph([6, 6, 6]), 3)
    values = reference(F)[0]
    E = sc.eigenmodes(F, k, method="multilevel")
    assert np.abs(E.values - values[:k]).max() <= 1e-7
    assert E.n_zero == min(k, 3)
    assert E.tied == (values[k] - values[k - 1] <= 1e-9)
    assert E.completeness == "probe"


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_a_multiplet_wider_than_the_columns_gets_more_of_them(monkeypatch):
    """The second eigenvalue of a cube is threefold, for each of three dimensions."""
    F = sc.gallery.bundle(nx.grid_graph((12, 12, 12)), 3, noise=0.01, seed=0)
    E = sc.eigenmodes(F, 4, tol=1e-10, method="multilevel")
    monkeypatch.setattr(eigensolver, "SLOW", (8, 0.7))
    slow = sc.eigenmodes(F, 4, tol=1e-10, method="multilevel")
    assert np.abs(E.values - slow.values).max() <= 1e-9
    assert E.iterations < slow.iterations


def test_a_start_that_lacks_a_vector():
    """Residuals alone would stop at once: the probe finds what is missing."""
    F = sc.gallery.bundle(nx.grid_2d_graph(12, 12), 3, noise=0.05, seed=3)
    values, vectors, _, unit = reference(F)
    start = np.delete(vectors[:, :15], 4, axis=1)
    E = sc.eigenmodes(F, 10, method="multilevel", start=start)
    assert np.abs(E.values / unit**2 - values[:10]).max() <= 1e-7 * values[-1]


@pytest.mark.parametrize("method", METHODS)
def test_whether_a_multiplet_is_cut_is_iterated_for(method):
    """Of 87 equal eigenvalues the next after the k-th converges too, though nobody asked for it."""
    F = CellularSheaf.constant(nx.complete_bipartite_graph(15, 30), 3)
    assert [sc.eigenmodes(F, k, method=method).tied for k in (3, 8, 16)] == [False, True, True]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_starts_that_lack_several_vectors(method, seed):
    """What else they hold has converged, and more of it than is wanted."""
    rng = np.random.default_rng(seed)
    F = sc.gallery.bundle(nx.grid_2d_graph(8 + seed % 4, 9), 3, noise=0.05, seed=seed)
    values, vectors, _, unit = reference(F)
    k = int(rng.integers(4, 10))
    lacking = rng.choice(k, size=int(rng.integers(1, 4)), replace=False)
    start = np.delete(vectors[:, : k + 5], lacking, axis=1)
    E = sc.eigenmodes(F, k, method=method, start=start, seed=seed)
    assert np.abs(E.values / unit**2 - values[:k]).max() <= 1e-8 * values[-1]


@pytest.mark.parametrize("lacking", [2, 4])
def test_what_a_count_finds_missing_is_looked_for(lacking):
    """The others of the start have converged: among them no step would be taken."""
    F = CellularSheaf.constant(nx.random_regular_graph(3, 100, seed=1))
    values, vectors, _, unit = reference(F)
    start = np.delete(vectors[:, :10], lacking, axis=1)
    E = sc.eigenmodes(F, 6, method="direct", start=start)
    assert np.abs(E.values / unit**2 - values[:6]).max() <= 1e-8 * values[-1]
    assert E.completeness == "inertia"
    assert E.iterations > 0


def test_vectors_are_orthonormal_however_loose_the_tolerance():
    """Without what is done about it they are off by 1e-9."""
    rng = np.random.default_rng(14)
    edges = rng.integers(0, 66, (267, 2))
    F = CellularSheaf(edges, *rng.standard_normal((2, 267, 2, 2)), vertex_dims=[2] * 66)
    E = sc.eigenmodes(F, 17, tol=1e-4, method="multilevel")
    assert_residual(E.vectors.T @ E.vectors - np.eye(17), E.vectors, E.vectors, n=F.dim_c0)


@pytest.mark.parametrize("coarsest", [20, 400])
@pytest.mark.parametrize("method", METHODS)
def test_directions_that_maps_hardly_see(method, coarsest, monkeypatch):
    """By 1e-9 of the others: no sections, but L does not tell them from some."""
    monkeypatch.setattr(multigrid, "COARSEST", coarsest)
    F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), 2, noise=0.3, seed=1)
    maps = [data.reshape(-1, 2, 2).copy() for data in (F.tail_data, F.head_data)]
    for end, data in enumerate(maps):
        data[F.edges[:, end] == 17, :, 1] *= 1e-9
        data[F.edges[:, end] == 40, :, 0] *= 1e-10
    F = F.with_maps(*maps)
    values, _, _, unit = reference(F)
    E = sc.eigenmodes(F, 5, method=method)
    assert np.abs(E.values / unit**2 - values[:5]).max() <= 1e-8 * values[-1]
    assert E.values[2] > 1e-3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_zeros_of_maps_in_single_precision(dtype, method):
    """Their rounding makes no section nonzero, as in ``global_sections``."""
    F = sc.gallery.bundle(nx.grid_2d_graph(9, 9), 3, seed=2)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    E = sc.eigenmodes(F, 5, method=method)
    assert E.n_zero == sc.global_sections(F).h0 == 3
    assert not E.values[:3].any()
    assert E.values[3] > 0.01


@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_a_start_of_a_sheaf_of_turns(method):
    F = sc.gallery.bundle(nx.grid_2d_graph(30, 30), 2, noise=0.1, seed=1)
    first = sc.eigenmodes(F, 7, method=method)
    again = sc.eigenmodes(F, 7, method=method, start=first.vectors)
    assert first.tied
    assert again.tied
    assert again.iterations < first.iterations
    assert np.abs(again.values - first.values).max() <= 1e-8 * F.largest_entry**2
    whole = sc.eigenmodes(F, 8, method=method).vectors
    assert subspace_difference(first.vectors[:, :6], whole[:, :6]) <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_complex_start_of_a_real_sheaf(method):
    """Mixed by a unitary matrix, eigenvectors are still found in its real and imaginary parts."""
    F = SHEAVES["noisy bundle"]
    values, vectors, _, unit = reference(F)
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((9, 9)) + 1j * rng.standard_normal((9, 9)))[0]
    for start in (vectors[:, :9] @ turn, 1j * np.ones((F.dim_c0, 1))):
        E = sc.eigenmodes(F, 5, method=method, start=start)
        assert E.vectors.dtype == F.dtype
        assert np.abs(E.values / unit**2 - values[:5]).max() <= 1e-8 * values[-1]
    alone = sc.eigenmodes(F, 5, method=method)
    good = sc.eigenmodes(F, 5, method=method, start=vectors[:, :9] @ turn)
    assert method == "dense" or good.iterations < alone.iterations


def test_a_strip_of_cameras():
    """Edges (i, i + 1) and (i, i + 2), identity maps: of three zeros plain Lanczos loses one."""
    n = 683
    pairs = [(i, i + j) for j in (1, 2) for i in range(n - j)]
    E = sc.eigenmodes(CellularSheaf.constant(np.array(pairs), 3, weight=None), 4)
    assert E.n_zero == 3
    assert E.values[3] > 0


def weakly_joined(weight: float, seed: int, n: int = 60) -> CellularSheaf:
    """Return two expanders, a weak edge between them and a leaf on another: connected."""
    halves = (nx.random_regular_graph(4, n, seed=s) for s in (seed, seed + 50))
    graph = nx.disjoint_union(*halves)
    nx.set_edge_attributes(graph, 1.0, "weight")
    graph.add_weighted_edges_from([(0, n, weight), (2 * n - 1, 2 * n, weight)])
    return CellularSheaf.constant(graph)


@pytest.mark.parametrize("weight", [3e-4, 1e-5, 1e-7])
def test_zeros_beside_what_is_nearly_zero(weight):
    for seed in range(6):
        E = sc.eigenmodes(weakly_joined(weight, seed), 2, method="dense")
        assert E.n_zero == 1
        assert E.values[0] == 0
        assert abs(E.values[1] - 0.033 * weight) <= 0.02 * weight


def test_columns_that_become_dependent():
    F = weakly_joined(1e-6, 2)
    values = reference(F)[0]
    E = sc.eigenmodes(F, 4, method="direct")
    assert E.n_zero == 1
    assert np.abs(E.values - values[:4]).max() <= 1e-8 * values[-1]


def test_columns_that_are_lost_are_looked_for_again(monkeypatch):
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
    E = sc.eigenmodes(F, 5, method="direct")
    assert len(calls) == 2
    assert np.abs(E.values / unit**2 - values[:5]).max() <= 1e-8 * values[-1]


def test_single_precision_in_and_out():
    F = CellularSheaf.random(GRID, 2, 2, kind="orthogonal", seed=3, dtype=np.complex64)
    E = sc.eigenmodes(F, 3)
    assert E.vectors.dtype == np.complex64
    assert E.values.dtype == np.float32


def test_auto(monkeypatch):
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
    assert "multilevel" in E._repr_html_()


def test_auto_goes_on_with_factors_where_iterating_does_not_converge(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.MISSED", np.inf)
    weights = 10.0 ** np.random.default_rng(0).uniform(-1.5, 1.5, 2 * 30 * 29)
    F = CellularSheaf.constant(nx.grid_2d_graph(30, 30)).with_maps(weights, weights)
    monkeypatch.setattr(eigensolver, "SETTING_UP", 0.0)
    monkeypatch.setattr(eigensolver, "PER_PAIR", 0.0)
    E = sc.eigenmodes(F, 6)
    assert E.method == "direct"
    assert E.completeness == "inertia"
    assert E.n_zero == 1
    values, _, _, unit = reference(F)
    assert np.abs(E.values[1:] / unit**2 / values[1:6] - 1).max() <= 1e-6
    with pytest.raises(sc.NotConverged, match="method 'multilevel'") as failed:
        sc.eigenmodes(F, 6, method="multilevel")
    assert E.iterations > failed.value.result.iterations
    monkeypatch.setattr(_eigenmodes, "AFFORDABLE", 1e-9)
    with pytest.raises(sc.NotConverged, match="method 'multilevel'"):
        sc.eigenmodes(F, 6)


def test_the_seed_is_of_the_probe_alone():
    F = SHEAVES["noisy bundle"]
    one, other = (sc.eigenmodes(F, 3, method="multilevel", seed=seed).values for seed in (0, 8))
    assert np.abs(one - other).max() <= 1e-7 * other[-1]


def test_what_does_not_converge_is_an_error_with_what_there_is(monkeypatch):
    monkeypatch.setattr(eigensolver, "ROUNDS", 1)
    start = np.random.default_rng(0).standard_normal((112, 7))
    real = eigensolver.lowest_pairs
    monkeypatch.setattr(
        eigensolver, "lowest_pairs", lambda *a, **k: real(*a, **k | {"steps": (0, 1)})
    )
    with pytest.raises(sc.NotConverged, match="of 3 pairs reached the residual `tol`") as error:
        sc.eigenmodes(SHEAVES["noisy bundle"], 3, method="multilevel", start=start)
    assert len(error.value.result.values) == 3


@pytest.mark.parametrize(
    ("k", "options", "error", "message"),
    [
        (0, {}, ValueError, "`k` must be at least 1, got 0"),
        (57, {}, ValueError, "`k` must be at most dim_c0 = 56, got 57"),
        (1.5, {}, TypeError, "`k` must be an integer"),
        (2, {"tol": 1e-18}, ValueError, "`tol` must be at least 2e-15, the level of"),
        (2, {"mass": np.zeros(56)}, ValueError, "must be positive and finite, got 0 at vertex 0"),
        (2, {"mass": np.full(56, 1e-320)}, ValueError, "`mass` is as small as 9.99989e-321, so"),
        (
            2,
            {"mass": np.append(np.ones(55), 1e-30)},
            ValueError,
            "`mass` must not differ by more than a factor of 1e\\+20, got 1e-30 at vertex 55 and 1 "
            "at vertex 0",
        ),
        (2, {"mass": np.ones(3)}, ValueError, "one real number for each of 56 vertices"),
        (2, {"method": "power"}, ValueError, "`method` must be one of 'auto', 'dense'"),
        (2, {"start": np.ones(56)}, ValueError, "`start` must have vectors as columns"),
        (
            2,
            {"start": [[1.0, np.nan]] * 56},
            ValueError,
            r"`start\[0, 1\]` must be finite, got nan",
        ),
    ],
)
def test_bad_input(k, options, error, message):
    with pytest.raises(error, match=message):
        sc.eigenmodes(SHEAVES["graph"], k, **options)


@pytest.mark.parametrize("dim", [1, 2])
def test_pairs_are_counted_away_from_a_multiplet_that_k_splits(dim):
    """Pivots of factors within tol of a multiplet would have any sign."""
    F = CellularSheaf.constant(nx.grid_graph([4, 4, 4]), dim)
    L = sc.laplacian(F).toarray()
    values = np.linalg.eigvalsh(L)
    for k in range(9 * dim - 1, 11 * dim + 1):
        found = sc.eigenmodes(F, k, method="direct", tol=1e-12)
        assert_residual(found.values - values[:k], L, n=F.dim_c0)


@pytest.mark.parametrize("seed", [1, 2, 6, 8])
def test_slow_pairs_get_more_columns(seed, monkeypatch):
    """Weights over four decades along a path: with two more columns they would not converge."""
    monkeypatch.setattr(multigrid, "COARSEST", 20)
    graph = nx.cycle_graph(63) if seed % 2 else nx.path_graph(55)
    weights = 10.0 ** np.random.default_rng(seed).uniform(-2, 2, (graph.number_of_edges(), 1, 1))
    F = CellularSheaf.constant(graph, 2)
    F = F.with_maps(*(data.reshape(-1, 2, 2) * weights for data in (F.tail_data, F.head_data)))
    L = sc.laplacian(F).toarray()
    found = sc.eigenmodes(F, 6, method="multilevel")
    assert_residual(found.values - np.linalg.eigvalsh(L)[:6], L, n=F.dim_c0)


@pytest.mark.parametrize("scale", [1.0, 1e100])
def test_masses_with_which_eigenvalues_overflow_are_refused(scale):
    F = CellularSheaf.constant(nx.path_graph(5))
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    lightest = scale * scale * 1e-300
    assert np.isfinite(sc.eigenmodes(F, 5, mass=np.full(5, lightest)).values).all()
    with pytest.raises(ValueError, match="which overflows float64"):
        sc.eigenmodes(F, 5, mass=np.full(5, 1e-10 * lightest))
