"""The coarse sheaf: order of edges, compressed edge stalks, loops, rows at rounding level."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.helpers import assert_residual, assert_verified, eps_of, residual
from tests.support.strategies import DTYPES, SCALES, bases, mode_counts, sheaves_with_partitions
from tests.theory.test_theorems import coarsenings
from tests.unit.distributed.cases import differences

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


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
    blocks = ([[[size]], [[1.0]]] for size in (1e-200, 1.0))
    D, C = (sc.coarsen(F, P, basis=basis, compress=True).sheaf for basis in blocks)
    np.testing.assert_allclose(D.tail_map(0) * 1e200, C.tail_map(0), rtol=1e-14)
    np.testing.assert_allclose(D.head_map(0), C.head_map(0), rtol=1e-14)
    assert np.abs(C.tail_map(0)).max() > 0.1


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


# ---------------------------------------------------------------- loops
@given(coarsenings())
def test_loops_hold_half_a_factor_of_the_retained_energy_at_either_end(case):
    C, bases_ = case
    F, P = C.fine, C.partition
    loops = {int(C.sheaf.edges[e, 0]): e for e in range(C.n_crossing_edges, C.sheaf.n_edges)}
    for a, R_a in enumerate(bases_):
        B = np.zeros((0, R_a.shape[1]), C.sheaf.dtype)
        if a in loops:
            tail, head = C.sheaf.tail_map(loops[a]), C.sheaf.head_map(loops[a])
            assert len(tail) > 0
            np.testing.assert_array_equal(tail, -head)  # B / 2 and -B / 2, to the last bit
            B = tail - head
        error = B.conj().T @ B - reference.retained_internal_operator(F, P, bases_, a)
        factors = [*[reference.internal_coboundary(F, P, a)] * 2, R_a, R_a]
        assert_residual(error, *factors, n=max(R_a.shape), eps=eps_of(C.sheaf.dtype))


@given(sheaves_with_partitions(), st.data())
def test_loops_of_internal_modes_are_diagonal_without_rows_of_zero_energy(case, data):
    F, P = case
    M = sc.local_modes(F, P, data.draw(mode_counts(P)))
    C = sc.coarsen(F, P, M)
    e = C.n_crossing_edges
    for a in range(P.n_clusters):
        values, N = M.eigenvalues(a), len(M.basis(a))
        level = 4 * N * eps_of(F.dtype) * float(M.operator_norms[a])
        kept = np.flatnonzero(values.astype(float) > level)
        if kept.size == 0:
            continue
        assert C.sheaf.edges[e].tolist() == [a, a]
        half = np.zeros((kept.size, values.size), F.dtype)
        half[np.arange(kept.size), kept] = np.sqrt(values[kept]) / 2
        np.testing.assert_array_equal(C.sheaf.tail_map(e), half)
        e += 1
    assert e == C.sheaf.n_edges


@given(sheaves_with_partitions(), st.data())
def test_loops_have_no_row_of_zero_energy(case, data):
    F, P = case
    basis = data.draw(bases(F, P))
    C = sc.coarsen(F, P, basis=basis)
    for e in range(C.n_crossing_edges, C.sheaf.n_edges):
        a = int(C.sheaf.edges[e, 0])
        delta_a = reference.internal_coboundary(F, P, a)
        B = C.sheaf.tail_map(e) - C.sheaf.head_map(e)
        assert len(B) <= min(basis[a].shape)
        for row in B:  # the square of each row exceeds the rounding errors of H_a
            square = np.abs(row).astype(float).max() ** 2
            assert residual(row, n=1) > 0
            assert residual(square, delta_a, delta_a, basis[a], basis[a], n=1) > 1e-3


@pytest.mark.parametrize(
    ("n", "scale", "column"), [(2, 1.0, 2.0**20), (128, 1e-100, 1.0), (2, 1e100, 2.0**-20)]
)
def test_zero_energy_is_relative_to_the_trace_at_a_vertex_and_the_columns(n, scale, column):
    """A half-edge gives energy to the constant, which a thousand parallel edges preserve.

    The energy counts as zero up to 4 n eps times the trace at a vertex, which is about 1000.
    """
    m = 1000
    zero = 4 * n * eps_of(np.float64) * m
    for energy, rows in ((0.1 * zero, 0), (10 * zero, 1)):
        ends = np.array([[0, 1]] * (m + 1))
        tail, head = np.full((m + 1, 1, 1), scale), np.full((m + 1, 1, 1), scale)
        tail[m], head[m] = scale * np.sqrt(n * energy), 0.0
        F = CellularSheaf(ends, tail, head, vertex_dims=[1] * n)
        C = sc.coarsen(F, Partition([0] * n), basis=[np.full((n, 1), column / np.sqrt(n))])
        assert C.sheaf.edge_dims.sum() == rows, (energy, rows)


@pytest.mark.parametrize(
    ("dtype", "scale"), list(zip(DTYPES, [1e-12, 1e12, 1.0, 1e-12], strict=True))
)
def test_dependent_columns_give_a_single_loop_row(dtype, scale):
    """All columns are multiples of the vector of maximum energy, so H_a is maximal."""
    rng, n = np.random.default_rng(0), 16
    F = CellularSheaf.constant(nx.complete_bipartite_graph(n, n))
    F = F.with_maps((scale * F.tail_data).astype(dtype), (scale * F.head_data).astype(dtype))
    factors = rng.uniform(0.5, 1.0, 2 * n) * np.exp(1j * rng.uniform(0, np.pi, 2 * n))
    factors = factors if np.dtype(dtype).kind == "c" else factors.real
    block = np.outer(np.repeat([1, -1], n), factors).astype(dtype)
    assert sc.coarsen(F, Partition([0] * 2 * n), basis=[block]).sheaf.edge_dims.tolist() == [1]


def test_loops_are_not_judged_relative_to_crossing_edges():
    """Squares of the maps 1e-70 would underflow relative to the map 1e100 of a crossing edge."""
    tail = np.reshape([1e-70, 1e-70, 1e100, 1e-70], (4, 1, 1))
    F = CellularSheaf(np.array(nx.path_graph(5).edges), tail, 2 * tail)
    C = sc.coarsen(F, Partition([0, 0, 0, 1, 1]), 2, local_operator="principal")
    H, delta = C.internal_operator(0), 1e-70 * np.array([[1, -2, 0], [0, 1, -2]])
    assert np.linalg.matrix_rank(H) == 2
    assert_residual(sc.laplacian(C.sheaf).toarray()[:2, :2] - H, delta, delta, n=3)


@pytest.mark.parametrize("operator", ["internal", "principal", "oversampled", "basis"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_loops_of_maps_in_single_precision_keep_low_modes(dtype, operator):
    """The lowest have 6e-5 of the norm of L_a, less than 4 n eps, but more than its square."""
    F, P = CellularSheaf.constant(nx.path_graph(400)), Partition(np.arange(400) // 200)
    types = np.result_type(dtype, np.float64), dtype
    double, single = (F.with_maps(F.tail_data.astype(t), F.head_data.astype(t)) for t in types)
    options = {"rank": 3, "local_operator": operator}
    if operator == "basis":
        M = sc.local_modes(double, P, 3)
        options = {"basis": [M.basis(a) for a in range(2)]}
    exact, C = (sc.coarsen(each, P, **options) for each in (double, single))
    assert (C.sheaf.dtype, C.sheaf.dim_c1) == (dtype, exact.sheaf.dim_c1)
    L, wanted = (sc.laplacian(each.sheaf).toarray() for each in (C, exact))
    values, low = np.linalg.eigvalsh(L.astype(wanted.dtype)), np.linalg.eigvalsh(wanted)
    np.testing.assert_allclose(values[1:3], low[1:3], rtol=1e-4)
