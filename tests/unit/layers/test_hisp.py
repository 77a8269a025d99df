import dataclasses
import re
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, HiSP, Partition
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, normal, size, subspace_difference
from tests.support.strategies import DTYPES, graphs, sheaves, sheaves_with_partitions

OPERATORS = st.sampled_from(["internal", "principal"])
pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def features(F, h, seed):
    return normal(np.random.default_rng(seed), (F.dim_c0, h), F.dtype)


def blocks(out):
    return [out.coarsening.block(a) for a in range(out.partition.n_clusters)]


@given(
    sheaves_with_partitions(), OPERATORS, st.integers(1, 8), st.integers(0, 3), st.integers(0, 99)
)
def test_reduce_and_lift_match_their_definitions(case, local_operator, M, h, seed):
    F, P = case
    x = features(F, h, seed)
    out = HiSP(M, 1, local_operator=local_operator)(F, x, partition=P)
    C = sc.coarsen(F, P, M, local_operator=local_operator)
    assert out.partition is P
    assert out.coarsening.modes.local_operator == local_operator
    np.testing.assert_array_equal(out.coarsening.prolongation.toarray(), C.prolongation.toarray())
    np.testing.assert_array_equal(out.coarsening.sheaf.tail_data, C.sheaf.tail_data)
    assert out.x.shape == (P.n_clusters, M * h)
    assert out.x_lifted.shape == (out.coarsening.ranks.sum(), h)
    assert out.x.dtype == out.x_lifted.dtype == F.dtype
    n = max(F.dim_c0, 1)
    assert_residual(out.x - reference.pooled(F, P, blocks(out), M, x), x, n=n, eps=eps_of(F.dtype))
    R = reference.prolongation(F, P, blocks(out))
    assert_residual(out.x_lifted - R.conj().T @ x, x, n=n, eps=eps_of(F.dtype))
    for y in (out.lift(out.x), out.lift(out.x_lifted)):
        assert (y.shape, y.dtype) == (x.shape, F.dtype)
        assert_residual(y - R @ (R.conj().T @ x), x, n=n, eps=eps_of(F.dtype))


@given(
    sheaves(uniform=True, dims=(1, 6)), OPERATORS, st.integers(1, 8), st.integers(0, 3), st.data()
)
def test_lifted_and_node_major_features_give_the_same_result(F, local_operator, M, h, data):
    kinds = 3 if F.n_vertices > 2 else 1
    P = Partition(data.draw(st.permutations([v % kinds for v in range(F.n_vertices)])))
    d = int(F.vertex_dims[0]) if F.n_vertices else 1
    X = features(F, h, 5).reshape(F.n_vertices, d * h)
    x = reference.lifted(F, X, h)
    pool = HiSP(M, 1, local_operator=local_operator)
    wide, tall = pool(F, X, partition=P), pool(F, x, partition=P)
    np.testing.assert_array_equal(wide.x, tall.x)
    np.testing.assert_array_equal(wide.x_lifted, tall.x_lifted)
    Y, y = wide.lift(wide.x), tall.lift(tall.x_lifted)
    assert (Y.shape, tall.lift(tall.x).shape) == (X.shape, x.shape)
    np.testing.assert_array_equal(reference.lifted(F, Y, h), y)


def test_x_and_x_lifted_share_memory_and_are_read_only():
    F = CellularSheaf.random(nx.path_graph(6), 2, 2, seed=1)
    out = HiSP(3, 1)(F, np.ones((6, 4)), partition=Partition([0, 0, 0, 1, 1, 1]))
    assert np.shares_memory(out.x, out.x_lifted)
    padded = HiSP(3, 1)(F, np.ones((6, 4)), partition=Partition([0, 0, 0, 1, 1, 2]))
    for result in (out, padded):
        for array in (result.x, result.x_lifted, result.adjacency.data):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.n_modes = 2
    assert dataclasses.replace(padded, node_major=False).lift(padded.x).shape == (12, 2)
    assert repr(padded) == "Pooling(6 -> 3 vertices, 3 modes, 2 channels, dim C^0 12 -> 8)"


