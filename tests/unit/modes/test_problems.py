"""Large clusters against the dense solver, by LAPACK and by the sparse method, at any scale."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen._support import threads
from sheafcoarsen.modes import problems
from tests.support.helpers import assert_residual, covering, eps_of, ties_allowed
from tests.support.strategies import DTYPES, SCALES
from tests.unit.modes.test_local_modes import (
    OPERATORS,
    assert_lowest_eigenpairs,
    local_operator_of,
    modes_of,
    one_cluster,
)

CONNECTED = nx.gnm_random_graph(60, 150, seed=3)
FEW = nx.gnm_random_graph(60, 54, seed=13)


def graded(F, decades):
    """Return a sheaf whose edges have very different size."""
    sizes = 10.0 ** np.random.default_rng(13).integers(-decades, 1, F.n_edges)
    factors = np.repeat(sizes, np.diff(F.tail_offsets))
    return F.with_maps(F.tail_data * factors, F.head_data * factors)


SHEAVES = {
    "general": CellularSheaf.random(CONNECTED, 2, 2, seed=5),
    "ragged": CellularSheaf.random(CONNECTED, np.arange(60) % 6, 1 + np.arange(150) % 4, seed=5),
    "orthogonal": CellularSheaf.random(CONNECTED, 3, 3, kind="orthogonal", seed=5),
    "few edges": CellularSheaf.random(FEW, 3, 2, seed=5),  # most entries of L_a are zero
    "graded": graded(CellularSheaf.random(CONNECTED, 3, 3, seed=5), 4),
    # every eigenvalue has multiplicity at least 3
    "triple": CellularSheaf.constant(nx.grid_2d_graph(6, 7), 3),
    "components": CellularSheaf.constant(nx.gnm_random_graph(80, 70, seed=3), 1),  # a large kernel
    "loops": CellularSheaf.random(
        [*nx.cycle_graph(40).edges, (3, 3), (7, 7), (3, 4)], 2, 3, seed=5
    ),
    "nothing": CellularSheaf.constant(np.zeros((0, 2), int), 2, n_vertices=50),
    # 0 is simple, 50 has multiplicity 49
    "complete": CellularSheaf.constant(nx.complete_graph(50)),
    "star": CellularSheaf.constant(nx.star_graph(80)),  # 1 has multiplicity 79
    "cycle of planes": gallery.bundle(nx.cycle_graph(40), 2, seed=3),
    "identity": CellularSheaf(
        np.arange(60).reshape(-1, 2), [np.eye(2)] * 30, [np.zeros((2, 2))] * 30
    ),
    # kernel of dimension 54
    "three edges": CellularSheaf.random([[0, 1], [5, 9], [7, 7]], [3] * 20, 2, seed=5),
    "kernel of 3": gallery.bundle(nx.gnm_random_graph(40, 100, seed=5), 3, seed=7),
    # 0 and 2 have multiplicity 30 each
    "disconnected": CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(2)] * 30)),
}


def turned(F, dtype, scale=1.0):
    """Return maps times a scale, and times phases of edge coordinates if the type is complex."""
    turn = np.exp(1j * np.arange(F.dim_c1)) if np.dtype(dtype).kind == "c" else np.ones(F.dim_c1)
    edge = np.repeat(np.arange(F.n_edges), F.edge_dims)
    turns = (np.repeat(turn, F.vertex_dims[F.edges[edge, end]]) for end in (0, 1))
    data = zip((F.tail_data, F.head_data), turns, strict=True)
    return F.with_maps(*((scale * values * phases).astype(dtype) for values, phases in data))


@pytest.mark.parametrize(
    ("name", "method", "local_operator", "dtype", "scale"),
    covering(SHEAVES, ["dense", "sparse"], OPERATORS, DTYPES, [0, 1, 2]),
)
def test_modes_of_large_clusters_match_the_dense_solver(
    name, method, local_operator, dtype, scale, monkeypatch
):
    """A small cluster is computed densely although another one is large."""
    called, solver = [], problems.lowest_sparse
    monkeypatch.setattr(problems, "lowest_sparse", lambda *args: called.append(1) or solver(*args))
    if method == "sparse":
        monkeypatch.setattr(problems, "SPARSE_ABOVE", 35)
        monkeypatch.setattr(problems, "SPARSE_SHARE", 4)
    F = turned(SHEAVES[name], dtype, SCALES[dtype(0).real.itemsize][scale])
    P = Partition((np.arange(F.n_vertices) >= F.n_vertices - 5).astype(int))
    local = [local_operator_of(F, P, a, local_operator) for a in range(2)]
    N = len(local[0][0])
    for rank in (0, 1, 4, 7) if method == "sparse" else (0, 1, 5, 23, N - 1, N + 10):
        M = modes_of(F, P, rank, local_operator)
        for a in range(2):
            assert_lowest_eigenpairs(M, a, local[a])
        assert rank > 0 or not M.tied.any()
    assert len(called) == (4 if method == "sparse" and name != "nothing" else 0)


def test_small_problems_use_one_thread(monkeypatch):
    started = []
    pool = threads.ThreadPoolExecutor
    monkeypatch.setattr(threads, "ThreadPoolExecutor", lambda n: started.append(n) or pool(n))
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    F = CellularSheaf.random(nx.path_graph(40), 2, 2, seed=3)
    modes_of(F, Partition(np.arange(40) // 4), 2)
    assert started == []


@pytest.mark.parametrize(
    ("graph", "dim", "counts"),
    [
        (nx.path_graph(20), 5, (3, 5, 7)),
        (nx.path_graph(10), 20, (3, 20, 22)),
        *((nx.grid_2d_graph(6, 7), dim, range(3, 8)) for dim in (2, 3, 4)),
    ],
)
def test_multiple_eigenvalues_are_found_with_full_multiplicity(graph, dim, counts):
    """The inverse of a perturbed zero is so large that it dominates all other values."""
    A = sc.laplacian(CellularSheaf.constant(graph, dim))
    n, expected = A.shape[0], np.linalg.eigvalsh(A.toarray())
    for count in counts:
        values, X = problems.lowest_sparse(A, count, eps_of(A.dtype))
        assert_residual(values - expected[:count], expected[-1], n=n)
        assert_residual(A @ X - X * values, expected[-1], n=n)
        assert_residual(X.T @ X - np.eye(count), n=n)


def test_residuals_above_rounding_level_raise():
    A = sc.laplacian(CellularSheaf.constant(nx.cycle_graph(60))) + scipy.sparse.eye_array(60)
    with pytest.raises(np.linalg.LinAlgError, match="residual"):
        problems.lowest_sparse(scipy.sparse.csr_array(A), 3, 1e-30)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@pytest.mark.parametrize(
    ("graph", "rank", "digits", "factor"),
    covering(
        [nx.path_graph(100), nx.grid_2d_graph(10, 10), nx.star_graph(99)],
        [1, 2, 3, 5],
        [0, 3],
        [1, 1 + 1j],
    ),
)
def test_sections_fit_every_edge_where_maps_differ_by_many_digits(
    graph, rank, digits, factor, monkeypatch
):
    monkeypatch.setattr(problems, "SPARSE_ABOVE", 35)
    monkeypatch.setattr(problems, "MAX_DENSE", 35)  # forbid the dense fallback
    bundle = sc.gallery.bundle(graph, 2, seed=4)
    roots = 10.0 ** np.random.default_rng(2).uniform(-4, 4, bundle.n_edges)
    scale = 10.0 ** np.random.default_rng(3).uniform(-digits, digits, 100)  # of vertices
    maps = (bundle.tail_data, bundle.head_data)
    F = bundle.with_maps(
        *(factor * np.repeat(roots * scale[bundle.edges[:, end]], 4) * maps[end] for end in (0, 1))
    )
    M = modes_of(F, one_cluster(F), rank, "internal")
    assert_lowest_eigenpairs(M, 0)
    sections = M.basis(0)[:, :2]
    misfit = (sc.coboundary(F) @ sections).reshape(-1, 2, sections.shape[1]) / roots[:, None, None]
    largest = np.abs(np.repeat(scale, 2)[:, None] * sections).max()
    assert_residual(misfit, 4 * largest, n=F.dim_c0)


def test_a_cluster_is_solved_densely_if_the_sparse_method_fails(monkeypatch):
    monkeypatch.setattr(problems, "SPARSE_ABOVE", 35)

    def fails(*args):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(problems, "lowest_sparse", fails)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.lowest_sparse", fails)
    F = CellularSheaf.constant(nx.path_graph(100))
    assert_lowest_eigenpairs(modes_of(F, one_cluster(F), 3, "internal"), 0)
    monkeypatch.setattr(problems, "MAX_DENSE", 35)
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
    """The matrix of 12,000 coordinates takes a gigabyte, and its modes take minutes."""
    assert problems.MAX_DENSE == 12_000
    monkeypatch.setattr(problems.LocalProblems, "run", None)
    monkeypatch.setattr(problems, "MAX_DENSE", 30)
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
        monkeypatch.setattr(problems, "SPARSE_ABOVE", 1)
        monkeypatch.setattr(problems, "SPARSE_SHARE", 1)
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
    monkeypatch.setattr(problems, "SPARSE_ABOVE", 35)
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
