"""Clusters too large for a dense matrix."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.modes import problems, sparse
from tests.support.helpers import assert_residual, covering, eps_of, ties_allowed
from tests.support.strategies import DTYPES
from tests.unit.modes.test_local_modes import (
    OPERATORS,
    assert_lowest_eigenpairs,
    modes_of,
    one_cluster,
)

SPARSE = {
    "general": CellularSheaf.random(nx.gnm_random_graph(60, 150, seed=3), 2, 2, seed=5),
    "ragged": CellularSheaf.random(
        nx.gnm_random_graph(60, 150, seed=3), np.arange(60) % 5, 1 + np.arange(150) % 3, seed=5
    ),
    # every eigenvalue has multiplicity at least 3
    "triple": CellularSheaf.constant(nx.grid_2d_graph(6, 7), 3),
    "components": CellularSheaf.constant(nx.gnm_random_graph(80, 70, seed=3), 1),  # a large kernel
    "star": CellularSheaf.constant(nx.star_graph(80)),  # 1 has multiplicity 79
    "loops": CellularSheaf.random(
        [*nx.cycle_graph(40).edges, (3, 3), (7, 7), (3, 4)], 2, 3, seed=5
    ),
    "nothing": CellularSheaf.constant(np.zeros((0, 2), int), 2, n_vertices=50),
}


@pytest.mark.parametrize(("name", "local_operator", "dtype"), covering(SPARSE, OPERATORS, DTYPES))
def test_clusters_too_large_for_a_dense_matrix_are_solved_by_the_sparse_method(
    name, local_operator, dtype, monkeypatch
):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_SHARE", 4)
    called = []
    solver = problems.lowest_sparse
    monkeypatch.setattr(
        "sheafcoarsen.modes.problems.lowest_sparse", lambda *args: called.append(1) or solver(*args)
    )
    F = SPARSE[name]
    turn = np.exp(1j * np.arange(F.dim_c1)) if np.dtype(dtype).kind == "c" else np.ones(F.dim_c1)
    tails, heads = (
        np.repeat(turn, F.vertex_dims[F.edges[np.repeat(np.arange(F.n_edges), F.edge_dims), end]])
        for end in (0, 1)
    )
    F = F.with_maps((F.tail_data * tails).astype(dtype), (F.head_data * heads).astype(dtype))
    labels = np.zeros(F.n_vertices, int)
    labels[-5:] = 1  # a small cluster is computed densely beside the large one
    P = Partition(labels)
    for rank in (0, 1, 4, 7):
        M = modes_of(F, P, rank, local_operator)
        for a in range(2):
            assert_lowest_eigenpairs(M, a)
        assert rank > 0 or not M.tied.any()
    assert len(called) == (0 if name == "nothing" else 4)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_perturbed_zeros_do_not_hide_other_eigenvalues(dim):
    """The inverse of a perturbed zero is so large that it dominates all other values."""
    A = sc.laplacian(CellularSheaf.constant(nx.grid_2d_graph(6, 7), dim))
    expected = np.linalg.eigvalsh(A.toarray())
    for count in range(3, 8):
        values, X = sparse.lowest_sparse(A, count, eps_of(float))
        assert_residual(values - expected[:count], 8.0, n=A.shape[0])
        assert_residual(A @ X - X * values, 8.0, n=A.shape[0])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_sparse_method_matches_the_dense_solver_at_any_scale(scale, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    F = CellularSheaf.random(nx.gnm_random_graph(60, 150, seed=3), 2, 2, seed=5)
    unscaled = sc.local_modes(F, one_cluster(F), 3)
    M = sc.local_modes(F.with_maps(F.tail_data * scale, F.head_data * scale), one_cluster(F), 3)
    for name in ("scores", "next_eigenvalues", "operator_norms"):
        error = getattr(M, name) / scale / scale - getattr(unscaled, name)
        assert_residual(error, unscaled.operator_norms.max(), n=120)
    assert_lowest_eigenpairs(M, 0)


@pytest.mark.parametrize(
    "graph", [nx.path_graph(100), nx.star_graph(100), nx.grid_2d_graph(10, 10)]
)
@pytest.mark.parametrize("decades", [4, 8])
def test_the_sparse_method_handles_maps_of_very_different_size(graph, decades, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)  # forbid the dense fallback
    F = CellularSheaf.constant(graph)
    weights = 10.0 ** -np.random.default_rng(1).uniform(0, decades, F.n_edges)
    M = modes_of(F.with_maps(weights, weights), one_cluster(F), 3, "internal")
    assert_lowest_eigenpairs(M, 0)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@pytest.mark.parametrize("graph", [nx.path_graph(100), nx.grid_2d_graph(10, 10)])
@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("digits", [0, 3])
def test_sections_fit_every_edge_where_maps_differ_by_many_digits(graph, rank, digits, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)
    bundle = sc.gallery.bundle(graph, 2, seed=4)
    roots = 10.0 ** np.random.default_rng(2).uniform(-4, 4, bundle.n_edges)
    scale = 10.0 ** np.random.default_rng(3).uniform(-digits, digits, 100)  # of vertices
    maps = (bundle.tail_data, bundle.head_data)
    F = bundle.with_maps(
        *(
            (1 + 1j) * np.repeat(roots * scale[bundle.edges[:, end]], 4) * maps[end]
            for end in (0, 1)
        )
    )
    M = modes_of(F, one_cluster(F), rank, "internal")
    assert_lowest_eigenpairs(M, 0)
    sections = M.basis(0)[:, :2]
    misfit = (sc.coboundary(F) @ sections).reshape(-1, 2, sections.shape[1]) / roots[:, None, None]
    largest = np.abs(np.repeat(scale, 2)[:, None] * sections).max()
    assert_residual(misfit, 4 * largest, n=F.dim_c0)


def test_a_cluster_is_solved_densely_if_the_sparse_method_fails(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)

    def fails(*args):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr("sheafcoarsen.modes.problems.lowest_sparse", fails)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.lowest_sparse", fails)
    F = CellularSheaf.constant(nx.path_graph(100))
    assert_lowest_eigenpairs(modes_of(F, one_cluster(F), 3, "internal"), 0)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.MAX_DENSE", 35)
    with pytest.raises(np.linalg.LinAlgError, match="cluster 0 .dimension 100.: no"):
        sc.local_modes(F, one_cluster(F), 3)


@pytest.mark.parametrize(
    ("rank", "options"),
    [
        (sc.ranks.below(0.1), {}),
        (sc.ranks.kernel(), {}),
        (35, {}),
        (2, {"local_operator": "oversampled"}),
    ],
)
def test_modes_that_need_whole_spectra_raise_for_huge_clusters(rank, options, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 30)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.MAX_DENSE", 30)
    F = CellularSheaf.constant(nx.path_graph(80))
    message = "cluster 0 has dimension 40.*limited to dimension 30: use more clusters"
    if options:
        message = r"the patch of cluster 0 has dimension \d+ \(the cluster itself 40\).*limited to"
    with pytest.raises(ValueError, match=message):
        sc.local_modes(F, Partition(np.arange(80) // 40), rank, **options)


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("dtype", "big", "small"), [(float, 1e100, 1e-100), (np.float32, 1e12, 1e-12)]
)
def test_a_cancelling_loop_does_not_hide_eigenvalues_of_a_large_cluster(
    dtype, big, small, method, monkeypatch
):
    if method == "sparse":
        monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 1)
        monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_SHARE", 1)
    n = 12
    edges = [(0, 0), *((i, i + 1) for i in range(n - 1))]
    maps = np.array([big, *[small] * (n - 1)], dtype).reshape(-1, 1, 1)
    F = CellularSheaf(edges, maps, maps)
    alone = CellularSheaf.constant(nx.path_graph(n))
    M = sc.local_modes(F, one_cluster(F), 4)
    expected = np.linalg.eigvalsh(sc.laplacian(alone).toarray())
    for found, value in zip([*M.scores, M.next_eigenvalues[0]], expected[:5], strict=True):
        assert_residual(float(found) / small / small - value, 4.0, n=n, eps=eps_of(F.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_of_large_clusters_are_reported(dtype, monkeypatch):
    """The eigenvalues of a cycle are double; different weights split them."""
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    sqrt_eps = float(np.sqrt(np.finfo(dtype).eps))
    edges = np.array([[v, (v + 1) % 80] for v in range(80)])
    for spread, tied in ((0.0, True), (1e-2 * sqrt_eps, True), (0.5, False)):
        weight = (1 + spread * np.cos(4 * np.pi * np.arange(80) / 80)).astype(dtype().real.dtype)
        F = CellularSheaf.constant(edges, weight=weight)
        F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
        for r in (2, 3):
            with ties_allowed():
                M = sc.local_modes(F, one_cluster(F), r)
            assert M.tied.tolist() == [tied and r == 2], (spread, r)


def test_residuals_above_rounding_level_raise(monkeypatch):
    A = sc.laplacian(CellularSheaf.constant(nx.cycle_graph(60)))
    refined = sparse._refined

    def exactly_refined(A, solve, X, count, level):
        return refined(A, solve, X, count, 0.0)

    assert sparse.lowest_sparse(A, 3, eps_of(A.dtype))[0].shape == (3,)
    monkeypatch.setattr(sparse, "_refined", exactly_refined)
    with pytest.raises(np.linalg.LinAlgError, match="residual"):
        sparse.lowest_sparse(A, 3, eps_of(A.dtype))


def test_multiple_eigenvalues_are_found_with_full_multiplicity(monkeypatch):
    """Lanczos is repeated until no lower eigenvalue appears, one copy at a time."""
    A = sc.laplacian(CellularSheaf.constant(nx.path_graph(20), 5))

    def one_of_each(solve, found, count, rng, tol):
        """Return one vector per eigenvalue beside ``found``, as Lanczos in exact arithmetic."""
        known, n = found @ found.T, len(found)
        beside = (np.eye(n) - known) @ A @ (np.eye(n) - known) + 100 * known
        values, vectors = np.linalg.eigh(beside)
        first = np.append(True, np.diff(values) > 1e-9)
        return vectors[:, np.flatnonzero(first)[:count]]

    monkeypatch.setattr(sparse, "_lanczos", one_of_each)
    # inverse iteration must not find the vectors that Lanczos missed
    monkeypatch.setattr(sparse, "_refined", lambda A, solve, X, count, level: X)
    expected = np.linalg.eigvalsh(A.toarray())
    for count in (3, 5, 7):
        values = sparse.lowest_sparse(A, count, eps_of(A.dtype))[0]
        assert_residual(values - expected[:count], 4.0, n=100)


def test_inverse_iteration_corrects_a_loose_lanczos_tolerance(monkeypatch):
    """With a single round, the next tolerance of Lanczos would be needed."""
    loose = []

    def start(solve, found, count, rng, tol):
        loose.append(tol)
        vectors = np.linalg.eigh(A.toarray())[1]
        n = len(found)
        noise = rng.standard_normal((n, count))
        new = vectors[:, found.shape[1] : found.shape[1] + count] + 1e-3 * noise / np.sqrt(n)
        return new - found @ (found.T @ new)

    A = scipy.sparse.diags_array(np.append([1.0, 2.0, 3.0, 4.0], np.arange(100.0, 196))).tocsr()
    monkeypatch.setattr(sparse, "_lanczos", start)
    values, vectors = sparse.lowest_sparse(A, 4, eps_of(A.dtype))
    assert set(loose) == {sparse.TOLERANCES[0]}
    assert_residual(A @ vectors - vectors * values, 195.0, n=100)
    assert_residual(values - [1.0, 2.0, 3.0, 4.0], 195.0, n=100)


@pytest.mark.parametrize("rule", [sc.ranks.kernel(), sc.ranks.below(0.1)])
def test_a_cluster_of_the_maximum_dense_dimension_is_solved(rule, monkeypatch):
    """The matrix of 12,000 coordinates takes a gigabyte, and its modes take minutes."""

    def too_much(*args):
        raise AssertionError("a dense matrix larger than that")

    monkeypatch.setattr(problems.LocalProblems, "run", too_much)
    F = CellularSheaf.constant(nx.path_graph(12_001))
    with pytest.raises(ValueError, match="dimension 12001.*limited to dimension 12000: use more"):
        sc.local_modes(F, one_cluster(F), rule)