def test_padding_is_zero_and_ignored():
    F = CellularSheaf.random(nx.path_graph(4), [1, 2, 1, 3], 2, seed=1)
    P = Partition([0, 0, 1, 2])  # N_a = 3, 1, 3
    x = features(F, 2, 0)
    out = HiSP(5, 1)(F, x, partition=P)
    assert out.coarsening.ranks.tolist() == [3, 1, 3]
    padding = np.repeat(np.arange(5) >= np.array([[3], [1], [3]]), 2, axis=1)
    np.testing.assert_array_equal(out.x == 0, padding)
    filled = np.where(padding, 7.0, out.x)
    np.testing.assert_array_equal(out.lift(filled), out.lift(out.x))
    assert_residual(out.lift(out.x) - x, x, n=7)  # all modes are retained
    assert not np.shares_memory(out.x_lifted, x)
    # Lift is the adjoint of Reduce: <R z, y> = <z, R* y> with the padded forms on the coarse side,
    # for any number of channels
    y, z = features(F, 3, 1), np.random.default_rng(2).standard_normal((3, 15))
    reduced = HiSP(5, 1)(F, y, partition=P).x
    assert_residual(np.vdot(out.lift(z), y) - np.vdot(z, reduced), y, z, n=10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_common_scalar_type(dtype):
    F = CellularSheaf.random(nx.path_graph(6), 2, 2, seed=1, dtype=dtype)
    wide = np.result_type(dtype, np.float64)
    out = HiSP(2, 2)(F, features(F, 3, 0).astype(wide), adjacency=np.ones((6, 6), np.float32))
    assert out.coarsening.sheaf.dtype == dtype
    assert out.x.dtype == out.x_lifted.dtype == out.lift(out.x).dtype == wide
    assert out.adjacency.dtype == np.float32


@given(graphs(min_vertices=1), st.integers(1, 4), st.data())
def test_on_the_trivial_scalar_sheaf_internal_modes_give_eigenpool(graph, H, data):
    n, edges = graph
    m = len(edges)
    weights = data.draw(st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=m, max_size=m))
    A = np.zeros((n, n))
    for (u, v), w in zip(edges.tolist(), weights, strict=True):
        A[u, v] += w
        A[v, u] += w * (u != v)
    F = CellularSheaf.constant(scipy.sparse.csr_array(A))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    P = Partition(np.unique(labels, return_inverse=True)[1])
    X = np.random.default_rng(n).standard_normal((n, 2))
    out = HiSP(H, 1, local_operator="internal")(F, X, A, P)
    modes = out.coarsening.modes
    for a in range(P.n_clusters):
        vertices = P.cluster(a).tolist()
        U = reference.local_fourier_basis(A, vertices, H)
        assert out.coarsening.ranks[a] == U.shape[1]
        if modes.tied[a]:
            continue  # the definition does not determine the modes
        # eigenvectors of a multiplet and their signs are not unique, but their span and the pooled
        # energy are
        gap = modes.next_eigenvalues[a] - modes.eigenvalues(a)[-1]
        condition = 1 + (0 if np.isinf(gap) else modes.operator_norms[a] / gap)
        assert_residual(subspace_difference(out.coarsening.block(a), U), condition, n=len(vertices))
        row, theirs, x = out.x[a].reshape(H, 2)[: U.shape[1]], U.T @ X[vertices], X[vertices]
        assert_residual(row.T @ row - theirs.T @ theirs, x, x, condition, n=len(vertices))


@given(
    sheaves_with_partitions(), st.sampled_from(["keep", "remove"]), st.integers(0, 99), st.data()
)
def test_connect_sums_weights_or_counts_edges(case, self_loops, seed, data):
    """The edges of the sheaf, or the ones of a boolean matrix, are counted."""
    F, P = case
    rng = np.random.default_rng(seed)
    n = F.n_vertices
    A = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.6))
    A = A + np.triu(A, 1).T
    formats = [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix]
    form = data.draw(st.sampled_from([*formats, np.ndarray.tolist] if n else formats))
    layer = HiSP(1, 1, self_loops=self_loops)
    swapped = A.astype(A.dtype.newbyteorder())
    cases = (None, reference.adjacency(F)), (form(A), A), (A > 0, A > 0), (swapped, A)
    for given_, weights in cases:
        A_c = layer(F, np.ones((F.dim_c0, 1)), given_, P).adjacency
        expected = reference.connect(weights, P)
        if self_loops == "remove":
            np.fill_diagonal(expected, 0)
        assert isinstance(A_c, scipy.sparse.csr_array)
        assert A_c.has_canonical_format
        assert A_c.dtype == float
        np.testing.assert_array_equal(A_c.toarray(), A_c.toarray().T)
        assert_residual(A_c.toarray() - expected, A, n=max(n, 1))
        if weights is not A:
            np.testing.assert_array_equal(A_c.toarray(), expected)
            assert A_c.nnz == np.count_nonzero(expected)


