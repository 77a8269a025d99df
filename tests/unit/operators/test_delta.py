"""The coboundary, as a matrix and applied without one."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual
from tests.support.strategies import cochains, sheaves
from tests.unit.operators.test_pattern import assert_canonical

# ---------------------------------------------------------------- coboundary


@given(sheaves())
def test_coboundary_is_that_of_the_definition(F):
    delta = sc.coboundary(F)
    assert isinstance(delta, scipy.sparse.csr_array)
    assert_canonical(delta, F.dtype)
    assert delta.shape == (F.dim_c1, F.dim_c0)
    # differences of entries: no rounding to allow
    np.testing.assert_array_equal(delta.toarray(), reference.coboundary(F))


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)], ids=["tail first", "head first"])
def test_coboundary_of_one_edge_in_both_orientations(ends):
    A, B = [[1.0, 2.0]], [[3.0]]  # the tail has dimension 2
    delta = sc.coboundary(CellularSheaf([ends], [A], [B]))
    assert delta.toarray().tolist() == ([[1, 2, -3]] if ends == (0, 1) else [[-3, 1, 2]])
    assert delta.indices.tolist() == [0, 1, 2]


def test_coboundary_of_a_loop_is_one_difference():
    delta = sc.coboundary(CellularSheaf([[0, 0]], [[[5.0, 1.0]]], [[[2.0, 1.0]]]))
    assert delta.toarray().tolist() == [[3, 0]]
    assert delta.nnz == 2  # an entry that happens to vanish keeps its place


def test_coboundary_belongs_to_the_caller():
    F = CellularSheaf.constant([[0, 1]])
    sc.coboundary(F).data[:] = 7
    assert sc.coboundary(F).toarray().tolist() == [[1, -1]]


# ---------------------------------------------------------------- the operator without the matrix


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


def test_laplacian_operator_keeps_the_imaginary_part_of_x():
    A = sc.laplacian_operator(CellularSheaf.constant([[0, 1]]))
    assert (A @ np.array([1j, 0])).tolist() == [1j, -1j]
    F = CellularSheaf([[0, 1]], [[[1.0]]], [[[2j]]])  # conjugates are taken on the way back
    assert (sc.laplacian_operator(F) @ np.array([1, 0])).tolist() == [1, 2j]
