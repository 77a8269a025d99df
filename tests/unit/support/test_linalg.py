import copy
import pickle
from functools import cached_property

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._support import linalg, ragged
from tests.support.helpers import LIMIT, assert_residual, residual, same_subspace
from tests.support.strategies import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-0.99, -0.6, 0.0, 0.6, 0.95])
def test_norm_neither_overflows_nor_underflows(dtype, exponent):
    info = np.finfo(dtype)
    scale = float(info.max if exponent > 0 else info.tiny) ** abs(exponent)
    array = np.array([[3, 0], [0, -4]], dtype) * info.dtype.type(scale)
    if array.dtype.kind == "c":
        array = array * array.dtype.type(1j)
    assert linalg.norm(array) == pytest.approx(5 * scale, rel=8 * linalg.eps_of(dtype))


NORMS = {
    "empty": (np.zeros((0, 3)), 0.0),
    "zero": (np.zeros(4), 0.0),
    "integers": (np.array([3, 4]), 5.0),
    "infinite": (np.array([1.0, -np.inf]), np.inf),
    "NaN": (np.array([1.0, np.nan, 2.0]), np.nan),
    "complex": (np.array([3 + 4j, 0, 12]), 13.0),
    "subnormal": (np.array([3e-310, 4e-310]), 5e-310),
    "complex subnormal": (np.array([3e-310, 4e-310j]), 5e-310),
}


@pytest.mark.parametrize(("array", "expected"), NORMS.values(), ids=NORMS)
def test_norm_of_special_arrays(array, expected):
    assert linalg.norm(array) == pytest.approx(expected, rel=1e-10, abs=0, nan_ok=True)


RATIOS = {  # error, n and norms, with eps = 1e-15
    "one norm": (6e-15, 2, [3.0], 1.0),
    "two norms": (6e-15, 2, [3.0, 0.5], 2.0),
    "no norm": (6e-15, 2, [], 3.0),
    "zero over zero": (0.0, 2, [0.0, 1.0], 0.0),
    "nonzero over zero": (1e-300, 2, [0.0], np.inf),
    "empty": (2e-15, 0, [1.0], 2.0),
    "product that vanishes": (1e-315, 1, [1e-150, 1e-150], 1.0),
    "product that overflows": (1e285, 1, [1e150, 1e150], 1.0),
    "factors that vanish": (1e-15, 1, [1e-150, 1e-150, 1e150, 1e150], 1.0),
    "factors that overflow": (1e-15, 1, [1e150, 1e150, 1e-150, 1e-150], 1.0),
}


@pytest.mark.parametrize(("error", "n", "norms", "expected"), RATIOS.values(), ids=RATIOS)
def test_ratios_of_the_library_and_of_the_tests(error, n, norms, expected):
    found = linalg.residual_ratio(error, n, 1e-15, *norms), residual(error, *norms, n=n, eps=1e-15)
    assert found == pytest.approx((expected, expected), rel=1e-6, abs=0)


def test_nan_exceeds_the_limit_which_is_that_of_the_tests():
    assert not linalg.residual_ratio(np.nan, 2, 1e-15, 1.0) < linalg.RESIDUAL_LIMIT
    assert not residual(np.nan, 1.0, n=2, eps=1e-15) < LIMIT
    assert linalg.RESIDUAL_LIMIT == LIMIT


def test_errors_of_a_few_subnormal_units_count_as_zero():
    assert linalg.residual_ratio(1e-322, 2, 1e-15, 1e-165, 1e-165) == 0.0
    assert linalg.residual_ratio(1e-320, 2, 1e-15, 1e-165, 1e-165) > 1e20
    assert linalg.residual_ratio(1.0, 2, 1e-15, 1e-300) == np.inf


def test_assert_residual_accepts_only_rounding_errors():
    rng = np.random.default_rng(8531)
    A, B = rng.standard_normal((40, 40)), rng.standard_normal((40, 40))
    product = (A.astype(np.longdouble) @ B.astype(np.longdouble)).astype(float)
    assert_residual(A @ B - product, A, B, n=40)
    with pytest.raises(AssertionError, match=r"norm\(error\) / \(n eps product of norms\) = "):
        assert_residual(A @ B * (1 + 1e-10) - product, A, B, n=40)
    single = A.astype(np.float32) @ B.astype(np.float32)
    assert_residual(single - product, A.astype(np.float32), B, n=40)
    with pytest.raises(AssertionError, match="operands"):
        assert_residual(single - product, A, B, n=40, eps=np.finfo(float).eps)


def test_same_subspace_does_not_depend_on_the_basis():
    rng = np.random.default_rng(977)
    U = rng.standard_normal((7, 3))
    assert same_subspace(U, U @ rng.standard_normal((3, 3)))
    assert not same_subspace(U, U[:, :2])
    assert not same_subspace(U, U + 1e-6 * rng.standard_normal((7, 3)))
    assert same_subspace(U[:, :0], np.zeros((7, 0)))