def test_select_uses_the_graph_of_the_sheaf_or_the_adjacency_matrix():
    """Weights divide a cycle of 8 into other halves than its numbering."""
    G = nx.cycle_graph(8)
    F = CellularSheaf.random(G, 2, 2, seed=1)
    A = nx.to_numpy_array(G) * 1e-3
    A[:4, :4] *= 1e3
    A[4:, 4:] *= 1e3
    turned = np.roll(A, (2, 2), axis=(0, 1))
    for weights, first in ((A, 0), (turned, 2)):
        labels = HiSP(2, 2, "spectral")(F, np.ones((8, 2)), weights).partition.labels
        assert len(set(labels[(np.arange(4) + first) % 8])) == 1
        assert len(set(labels[(np.arange(4) + first + 4) % 8])) == 1
    for method in ("auto", "balls", "matching", "spectral", "metis"):
        for seed in (0, 4):
            labels = HiSP(2, 2, method, seed=seed)(F, np.ones((8, 2))).partition.labels
            np.testing.assert_array_equal(labels, sc.select(F.edges, 2, method, seed=seed).labels)


def test_spectral_select_depends_on_the_graph_alone():
    """The lowest modes of a signed ladder are those of its two signs, not of its graph."""
    ladder = nx.convert_node_labels_to_integers(nx.ladder_graph(4))
    sides = np.arange(8) // 4
    edges = np.array(ladder.edges)
    F = CellularSheaf.signed(edges, sign=np.where(sides[edges[:, 0]] == sides[edges[:, 1]], 1, -1))
    G = CellularSheaf.signed(edges, sign=np.ones(len(edges)))
    by_modes, by_graph = (sc.select(H, 2, "spectral").labels for H in (F, G))
    assert not np.array_equal(by_modes, by_graph)
    for H in (F, G):
        labels = HiSP(1, 2, "spectral")(H, np.ones((8, 1))).partition.labels
        np.testing.assert_array_equal(labels, by_graph)


def test_pooling_to_one_cluster_and_to_one_cluster_per_vertex_and_of_empty_stalks():
    F = CellularSheaf.random(nx.cycle_graph(5), 2, 2, seed=1)
    x = features(F, 3, 0)
    one = HiSP(10, 1)(F, x)
    assert one.x.shape == (1, 30)
    assert_residual(size(one.x) - size(x), x, n=10)
    assert (one.adjacency.shape, one.adjacency.nnz) == ((1, 1), 0)
    every = HiSP(2, 5)(F, x)
    assert_residual(every.lift(every.x) - x, x, n=2)
    np.testing.assert_array_equal(every.adjacency.toarray(), nx.to_numpy_array(nx.cycle_graph(5)))
    # features are padded if N_a = 1 < M
    K_is_dim = HiSP(2, 5)(CellularSheaf.constant(nx.cycle_graph(5)), np.ones((5, 1)))
    assert K_is_dim.x.tolist() == [[1, 0]] * 5
    for x in (K_is_dim.x, K_is_dim.x_lifted):
        assert K_is_dim.lift(x).tolist() == [[1]] * 5
    both = "its shape (5, 4) can be (K, M g) or (sum r_a, g), because both have 5"
    with pytest.raises(ValueError, match=re.escape(both)):
        K_is_dim.lift(np.ones((5, 4)))
    points = CellularSheaf.from_flat([], [], [], [0, 0], [])
    for X in (np.zeros((2, 0)), np.zeros((0, 0)), np.zeros((0, 3))):
        out = HiSP(2, 1)(points, X)
        assert out.x.tolist() == [[0] * 2 * X.shape[1]]
        assert out.lift(out.x).shape == X.shape


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        *((how, dtype) for how in ("mean", "sum") for dtype in DTYPES),
        *(("max", dtype) for dtype in (np.float32, np.float64)),
    ],
)
def test_readout_matches_numpy_for_one_graph_and_for_a_batch(how, dtype):
    x = features(CellularSheaf.random(nx.path_graph(9), 1, 1, seed=0, dtype=dtype), 4, 0)
    batch = np.array([2, 0, 1, 1, 2, 0, 2, 1, 2])
    whole, rows = sc.readout(x, how), sc.readout(x, how, batch=batch.tolist())
    assert whole.dtype == rows.dtype == dtype
    assert whole.shape == (4,)
    assert_residual(whole - getattr(np, how)(x, axis=0), x, n=9)
    np.testing.assert_array_equal(rows, [sc.readout(x[batch == g], how) for g in range(3)])
    if how == "sum":
        with_a_gap = sc.readout(x, how, 2 * batch)
        np.testing.assert_array_equal(with_a_gap[::2], rows)
        assert with_a_gap.shape == (5, 4)
        assert not with_a_gap[1::2].any()
        assert sc.readout(x[:0], how).tolist() == [0] * 4
    if how == "mean":
        np.testing.assert_array_equal(sc.readout(x), whole)
        huge = np.full((3, 1), 2e38, np.float32)  # the sum overflows in single precision
        assert sc.readout(huge, "mean") == np.float32(2e38)


