"""Compressed edge stalks with fewer rows and the same Laplacian."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support.helpers import assert_residual, eps_of
from tests.support.strategies import DTYPES, SCALES, bases, sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

OPERATORS = ("internal", "principal")


@st.composite
def pairs(draw):
    """Draw the same coarsening without and with compression.

    Ranks are small, so that there are too many rows.
    """
    F, P = draw(sheaves_with_partitions())
    options = {"loops": draw(st.booleans())}
    kind = draw(st.sampled_from([*OPERATORS, "basis"]))
    if kind == "basis":
        options["basis"] = draw(bases(F, P))
    else:
        options["rank"] = draw(
            st.lists(st.integers(0, 2), min_size=P.n_clusters, max_size=P.n_clusters)
        )
        options["local_operator"] = kind
    return sc.coarsen(F, P, **options), sc.coarsen(F, P, **options, compress=True)


def difference_map(sheaf, e):
    """[A | -B] of an edge, in double precision."""
    rows = np.hstack([sheaf.tail_map(e), -sheaf.head_map(e)])
    return rows.astype(np.result_type(rows, np.float64))


def assert_compressed(C, D):
    """Assert that D is C compressed: rows, triangles, Gram matrices of every coarse edge.

    Everything else is the same to the last bit.
    """
    a, b = C.sheaf.edges[: C.n_crossing_edges].T
    crossing = slice(0, C.n_crossing_edges)
    widths = C.ranks[a] + C.ranks[b]
    np.testing.assert_array_equal(D.sheaf.edges, C.sheaf.edges)
    np.testing.assert_array_equal(
        D.sheaf.edge_dims[crossing], np.minimum(C.sheaf.edge_dims[crossing], widths)
    )
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
    assert_compressed(*case)
    assert case[1].crossing_rows is None
    assert case[1].loops is case[0].loops


@given(pairs())
def test_every_statement_holds_on_a_compressed_coarsening(case):
    V = sc.verify(case[1])
    assert V.passed, str(V)
    skipped = [
        {check.label for check in sc.verify(C).checks if check.skipped_because} for C in case
    ]
    assert skipped[0] == skipped[1]  # the same statements apply after compression


@given(pairs())
def test_compressing_again_changes_nothing(case):
    D = case[1]
    again = sc.coarsen(
        D.sheaf,
        Partition(np.arange(len(D.ranks))),
        basis=[np.eye(r) for r in D.ranks.tolist()],
        compress=True,
    )
    for e in range(D.n_crossing_edges):
        np.testing.assert_array_equal(again.sheaf.tail_map(e), D.sheaf.tail_map(e))
        np.testing.assert_array_equal(again.sheaf.head_map(e), D.sheaf.head_map(e))


@pytest.mark.parametrize(
    ("dtype", "scale", "chunk"), list(zip(DTYPES, [0, 1, 2, 0], [1, 128, 1, 128], strict=True))
)
def test_edges_compressed_in_many_chunks_keep_their_gram_matrices(dtype, scale, chunk, monkeypatch):
    """A tall edge is compressed in many chunks; its columns differ by many decades."""
    monkeypatch.setattr("sheafcoarsen.coarsening.realization.CHUNK", chunk)
    F = CellularSheaf.random(nx.gnm_random_graph(30, 250, seed=3), 3, 2, seed=5, dtype=dtype)
    size = SCALES[F.dtype.type(0).real.itemsize][scale]
    F = F.with_maps(
        F.tail_data * F.tail_data.real.dtype.type(size),
        F.head_data * F.head_data.real.dtype.type(size),
    )
    P = Partition(np.arange(30) // 10)
    rng = np.random.default_rng(7)
    basis = [
        (rng.standard_normal((30, r)) * 10.0 ** rng.integers(-3, 1, r)).astype(dtype)
        for r in (7, 1, 3)
    ]
    C, D = (sc.coarsen(F, P, basis=basis, compress=compress) for compress in (False, True))
    assert D.sheaf.edge_dims[:3].tolist() == [8, 10, 4]
    assert C.sheaf.edge_dims[:3].min() > 20
    assert_compressed(C, D)
    assert sc.verify(D).passed, str(sc.verify(D))


def test_columns_whose_squares_underflow_keep_their_accuracy():
    """Norms are computed of scaled columns, so 1e-200 beside 1 stays accurate."""
    F = CellularSheaf.random([[0, 1]] * 5, 1, 1, seed=3)
    D = sc.coarsen(F, Partition([0, 1]), basis=[[[1e-200]], [[1.0]]], compress=True)
    C = sc.coarsen(F, Partition([0, 1]), basis=[[[1.0]], [[1.0]]], compress=True)
    np.testing.assert_allclose(D.sheaf.tail_map(0) * 1e200, C.sheaf.tail_map(0), rtol=1e-14)
    np.testing.assert_allclose(D.sheaf.head_map(0), C.sheaf.head_map(0), rtol=1e-14)
    assert np.abs(C.sheaf.tail_map(0)).max() > 0.1


def test_compression_of_two_parallel_edges_matches_hand_computation():
    """Two parallel edges have the scalar maps (3, 0) and (4, 5).

    [3 0; 4 -5] = Q [5 -4; 0 3].
    """
    F = CellularSheaf([[0, 1]] * 3, [[[3.0]], [[4.0]], [[0.0]]], [[[0.0]], [[5.0]], [[0.0]]])
    D = sc.coarsen(F, Partition([0, 1]), 1, compress=True)
    assert D.sheaf.edge_dims.tolist() == [2]
    whole = np.array([[3, 0], [4, 5], [0, 0]])
    assert_residual(D.sheaf.tail_map(0) - [[5], [0]], whole, n=3)
    assert_residual(D.sheaf.head_map(0) - [[4], [-3]], whole, n=3)
    assert "3 -> 1 edges (compressed) + 0 loops" in repr(D)