def test_eigenvectors_are_found_if_lapack_fails_on_a_subset(monkeypatch):
    A = np.diag([3.0, 1.0, 2.0, 4.0])
    expected, eigh = linalg.eigenvectors(A, 1, 2), scipy.linalg.eigh

    def fails(A, subset_by_index=None, **options):
        if subset_by_index is not None:
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(A, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", fails)
    np.testing.assert_array_equal(abs(linalg.eigenvectors(A, 1, 2)), abs(expected))
    np.testing.assert_array_equal(abs(expected), np.eye(4)[:, [2, 0]])


def test_diagonal_blocks_of_chosen_parts():
    """Rows and columns of a part need not be adjacent, and rows of part 4 belong to none."""
    rng = np.random.default_rng(0)
    rows, columns = np.array([2, 0, 4, 2, 0, 1, 3]), np.array([0, 2, 3, 0, 2, 1, 1])
    A = rng.standard_normal((7, 7)) * (rows[:, None] == columns)
    seen = []
    for parts, members, found in linalg.diagonal_blocks(
        scipy.sparse.csr_array(A), rows, columns, np.array([True, True, True, False])
    ):
        for part, own, block in zip(parts, members, found, strict=True):
            seen.append(int(part))
            assert (own == np.flatnonzero(columns == part)).all()
            assert (block == A[np.ix_(np.flatnonzero(rows == part), own)]).all()
    assert sorted(seen) == [0, 1, 2]


def test_offsets_of_small_integer_types_do_not_overflow():
    assert ragged.offsets(np.full(300, 100, dtype=np.int8))[-1] == 30_000


def test_norms_of_blocks_do_not_overflow():
    data, starts = np.array([3e300, 4e300j, 1.0]), ragged.offsets([2, 0, 1])
    assert linalg.ragged_norms(data, starts).tolist() == [5e300, 0, 1]


def arrays_in(value):
    """Yield the public arrays of an object, including those of sparse matrices."""
    for name in dir(value):
        held = getattr(value, name, None) if not name.startswith("_") else None
        if isinstance(held, np.ndarray):
            yield name, held
        elif scipy.sparse.issparse(held):
            yield name, held.data


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_results_are_read_only(duplicate):
    """Writing into a copy would invalidate its cached properties."""
    F = sc.gallery.bundle(nx.grid_2d_graph(4, 5), 2, noise=0.1, seed=0)
    C = sc.coarsen(F, sc.select(F, 4), sc.ranks.fixed(2).whole_multiplets())
    K = sc.eliminate(F)
    S = sc.synchronize(sc.PoseGraph([[0, 1]], [np.eye(2)], [[1.0, 0.0]], poses=None))
    x = np.ones(F.dim_c0)
    results = [F, C.partition, C, C.modes, K, S, S.measurements, sc.eigenmodes(F, 2)]
    results += [sc.energy_ledger(C, x), sc.least_squares(F, np.ones(F.dim_c1))]
    results += [sc.spectral_quality(C, 2), sc.global_sections(sc.CellularSheaf.constant(F.edges))]
    assert not results[-1].basis.flags.writeable
    for result in results:
        was = dict(arrays_in(result))
        for name, array in arrays_in(duplicate(result)):
            assert np.array_equal(array, was[name], equal_nan=True), (result, name)
            assert array.flags.writeable == was[name].flags.writeable, (result, name)
    G, D, other = duplicate(F), duplicate(C), duplicate(K)
    assert np.array_equal(D.recoarsen(G).sheaf.tail_data, C.sheaf.tail_data)
    assert np.array_equal(other.refresh(G).sheaf.tail_data, K.sheaf.tail_data)
    assert np.array_equal(D.lift(D.pool(x)), C.lift(C.pool(x)))


def test_pickles_do_not_depend_on_cached_properties():
    """Joblib and dask compare objects by their pickles."""
    F = sc.gallery.bundle(nx.grid_2d_graph(4, 5), 2, noise=0.1, seed=0)
    C = sc.coarsen(F, sc.select(F, 4), 2)
    G = sc.PoseGraph([[0, 1]], [np.eye(2)], [[1.0, 0.0]])
    out = sc.HiSP(n_modes=2, n_clusters=3)(F, np.ones((F.dim_c0, 1)))
    for value in (F, C.partition, C.modes, C, sc.eliminate(F), G, out):
        value = pickle.loads(pickle.dumps(value))
        before = pickle.dumps(value)
        for name in dir(value):
            getattr(value, name, None)
        kinds = [kind for base in type(value).__mro__ for kind in vars(base).values()]
        assert any(isinstance(kind, cached_property) for kind in kinds)
        assert pickle.dumps(value) == before, type(value)