@given(sheaves_with_partitions(), OPERATORS, st.integers(1, 4), st.integers(0, 99))
def test_refresh_pools_like_a_new_call(case, local_operator, M, seed):
    F, P = case
    layer = HiSP(M, max(P.n_clusters, 1), local_operator=local_operator)
    out = layer(F, features(F, 2, seed), partition=P)
    G = F.with_maps(F.tail_data[::-1].copy(), 3 * F.head_data)
    X = features(F, 3, seed + 1)
    again, new = out.refresh(G, X), layer(G, X, partition=P)
    assert again.coarsening.fine is G
    assert again.adjacency is out.adjacency
    assert again.node_major is new.node_major
    np.testing.assert_array_equal(again.coarsening.prolongation.data, new.coarsening.R.matrix.data)
    np.testing.assert_array_equal(again.x_lifted, new.x_lifted)


def test_refresh_shares_index_arrays():
    F = CellularSheaf.random(nx.grid_2d_graph(8, 8), 2, 2, seed=3)
    X = features(F, 1, 5)
    out = HiSP(3, 8)(F, X)
    again = out.refresh(F.with_maps(F.head_data, F.tail_data), X)
    assert again.partition is out.partition
    for name in ("edges", "vertex_dims"):
        mine, theirs = (getattr(o.coarsening.sheaf, name) for o in (again, out))
        assert np.shares_memory(mine, theirs)
    for name in ("indices", "indptr"):
        mine, theirs = (getattr(o.coarsening.prolongation, name) for o in (again, out))
        assert np.shares_memory(mine, theirs)
    assert again.coarsening.clusters is out.coarsening.clusters
    assert (out.node_major, out.refresh(F, X.reshape(64, -1)).node_major) == (False, True)


def test_a_second_layer_is_refreshed_if_the_first_restores_loops():
    """Identity maps have no internal energy in their lowest modes, and so no loops."""
    F = CellularSheaf.constant(nx.grid_2d_graph(6, 6), 2)
    P, Q = sc.select(F, 9), sc.Partition(np.repeat(range(3), 3))
    X = features(F, 2, 5)
    first = HiSP(2, 9)(F, X, partition=P)
    layer = HiSP(3, 3, local_operator="internal")
    pool = partial(layer, partition=Q, adjacency=first.adjacency)
    second = pool(first.coarsening.sheaf, first.x_lifted)
    G = F.with_maps(F.tail_data, CellularSheaf.random(F.edges, 2, 2, seed=3).head_data)
    first = first.refresh(G, X)
    assert first.coarsening.sheaf.n_edges > second.coarsening.fine.n_edges
    again = second.refresh(first.coarsening.sheaf, first.x_lifted)
    new = pool(first.coarsening.sheaf, first.x_lifted)
    assert sc.verify(again.coarsening).passed
    np.testing.assert_array_equal(again.x_lifted, new.x_lifted)
    np.testing.assert_array_equal(again.adjacency.toarray(), new.adjacency.toarray())


@pytest.mark.filterwarnings("default::sheafcoarsen.TiedModesWarning")
def test_a_tied_cut_warns_at_the_line_that_calls_the_layer():
    constant = CellularSheaf.constant(nx.cycle_graph(4), 2)
    with pytest.warns(sc.TiedModesWarning) as caught:
        HiSP(1, 1)(constant, np.ones((4, 2))).refresh(constant, np.ones((4, 2)))
    assert [warning.filename for warning in caught] == [__file__, __file__]
    for warning in caught:
        assert "the cut splits a multiple eigenvalue" in str(warning.message)
        assert "where `out.coarsening.modes.tied` is True" in str(warning.message)
        assert "these hold many components of the graph. Eigenvalues" in str(warning.message)
    crumbs = CellularSheaf.constant(nx.disjoint_union(nx.path_graph(100), nx.empty_graph(20)))
    with pytest.warns(sc.SmallComponentsWarning) as caught:
        HiSP(1, 21)(crumbs, np.ones((120, 1)))
    assert [warning.filename for warning in caught] == [__file__]
