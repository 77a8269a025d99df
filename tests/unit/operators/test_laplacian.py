"""The Laplacian and its pattern, filled by every kernel."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._support.ragged import index_dtype
from tests.support import reference
from tests.support.errors import raises
from tests.support.helpers import assert_residual, covering, eps_of, new_maps
from tests.support.strategies import DTYPES, sheaves


def assert_canonical(A, dtype):
    """Sorted indices and no duplicates, as the arrays themselves say."""
    for lo, hi in itertools.pairwise(A.indptr):
        assert (np.diff(A.indices[lo:hi]) > 0).all()
    assert A.has_sorted_indices
    assert A.has_canonical_format
    assert A.dtype == dtype
    assert A.indptr[0] == 0
    assert A.indptr[-1] == len(A.indices)


def block(A, F, u, v):
    return A[np.ix_(reference.vertex_coordinates(F, u), reference.vertex_coordinates(F, v))]


def assert_equals_delta_star_delta(L, F):
    """Compare every block with delta* delta, relative to its two block columns of delta."""
    assert L.shape == (F.dim_c0, F.dim_c0)
    delta, expected = reference.coboundary(F), reference.laplacian(F)
    columns = [delta[:, reference.vertex_coordinates(F, v)] for v in range(F.n_vertices)]
    for u in range(F.n_vertices):
        for v in range(F.n_vertices):
            error = block(L, F, u, v) - block(expected, F, u, v)
            assert_residual(
                error, columns[u], columns[v], n=int(max(F.vertex_dims[u], F.vertex_dims[v]))
            )


@given(sheaves())
def test_laplacian_blocks_equal_those_of_delta_star_delta(F):
    """It is exactly Hermitian, and stores the blocks of the graph and of the diagonal."""
    L = sc.laplacian(F)
    assert isinstance(L, scipy.sparse.csr_array)
    assert_canonical(L, F.dtype)
    dense = L.toarray()
    assert_equals_delta_star_delta(dense, F)
    np.testing.assert_array_equal(dense, dense.conj().T)
    assert (dense.diagonal().real >= 0).all()
    wanted = {(v, v) for v in range(F.n_vertices)}
    wanted |= {(int(u), int(v)) for u, v in F.edges} | {(int(v), int(u)) for u, v in F.edges}
    stored = np.zeros((F.dim_c0, F.dim_c0))
    for u, v in wanted:
        stored[np.ix_(reference.vertex_coordinates(F, u), reference.vertex_coordinates(F, v))] = 1
    L.data[:] = 1
    np.testing.assert_array_equal(L.toarray(), stored)


@pytest.mark.parametrize("format", ["csr", "bsr"])
def test_each_laplacian_has_its_own_arrays_and_stores_zeros(format):
    F = CellularSheaf([[0, 1]], [[[1.0]]], [[[0.0]]])
    L = sc.laplacian(F, format)
    assert L.nnz == 4
    L.eliminate_zeros()
    assert L.nnz == 1
    for array in (L.data, L.indices, L.indptr):
        array[:] = 0
    again = sc.laplacian(F, format)
    assert again.nnz == 4
    assert again.toarray().tolist() == [[1, 0], [0, 0]]


@given(sheaves(), st.data())
def test_pattern_filled_with_new_maps_equals_new_laplacian(F, data):
    bsr = F.n_vertices > 0 and F.vertex_dims[0] > 0 and (F.vertex_dims == F.vertex_dims[0]).all()
    format = data.draw(st.sampled_from(["csr", "bsr"] if bsr else ["csr"]))
    pattern = sc.LaplacianPattern(F, format)
    seeds, scales = st.integers(0, 99), st.sampled_from([1.0, 1e-12, 1e12])
    dtype = data.draw(st.sampled_from(DTYPES), label="dtype")
    G, H = (new_maps(F, "general", data.draw(seeds), dtype, data.draw(scales)) for _ in range(2))
    first = pattern.fill(F)
    kept = first.toarray()
    second = pattern.fill(G)  # perhaps of another scalar type
    fresh = sc.laplacian(G, format)
    assert type(second) is type(fresh)
    assert second.dtype == G.dtype
    np.testing.assert_array_equal(second.toarray(), fresh.toarray())
    np.testing.assert_array_equal(second.indices, fresh.indices)
    np.testing.assert_array_equal(second.indptr, fresh.indptr)
    np.testing.assert_array_equal(first.toarray(), kept)  # untouched by the second fill
    for mine, other in ((second.indices, first.indices), (second.indptr, first.indptr)):
        assert mine.size == 0 or np.shares_memory(mine, other)
        assert not mine.flags.writeable  # so that no caller can change them for others

    memory = second.data
    third = pattern.fill(H, out=second)
    assert third is second
    assert third.data is memory
    np.testing.assert_array_equal(third.toarray(), sc.laplacian(H, format).toarray())


@pytest.mark.parametrize("format", ["csr", "bsr"])
def test_filling_an_invalid_out_raises(format):
    F = CellularSheaf.random([[0, 1], [1, 2]], 2, 3, seed=11)
    pattern = sc.LaplacianPattern(F, format)
    other_format = sc.laplacian(F, "csr" if format == "bsr" else "bsr")
    smaller = sc.laplacian(CellularSheaf.random([[0, 1]], 2, 3, seed=11), format)
    emptier = sc.laplacian(CellularSheaf.random([[0, 1]], [2, 2, 2], 3, seed=11))
    apart = sc.laplacian(F, format)  # a copy of its numbers would be filled in
    apart.data = np.repeat(apart.data, 2, axis=-1)[..., ::2]
    frozen, moved = sc.laplacian(F, format), sc.laplacian(F, format)
    frozen.data.setflags(write=False)
    moved.indptr[1] -= 1
    elsewhere = sc.laplacian(F, format)
    elsewhere.indices = elsewhere.indices[::-1].copy()
    invalid = (other_format, smaller, emptier, apart, frozen, moved, elsewhere, np.zeros((6, 6)), 3)
    for out in invalid:
        with pytest.raises(ValueError, match="`out` must be an earlier result of this pattern"):
            pattern.fill(F, out=out)
    with raises("ValueError: `out` must have the sheaf's scalar type float64, got float32"):
        pattern.fill(F, out=pattern.fill(F).astype(np.float32))


def arranged(kind):
    """Edges of one graph in an order and orientation, perhaps with a loop or parallel edges."""
    # u < v, sorted: canonical
    edges = np.array(sorted(nx.gnm_random_graph(8, 15, seed=6).edges), dtype=np.int64)
    assert (edges[:, 0] < edges[:, 1]).all()
    rng = np.random.default_rng(8)
    if kind == "reversed":
        return edges[:, ::-1]
    if kind in ("shuffled", "parallel", "loops"):
        edges = rng.permutation(edges)
        edges = np.where(rng.random((len(edges), 1)) < 0.5, edges[:, ::-1], edges)
    if kind == "unsorted":  # oriented as canonical edges are
        return edges[::-1]
    if kind == "twice":  # another graph, canonical but for one pair of parallel edges
        return np.array([[0, 1], [1, 2], [1, 2], [1, 3], [3, 5]])
    if kind == "parallel":
        return np.concatenate([edges, edges[2:5], edges[4:8, ::-1], edges[4:5]])
    if kind == "loops":
        return np.concatenate([[[7, 7], [0, 0]], edges, [[3, 3], [0, 0]]])
    return edges


ARRANGEMENTS = ["canonical", "unsorted", "reversed", "shuffled", "twice", "parallel", "loops"]
SHAPES = [(1, 1), (2, 2), (3, 3), (1, 3), (2, 1), (3, 4), (4, 4), (7, 2), (3, 0), "edges", "mixed"]


def of_shape(shape, edges, dtype, seed=5):
    """Return a sheaf with maps of one shape (d_v, d_e) or with mixed stalks, and a free vertex."""
    n, m = 9, len(edges)
    if shape == "mixed":
        return CellularSheaf.random(
            edges, np.arange(n) % 8, 1 + np.arange(m) % 6, seed=seed, dtype=dtype
        )
    if shape == "edges":
        return CellularSheaf.random(edges, [2] * n, 1 + np.arange(m) % 3, seed=seed, dtype=dtype)
    return CellularSheaf.random(edges, [shape[0]] * n, [shape[1]] * m, seed=seed, dtype=dtype)


@pytest.mark.parametrize(("dtype", "arrangement", "shape"), covering(DTYPES, ARRANGEMENTS, SHAPES))
def test_every_way_to_fill_gives_the_same_matrix(arrangement, shape, dtype):
    F = of_shape(shape, arranged(arrangement), dtype)
    delta, csr, filled = reference.coboundary(F), sc.laplacian(F), []
    for format in ["csr"] if shape == "mixed" else ["csr", "bsr"]:
        pattern = sc.LaplacianPattern(F, format)
        assert pattern._uniform == (
            arrangement not in ("twice", "parallel", "loops")
            and isinstance(shape, tuple)
            and shape[0] <= 3
        )
        L = pattern.fill(F)
        L.data[:] = np.nan  # whatever was there must be overwritten
        L = pattern.fill(F, out=L)
        assert L.dtype == F.dtype
        assert L.has_canonical_format
        assert format == "csr" or L.blocksize == (F.vertex_dims[0],) * 2
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(L.tocsr(), name), getattr(csr, name))
        filled.append(L.toarray())
        np.testing.assert_array_equal(filled[-1], filled[-1].conj().T)
        pattern._uniform = False  # the general kernel
        general = pattern.fill(F).toarray()
        assert_equals_delta_star_delta(general, F)
        np.testing.assert_array_equal(general, general.conj().T)
        n = int(F.vertex_dims.max())
        assert_residual(filled[-1] - general, delta, delta, n=n, eps=eps_of(F.dtype))
    assert_equals_delta_star_delta(filled[0], F)


def test_indices_have_32_bits_if_they_suffice():
    assert sc.laplacian(CellularSheaf.constant([[0, 1]])).indices.dtype == np.int32
    assert index_dtype(2**31 - 1) == np.int32
    assert index_dtype(2**31) == np.int64


@pytest.mark.parametrize("shape", [(2, 2), (4, 3), "mixed"], ids=str)
def test_zero_entries_are_not_negative_zeros(shape):
    edges = arranged("canonical")
    F = of_shape(shape, edges, np.float64)
    L = sc.laplacian(F.with_maps(-np.abs(F.tail_data), np.zeros_like(F.head_data)))
    assert (L.data == 0).any()
    assert not np.signbit(L.data[L.data == 0]).any()  # 0 - t, not -t
