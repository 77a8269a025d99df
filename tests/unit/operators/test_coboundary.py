"""The coboundary, as a matrix and applied without one; energies of cochains."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.operators import apply_coboundary
from tests.support import reference
from tests.support.helpers import assert_residual, covering, eps_of
from tests.support.strategies import cochains, sheaves
from tests.unit.operators.test_laplacian import assert_canonical


@given(sheaves())
def test_coboundary_matches_its_definition(F):
    delta = sc.coboundary(F)
    assert isinstance(delta, scipy.sparse.csr_array)
    assert_canonical(delta, F.dtype)
    assert delta.shape == (F.dim_c1, F.dim_c0)
    # differences of entries: no rounding to allow
    np.testing.assert_array_equal(delta.toarray(), reference.coboundary(F))


def test_each_coboundary_has_its_own_data_and_keeps_entries_that_vanish():
    F = CellularSheaf([[0, 0]], [[[5.0, 1.0]]], [[[2.0, 1.0]]])
    delta = sc.coboundary(F)
    assert delta.nnz == 2
    delta.data[:] = 7
    assert sc.coboundary(F).toarray().tolist() == [[3, 0]]


@given(sheaves(), st.data())
def test_laplacian_operator_acts_as_the_laplacian(F, data):
    A = sc.laplacian_operator(F)
    assert A.shape == (F.dim_c0, F.dim_c0)
    assert A.dtype == F.dtype
    x, X = data.draw(cochains(F, columns=(None,))), data.draw(cochains(F, columns=(3,)))
    if data.draw(st.booleans(), label="complex x"):
        x = (1 + 2j) * x
    delta, L = reference.coboundary(F), reference.laplacian(F)
    assert (A @ x).dtype == np.result_type(F.dtype, x.dtype)
    n = max(F.dim_c0, F.dim_c1)
    for result, expected, argument in (
        (A.matvec(x), L @ x, x),
        (A.rmatvec(x), L @ x, x),
        (A.matmat(X), L @ X, X),
        (A.rmatmat(X), L @ X, X),
        (A.matvec(x[:, None]), (L @ x)[:, None], x),
        (A.matmat(np.asfortranarray(X)), L @ X, X),
    ):
        assert result.shape == expected.shape
        assert_residual(result - expected, delta, delta, argument, n=n)


def _strip(d, rows, dtype=float, loops=False):
    """Return random maps on a strip of triangles, with two loops if wanted."""
    edges = [(i, i + k) for i in range(40) for k in (1, 2)] + [(3, 3), (7, 7)] * loops
    return CellularSheaf.random(edges, d, rows, seed=1, dtype=dtype)


def assert_products(F, x):
    """Assert that products without a matrix are those with the matrix."""
    delta, L = reference.coboundary(F), reference.laplacian(F)
    assert_residual(sc.laplacian_operator(F) @ x - L @ x, delta, delta, x, n=F.dim_c1)
    columns = x.reshape(F.dim_c0, math.prod(x.shape[1:]))
    applied = apply_coboundary(F, columns)
    assert applied.shape == (F.dim_c1, columns.shape[1])
    assert_residual(applied - delta @ columns, delta, columns, n=F.dim_c1)


STALKS = [(1, 1, float), (2, 2, complex), (3, 1, complex)]
STALKS += [(5, 2, np.float32), (6, 6, float), (9, 3, float), (0, 0, float), (0, 2, float)]


@pytest.mark.parametrize(("h", "stalks", "loops"), covering([None, 1, 4, 7], STALKS, [False, True]))
def test_products_compiled_for_the_stalks_match_matrices(monkeypatch, stalks, h, loops):
    d, rows, dtype = stalks
    monkeypatch.setattr("sheafcoarsen.operators._coboundary.SPECIALIZED_ABOVE", 0)
    F = _strip(d, rows, dtype, loops)
    x = np.random.default_rng(0).standard_normal((F.dim_c0,) if h is None else (F.dim_c0, h))
    assert_products(F, (x if dtype is not complex else (1 - 2j) * x).astype(dtype))


@pytest.mark.parametrize(("h", "dtype", "most"), covering([0, 1, 3, 14], [float, complex], [4, 11]))
def test_products_with_ragged_stalks_match_matrices(dtype, most, h):
    """Vertex and edge stalks of any dimension, and empty ones."""
    rng = np.random.default_rng(most)
    F = _strip(rng.integers(0, most + 1, 42), rng.integers(0, 6, 82), dtype, loops=True)
    assert_products(F, rng.standard_normal((F.dim_c0, h)) * (1 if dtype is float else 1 + 2j))


@pytest.mark.parametrize("of_maps", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("of_x", [np.float32, np.complex128])
def test_products_have_the_wider_scalar_type(of_maps, of_x):
    F = _strip(2, 2, of_maps)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((F.dim_c0, 5)).astype(of_x)
    X = X * of_x(1 + 2j) if np.iscomplexobj(X) else X
    delta, wide = reference.coboundary(F), np.result_type(of_maps, of_x)
    for result, expected, factors in (
        (sc.laplacian_operator(F) @ X, delta.conj().T @ (delta @ X), (delta, delta, X)),
        (apply_coboundary(F, X), delta @ X, (delta, X)),
    ):
        assert result.dtype == wide
        # entries of delta are exact; sums are those of the wider type
        assert_residual(result - expected, *factors, n=F.dim_c1, eps=np.finfo(wide).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_pickled_operator_contains_only_its_sheaf(dtype):
    F = CellularSheaf.random([[0, 1], [1, 1], [1, 2]], 2, 3, seed=0, dtype=dtype)
    A = sc.laplacian_operator(F)
    B = pickle.loads(pickle.dumps(A))
    X = np.random.default_rng(0).standard_normal((6, 3))
    assert (B.shape, B.dtype) == (A.shape, A.dtype)
    for Y in (X, X[:, 0]):
        assert np.array_equal(A @ Y, B @ Y)
        assert np.array_equal(A.H @ Y, B @ Y)
        assert_residual(A.T @ Y - sc.laplacian(F).toarray().T @ Y, (A @ np.eye(6)), Y, n=6)


@given(sheaves(), st.data())
def test_edge_energies_sum_to_the_energy(F, data):
    x = data.draw(cochains(F)) * (1 + 2j if data.draw(st.booleans(), label="complex x") else 1)
    per_edge, total = sc.edge_energy(F, x), sc.energy(F, x)
    assert per_edge.shape == (F.n_edges, *x.shape[1:])
    assert per_edge.dtype == x.real.dtype
    assert isinstance(total, float) if x.ndim == 1 else total.shape == x.shape[1:]
    delta = reference.coboundary(F)
    eps = eps_of(F.dtype)
    arrays = (x, per_edge, reference.edge_energy(F, x))
    columns, energies, expected = (array if x.ndim == 2 else array[:, None] for array in arrays)
    totals = np.atleast_1d(total)
    for c in range(columns.shape[1]):
        for e in range(F.n_edges):
            rows = delta[reference.edge_coordinates(F, e)]
            there = columns[np.abs(rows).any(axis=0), c]  # what the edge sees of x
            n = int(max(F.edge_dims[e], F.vertex_dims[F.edges[e]].max()))
            assert_residual(energies[e, c] - expected[e, c], rows, rows, there, there, n=n, eps=eps)
        factors = (delta, delta, columns[:, c], columns[:, c])
        assert_residual(
            totals[c] - expected[:, c].sum(), *factors, n=max(F.dim_c0, F.dim_c1), eps=eps
        )


@pytest.mark.large
def test_energies_of_columns_in_single_precision_are_summed_in_double_precision():
    """Each of 10^5 edges has the energy (1/3)^2, rounded to single precision."""
    n = 100_001
    maps = np.ones((n - 1, 1, 1), np.float32)
    F = CellularSheaf(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), maps, maps)
    x = np.repeat((np.arange(n) % 2 / np.float32(3)).astype(np.float32)[:, None], 2, axis=1)
    exact = float(np.float32(1 / 3)) ** 2 * (n - 1)
    assert_residual(sc.energy(F, x) - exact, exact, n=1, eps=eps_of(np.float32))
