import itertools

import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import linalg
from sheafcoarsen.solve import block_matrix
from sheafcoarsen.solve.block_matrix import (
    BlockMatrix,
    adjoint,
    in_blocks,
    largest_eigenvalue,
    scaled,
    unit_roots,
)
from tests.support.helpers import assert_residual, covering
from tests.unit.solve.conftest import GRID, SHEAVES


def blocks(rows, columns, p, q, seed=0):
    """Return a sparse matrix with an empty row of blocks."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((3 * (rows - 1), p, q))
    indices = np.concatenate([np.sort(rng.permutation(columns)[:3]) for _ in range(rows - 1)])
    indptr = np.append(np.arange(0, 3 * rows - 2, 3), 3 * rows - 3)
    indices, indptr = indices.astype(np.int32), indptr.astype(np.int32)  # as in Laplacians
    return scipy.sparse.bsr_array((data, indices, indptr), shape=(rows * p, columns * q))


@pytest.fixture(autouse=True, params=[0, 10**6], ids=["compiled", "scipy"])
def compiled_above(request, monkeypatch):
    monkeypatch.setattr(block_matrix, "COMPILED_ABOVE", request.param)


@pytest.mark.parametrize(("h", "name"), covering([0, 1, 3, 5, 14, 16], SHEAVES))
def test_products_match_those_of_the_sparse_matrix(name, h):
    F = SHEAVES[name]
    L = in_blocks(sc.laplacian(F), F.vertex_dims, F.vertex_dims)
    rng = np.random.default_rng(h)
    X = rng.standard_normal((F.dim_c0, h)).astype(L.dtype)
    if L.dtype.kind == "c":
        X = X + 1j * rng.standard_normal(X.shape)
    Y = BlockMatrix(L) @ X
    assert Y.dtype == X.dtype
    assert_residual(Y - L @ X, L.toarray(), X, n=20)


@pytest.mark.parametrize(("h", "shape"), covering([1, 4, 8, 13], [(1, 1), (2, 2), (2, 3), (9, 9)]))
def test_combine_adds_scaled_terms_to_a_product_and_may_overwrite_one(shape, h):
    A, rng = blocks(7, 5, *shape), np.random.default_rng(1)
    Y = rng.standard_normal((A.shape[1], h))
    T = [rng.standard_normal((A.shape[0], h)) for _ in range(3)]
    by = rng.standard_normal(h)
    terms = ((0.5, T[0]), (0.0, T[1]), (-2, T[2]))
    expected, bound = (A @ Y) * by + 0.5 * T[0] - 2 * T[2], np.copy(T[0])
    outs = [np.empty_like(T[0]), *([T[0]] if h in (1, 8) else [])]
    for out in outs:
        assert BlockMatrix(A).combine(Y, out, by, terms) is out
        assert_residual(out - expected, A.toarray(), Y, bound, n=9)


def test_input_and_output_may_differ_in_precision_and_width():
    A, rng = blocks(6, 4, 3, 3), np.random.default_rng(3)
    X = 1e-60 * rng.standard_normal((12, 14))
    wide = np.zeros((18, 16), np.float32)
    BlockMatrix(A).combine(X, wide, 1e60)  # must be scaled before it is rounded
    expected = 1e60 * (A @ X)
    single = linalg.eps_of(np.float32)
    assert_residual(wide[:, :14] - expected, A.toarray(), 1e60 * X, n=9, eps=single)
    assert not wide[:, 14:].any()
    back = BlockMatrix(A.T.tobsr((3, 3)), np.float32).combine(wide, np.empty((12, 14)))
    assert_residual(back - A.T @ expected, A.toarray(), A.toarray(), 1e60 * X, n=9, eps=single)


@pytest.mark.skipif(JIT_IS_OFF, reason="scipy multiplies there")
def test_a_column_does_not_depend_on_the_other_columns():
    A, X = BlockMatrix(blocks(50, 40, 2, 2)), np.random.default_rng(6).standard_normal((80, 14))
    whole = A @ X
    for h in (1, 5, 8):
        assert np.array_equal(A @ X[:, :h], whole[:, :h])


@pytest.mark.parametrize("name", [*SHEAVES, "complex large kernel"])
def test_unit_roots_turn_diagonal_blocks_into_projections(name):
    """D is known to the root of eps of its singular values."""
    F = SHEAVES.get(name) or sc.CellularSheaf.random(GRID, 3, 1, seed=8, dtype=complex)
    L, S, T = unit_roots(sc.laplacian(F), F.vertex_dims)
    A = scaled(S, L, S)
    assert A.format == adjoint(L).format == L.format
    assert (L.format == "bsr") == (set(F.vertex_dims.tolist()) in ({2}, {3}))
    assert np.array_equal(adjoint(S).toarray(), S.toarray().conj().T)
    L, A, S, T = (M.toarray() for M in (L, A, S, T))
    assert_residual(A - S.conj().T @ L @ S, S, L, S, n=10)
    for a, b in itertools.pairwise(F.vertex_offsets):
        D, block, left = L[a:b, a:b], A[a:b, a:b], (T @ S)[a:b, a:b]
        for projection in (block, left):
            assert np.abs(projection @ projection - projection).max(initial=0.0) < 1e-6
        assert_residual(T[a:b, a:b].conj().T @ block @ T[a:b, a:b] - D, D, n=100)
        if a < b:  # numpy before 2.2 raises for empty matrices
            assert round(np.trace(block).real) == np.linalg.matrix_rank(D)


def test_the_largest_eigenvalue_is_estimated():
    L = sc.laplacian(SHEAVES["complex connection"])
    top = np.linalg.eigvalsh(L.toarray())[-1]
    assert 0.8 * top <= largest_eigenvalue(L) <= 1.06 * top
    assert largest_eigenvalue(0 * L) == 0
