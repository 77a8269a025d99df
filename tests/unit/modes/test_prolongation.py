"""The prolongation R, the direct sum of modes or of blocks that a user supplies."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.errors import raises
from tests.support.strategies import DTYPES, bases, sheaves_with_partitions

PATH = CellularSheaf.constant(nx.path_graph(3))
PAIR_AND_ONE = Partition([0, 1, 0])


def assert_prolongation(R, F, n_columns, dtype):
    """Assert that R is a canonical, read-only csr matrix."""
    assert isinstance(R, scipy.sparse.csr_array)
    assert R.shape == (F.dim_c0, n_columns)
    assert R.dtype == dtype
    for array in (R.data, R.indices, R.indptr):
        assert not array.flags.writeable
    assert R.has_canonical_format
    for lo, hi in itertools.pairwise(R.indptr):  # each row of a block is stored completely
        assert (np.diff(R.indices[lo:hi]) == 1).all()


@given(sheaves_with_partitions(), st.data())
def test_prolongation_of_a_user_basis_contains_its_blocks(case, data):
    F, P = case
    basis = data.draw(bases(F, P))
    C = sc.coarsen(F, P, basis=basis)
    dtype = np.result_type(F.dtype, *basis)
    assert C.modes is None
    assert C.sheaf.dtype == dtype
    assert C.ranks.tolist() == [R_a.shape[1] for R_a in basis]
    assert_prolongation(C.prolongation, F, sum(R_a.shape[1] for R_a in basis), dtype)
    np.testing.assert_array_equal(C.prolongation.toarray(), reference.prolongation(F, P, basis))
    for a, R_a in enumerate(basis):
        np.testing.assert_array_equal(C.block(a), R_a.astype(dtype), strict=True)
        assert C.R.coordinates(a).tolist() == reference.cluster_coordinates(F, P, a)


def test_blocks_may_be_lists_or_integers_or_object_arrays_and_are_copied():
    blocks = np.empty(2, object)
    blocks[:] = [np.array([[1.0], [2.0]]), np.array([[3]], np.float32)]
    accepted = (blocks, list(blocks), tuple(blocks), [[[1], [2]], [[3]]])
    found = [sc.coarsen(PATH, PAIR_AND_ONE, basis=basis).prolongation for basis in accepted]
    blocks[0][:] = 5
    for R in found:
        assert R.dtype == float
        assert R.toarray().tolist() == [[1, 0], [0, 3], [2, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given_dtype", [*DTYPES, int])
def test_user_blocks_are_cast_to_the_precision_of_the_sheaf(dtype, given_dtype):
    F = CellularSheaf.random(nx.path_graph(3), 1, 1, seed=3, dtype=dtype)
    basis = [np.ones((2, 1), given_dtype), np.ones((1, 1), np.float32)]
    C = sc.coarsen(F, PAIR_AND_ONE, basis=basis)
    is_complex = np.iscomplexobj(basis[0]) or F.dtype.kind == "c"
    expected = np.result_type(F.dtype, np.complex64) if is_complex else F.dtype
    assert C.prolongation.dtype == C.sheaf.dtype == expected


def test_user_blocks_that_overflow_in_the_precision_of_the_sheaf_raise():
    F = CellularSheaf.random(nx.path_graph(3), 1, 1, seed=3, dtype=np.float32)
    with raises("ValueError: `basis[0]` must be finite in float32, got 1e+300 in row 1"):
        sc.coarsen(F, PAIR_AND_ONE, basis=[[[1.0], [1e300]], [[1.0]]])
