"""The coarse sheaf: order of edges, compressed edge stalks, rows at rounding level."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen import CellularSheaf, Partition
from tests.support.helpers import assert_residual, assert_verified, eps_of
from tests.support.strategies import DTYPES, SCALES, bases, sheaves_with_partitions
from tests.theory.test_theorems import coarsenings
from tests.unit.distributed.cases import differences

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@given(coarsenings())
def test_crossing_edges_are_followed_by_sorted_loops(case):
    C, blocks = case
    crossing, loops = np.split(C.sheaf.edges, [C.n_crossing_edges])
    assert (crossing[:, 0] < crossing[:, 1]).all()
    assert (loops[:, 0] == loops[:, 1]).all()
    assert (np.diff(loops[:, 0]) > 0).all()  # at most one loop per cluster
    assert C.sheaf.vertex_dims.tolist() == [R_a.shape[1] for R_a in blocks]
    assert not C.crossing_rows.flags.writeable


@st.composite
def pairs(draw):
    """Draw a coarsening without and with compression; small ranks leave too many rows."""
    F, P = draw(sheaves_with_partitions())
    options = {"loops": draw(st.booleans())}
    kind = draw(st.sampled_from(["internal", "principal", "basis"]))
    if kind == "basis":
        options["basis"] = draw(bases(F, P))
    else:
        few = st.lists(st.integers(0, 2), min_size=P.n_clusters, max_size=P.n_clusters)
        options |= {"rank": draw(few), "local_operator": kind}
    return sc.coarsen(F, P, **options), sc.coarsen(F, P, **options, compress=True)


def difference_map(sheaf, e):
    """[A | -B] of an edge, in double precision."""
    rows = np.hstack([sheaf.tail_map(e), -sheaf.head_map(e)])
    return rows.astype(np.result_type(rows, np.float64))


def assert_compressed(C, D):
    """Assert that crossing edges of D are those of C compressed, and all else has the same bits."""
    a, b = C.sheaf.edges[: C.n_crossing_edges].T
    crossing = slice(0, C.n_crossing_edges)
    dims = np.minimum(C.sheaf.edge_dims[crossing], C.ranks[a] + C.ranks[b])
    np.testing.assert_array_equal(D.sheaf.edges, C.sheaf.edges)
    np.testing.assert_array_equal(D.sheaf.edge_dims[crossing], dims)
    np.testing.assert_array_equal(D.prolongation.data, C.prolongation.data)
    assert D.sheaf.dtype == C.sheaf.dtype
    n = np.maximum(C.clusters.dims, C.ranks)
    for e in range(C.sheaf.n_edges):
        X, T = difference_map(C.sheaf, e), difference_map(D.sheaf, e)
        if X.shape == T.shape:
            np.testing.assert_array_equal(T, X)
            continue
        assert not np.tril(T, -1).any()
        assert (T.diagonal().real >= 0).all()
        assert not T.diagonal().imag.any()
        error = T.conj().T @ T - X.conj().T @ X
        assert_residual(error, X, X, n=max(n[a[e]], n[b[e]]), eps=eps_of(C.sheaf.dtype))


@given(pairs())
def test_compressed_edges_keep_their_gram_matrices_with_at_most_r_a_plus_r_b_rows(case):
    C, D = case
    assert_compressed(C, D)
    assert D.crossing_rows is None
    assert D.loops is C.loops
    before, after = sc.verify(C), assert_verified(D)
    skipped = [[check.skipped_because is None for check in V.checks] for V in (before, after)]
    assert skipped[0] == skipped[1]  # the same statements apply
    one_each = Partition(np.arange(len(D.ranks)))
    eyes = [np.eye(r) for r in D.ranks.tolist()]
    again = sc.coarsen(D.sheaf, one_each, basis=eyes, compress=True)
    for e in range(D.n_crossing_edges):  # compressing again changes nothing
        np.testing.assert_array_equal(again.sheaf.tail_map(e), D.sheaf.tail_map(e))
        np.testing.assert_array_equal(again.sheaf.head_map(e), D.sheaf.head_map(e))


@pytest.mark.parametrize(
    ("dtype", "scale", "chunk"), list(zip(DTYPES, [0, 1, 2, 0], [1, 128, 1, 128], strict=True))
)
def test_edges_compressed_in_many_chunks_keep_their_gram_matrices(dtype, scale, chunk, monkeypatch):
    """A tall edge is compressed in many chunks; its columns differ by many decades."""
    monkeypatch.setattr("sheafcoarsen.coarsening.realization.CHUNK", chunk)
    F = CellularSheaf.random(nx.gnm_random_graph(30, 250, seed=3), 3, 2, seed=5, dtype=dtype)
    real = F.tail_data.real.dtype.type
    size = real(SCALES[real(0).itemsize][scale])
    F = F.with_maps(size * F.tail_data, size * F.head_data)
    P, rng = Partition(np.arange(30) // 10), np.random.default_rng(7)
    blocks = [rng.standard_normal((30, r)) * 10.0 ** rng.integers(-3, 1, r) for r in (7, 1, 3)]
    basis = [block.astype(dtype) for block in blocks]
    C, D = (sc.coarsen(F, P, basis=basis, compress=compress) for compress in (False, True))
    assert D.sheaf.edge_dims[:3].tolist() == [8, 10, 4]
    assert C.sheaf.edge_dims[:3].min() > 20
    assert_compressed(C, D)
    assert_verified(D)


def test_an_edge_stalk_may_be_larger_than_a_chunk():
    """Else the rows do not fit into the workspace, and compiled code writes past its end."""
    F = CellularSheaf.random([[0, 1], [1, 0], [0, 1]], 2, [400, 1, 300], seed=3)
    C, D = (sc.coarsen(F, Partition([0, 1]), 2, compress=compress) for compress in (False, True))
    assert D.sheaf.edge_dims.tolist() == [4]
    assert_compressed(C, D)


def test_columns_whose_squares_underflow_keep_their_accuracy():
    """Columns are scaled before norms are computed, so 1e-200 is accurate next to 1."""
    F, P = CellularSheaf.random([[0, 1]] * 5, 1, 1, seed=3), Partition([0, 1])
    D, C = (
        sc.coarsen(F, P, basis=[[[size]], [[1.0]]], compress=True).sheaf for size in (1e-200, 1.0)
    )
    np.testing.assert_allclose(D.tail_map(0) * 1e200, C.tail_map(0), rtol=1e-14)
    np.testing.assert_allclose(D.head_map(0), C.head_map(0), rtol=1e-14)
    assert np.abs(C.tail_map(0)).max() > 0.1


def test_compression_of_two_parallel_edges_matches_hand_computation():
    """For the scalar maps (3, 0) and (4, 5), [3 0; 4 -5] = Q [5 -4; 0 3]."""
    F = CellularSheaf([[0, 1]] * 3, [[[3.0]], [[4.0]], [[0.0]]], [[[0.0]], [[5.0]], [[0.0]]])
    D = sc.coarsen(F, Partition([0, 1]), 1, compress=True)
    assert D.sheaf.edge_dims.tolist() == [2]
    whole = np.array([[3, 0], [4, 5], [0, 0]])
    assert_residual(D.sheaf.tail_map(0) - [[5], [0]], whole, n=3)
    assert_residual(D.sheaf.head_map(0) - [[4], [-3]], whole, n=3)
    assert "3 -> 1 edges (compressed) + 0 loops" in repr(D)


def hidden_section(seed, t, dtype, scale=1.0, reverse=False):
    """Return a sheaf with h0 = 2 whose crossing maps vanish on sections of the clusters.

    The section of the first cluster is orthogonal to the tail map of three parallel crossing edges,
    their head map is 0. Edges may be reversed.
    """
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    Z = rng.standard_normal((3, 3))
    Z = Z + 1j * rng.standard_normal((3, 3)) if dtype.kind == "c" else Z
    Q = np.linalg.qr(Z)[0].conj().T
    tail = [np.array([[1, 0, 0], [1, t, 0], [0, 0, 1]]) @ Q, *[Q[2:]] * 3]
    head = [np.array([[1.0], [1.0], [0.0]]), *[np.zeros((1, 1))] * 3]
    maps = [[(M * scale).astype(dtype) for M in end] for end in (tail, head)]
    edges = np.array([[0, 1], *[[0, 2]] * 3])
    if reverse:
        edges, maps = edges[:, ::-1], maps[::-1]
    return CellularSheaf(edges, *maps, vertex_dims=[3, 1, 1])


def coarse_h0(C):
    assert C.sheaf.n_edges == 1
    assert not C.sheaf.tail_data.any()
    assert not C.sheaf.head_data.any()
    assert_verified(C)
    return sc.global_sections(C.sheaf).h0


@pytest.mark.parametrize(
    ("dtype", "scale", "compress"),
    [
        (np.float64, 1.0, False),
        (np.float64, 1e100, True),
        (np.complex128, 1e-100, False),
        (np.float32, 1e12, True),
        (np.complex64, 1.0, True),
        (np.complex64, 1e-12, False),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("labels", [[0, 0, 1], [1, 1, 0]])
def test_sections_are_preserved_if_a_crossing_map_is_at_rounding_level(
    dtype, scale, compress, reverse, labels
):
    least = 1e-7 if np.zeros(0, dtype).real.itemsize == 8 else 1e-4
    for seed, t in enumerate((1.0, 1e-2, least)):
        F = hidden_section(seed, t, dtype, scale, reverse)
        C = sc.coarsen(F, Partition(labels), sc.ranks.kernel(), compress=compress)
        assert sc.global_sections(F).h0 == coarse_h0(C) == 2
        assert coarse_h0(C.recoarsen(hidden_section(77, 2 * t, dtype, scale, reverse))) == 2
        for size in (1e-30, 1e30) if dtype == np.float64 and scale == 1.0 else ():
            basis = [(size if a == labels[0] else 1.0) * C.block(a) for a in (0, 1)]
            assert coarse_h0(sc.coarsen(F, C.partition, basis=basis)) == 2


def test_coarse_rows_are_judged_relative_to_their_own_fine_row():
    """Edges and rows of weight 1e-40 keep their maps if others have weight 1."""
    F = CellularSheaf.constant([[0, 1], [2, 3], [1, 2]], weight=[1.0, 1.0, 1e-40])
    C = sc.coarsen(F, Partition([0, 0, 1, 1]), 1)
    for data in (C.sheaf.tail_data, C.sheaf.head_data):
        np.testing.assert_allclose(data, [1e-20 / np.sqrt(2)], rtol=1e-14)
    rows = [[1.0, 0.0], [0.0, 1e-20]]
    C = sc.coarsen(CellularSheaf([[0, 1]], [rows], [rows]), Partition([0, 1]), 2)
    np.testing.assert_array_equal(C.sheaf.tail_map(0), rows)


@pytest.mark.parametrize(
    ("dtype", "compress"), list(zip(DTYPES, [False, False, True, True], strict=True))
)
def test_rounding_level_is_n_eps_times_the_shortest_column(dtype, compress):
    """The cluster has dimension n = 3, and its columns have entries 1 and 1e-20."""
    eps, one = float(np.finfo(dtype).eps), np.eye(3, dtype=dtype)
    F = CellularSheaf([[0, 1]] * 4, [one[2:]] * 4, [one[:1, :1]] * 4)
    for factor, zero in ((2.5, True), (3.5, False)):
        for columns in (np.eye(3)[:, :1], np.eye(3)[:, :2] * [1.0, 1e-20]):
            block = columns.copy()
            block[2, -1] = factor * eps * columns.max(axis=0).min()
            basis = [block.astype(dtype), np.eye(1)]
            C = sc.coarsen(F, Partition([0, 1]), basis=basis, compress=compress)
            assert C.sheaf.tail_data.any() != zero
            assert C.sheaf.head_data.any()
            assert_verified(C)


def test_rounding_level_is_relative_to_the_norm_of_the_fine_row():
    """For a row of 16 ones, 16 eps times its norm is 64 eps, but 16 eps times an entry."""
    eps = np.finfo(float).eps
    F = CellularSheaf([[0, 1]] * 2, [np.ones((1, 16))] * 2, [np.eye(1)] * 2)
    for factor, zero in ((32, True), (80, False)):
        column = np.zeros((16, 1))
        column[:2, 0] = 1, factor * eps - 1
        C = sc.coarsen(F, Partition([0, 1]), basis=[column, np.eye(1)])
        assert C.sheaf.tail_data.any() != zero


@pytest.mark.parametrize("local_operator", ["internal", "principal"])
def test_distributed_coarsening_finds_the_same_zeros(local_operator, tmp_path):
    """In a cycle of such sheaves, one end of every crossing edge is at rounding level."""
    n = 12
    parts = [hidden_section(k, 0.1, float) for k in range(n)]
    tail = [M for F in parts for M in (F.tail_map(0), F.tail_map(1))]
    head = [M for F in parts for M in (F.head_map(0), np.ones((1, 1)))]
    edges = [e for k in range(n) for e in ([2 * k, 2 * k + 1], [2 * k, (2 * k + 3) % (2 * n)])]
    F = CellularSheaf(edges, tail, head, vertex_dims=[3, 1] * n)
    cycle = Partition(np.arange(2 * n) // 2)
    options = {"local_operator": local_operator, "compress": False}
    rank = sc.ranks.kernel() if local_operator == "internal" else 3
    C = sc.coarsen(F, cycle, rank, **options)
    if local_operator == "internal":
        assert (C.sheaf.tail_data == 0).sum() + (C.sheaf.head_data == 0).sum() == n
    src = dist.to_store(tmp_path / "src", F, part_bytes=200)
    D = dist.coarsen(src, tmp_path / "out", cycle, rank, n_shards=4, **options)
    assert differences(C, D.load()) == []


def sections_of(C):
    """Return dim H^0 of the coarse sheaf in three ways, the last by all singular values."""
    delta = sc.coboundary(C.sheaf).toarray().astype(np.result_type(C.sheaf.dtype, float))
    sigma = np.linalg.svd(delta, compute_uv=False)
    zeros = C.sheaf.dim_c0 - int((sigma > 1e-4 * sigma[0]).sum())
    return sc.global_sections(C.sheaf).h0, sc.spectral_quality(C, 1).kernel_coarse, zeros


@pytest.mark.parametrize("weight", [1e4, 1e6])
@pytest.mark.parametrize("rank", [1, 3])
def test_sections_of_clusters_with_one_strong_edge_are_found(weight, rank):
    weights = np.where(np.isin(np.arange(39), [13, 30]), weight, 1.0)
    F = CellularSheaf.constant(nx.path_graph(40), weight=weights)
    assert sections_of(sc.coarsen(F, Partition(np.arange(40) // 10), rank)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("rank", "dtype"), [(4, np.float32), (6, float), (sc.ranks.below(0.1), complex)], ids=str
)
def test_sections_within_clusters_are_found_for_any_rank(rank, dtype):
    for seed in range(8, 20):
        graph = nx.gnm_random_graph(30, 60, seed=seed)
        F = CellularSheaf.random(graph, 3, 2, seed=seed, dtype=dtype)
        C = sc.coarsen(F, sc.select(F, 5), rank)
        h0, kernel, dense = sections_of(C)
        assert h0 == kernel == dense, seed


@pytest.mark.parametrize(
    ("rank", "seeds"), [(2, (10, 34, 56)), (sc.ranks.kernel(), (13, 92))], ids=str
)
def test_a_section_within_one_cluster_is_kept(rank, seeds):
    """It vanishes at the ends of crossing edges; so must its column of the coarse coboundary."""
    n, d, labels = 12, 3, np.arange(12) // 4
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, d)) * (labels == 0)[:, None]
        edges, maps = [], []
        for u, v in itertools.combinations(range(n), 2):
            if rng.random() < (0.8 if labels[u] == labels[v] else 0.25):
                A, B = rng.standard_normal((2, 3, d))
                missed, size = A @ x[u] - B @ x[v], x[u] @ x[u] + x[v] @ x[v]
                share = np.divide(missed, size, where=size > 0, out=np.zeros(3))
                edges.append((u, v))
                maps.append((A - np.outer(share, x[u]), B + np.outer(share, x[v])))
        F = CellularSheaf(edges, *zip(*maps, strict=True), np.full(n, d))
        C = sc.coarsen(F, Partition(labels), rank)
        assert sc.global_sections(C.sheaf).h0 == sc.global_sections(F).h0 > 0, seed


def test_small_entries_of_modes_in_single_precision_are_kept():
    """The section is 1e-5 at a vertex; the maps of its edges are 1e5 times as large there."""
    x, edges = np.ones(80), np.stack([np.arange(80), (np.arange(80) + 1) % 80], axis=1)
    x[0] = 1e-5
    maps = (1 / x[edges] * x[edges].min(axis=1, keepdims=True)).astype(np.float32)
    F = CellularSheaf(edges, *maps.T.reshape(2, 80, 1, 1))
    C = sc.coarsen(F, Partition(np.arange(80) // 40), sc.ranks.kernel())
    assert sc.global_sections(C.sheaf).h0 == sc.global_sections(F).h0 == 1


@pytest.mark.parametrize("operator", ["internal", "oversampled"])
@pytest.mark.parametrize("compress", [False, True])
def test_rows_at_vertices_where_modes_are_small_are_kept(operator, compress):
    """The section halves along 21 edges, and the last crossing edge enlarges it again."""
    edges = [*([k, k + 1] for k in range(22)), [0, 22]]
    tail = np.array([0.5] * 21 + [2.0**21, 1.0], np.float32)[:, None, None]
    F, P = CellularSheaf(edges, tail, np.ones_like(tail)), Partition([0] * 22 + [1])
    C = sc.coarsen(F, P, sc.ranks.kernel(), local_operator=operator, compress=compress)
    assert sc.global_sections(C.sheaf).h0 == sc.global_sections(F).h0 == 1
    R, delta = C.prolongation.toarray(), sc.coboundary(F).toarray()[21:]
    error = sc.laplacian(C.sheaf).toarray() - C.galerkin().toarray()
    assert_residual(error, delta @ R, delta @ R, n=22)


def test_loops_of_large_clusters_in_single_precision_are_kept():
    """The third eigenvalue of half the path is 4e-7 = (2 pi / 10^4)^2."""
    n = 20_000
    weight = np.ones(n - 1, np.float32)
    F = CellularSheaf.constant(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), weight=weight)
    with pytest.warns(sc.TiedModesWarning):
        C = sc.coarsen(F, Partition(np.arange(n) // (n // 2)), 3)
    values = np.linalg.eigvalsh(sc.laplacian(C.sheaf).toarray().astype(float))
    # by interlacing not below the path's, and below the first that each half discards
    assert 2 - 2 * np.cos(np.pi / n) < values[1] < 2 - 2 * np.cos(6 * np.pi / n)
    assert sc.global_sections(C.sheaf).h0 == 1
