import numpy as np
import pytest
import scipy.linalg

from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    eigenvectors,
    eps_of,
    norm,
    residual_ratio,
    zero_level,
)
from tests.support.helpers import LIMIT, assert_residual, residual, same_subspace

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-0.99, -0.6, 0.0, 0.6, 0.95])
def test_norm_neither_overflows_nor_underflows(dtype, exponent):
    info = np.finfo(dtype)
    scale = float(info.max if exponent > 0 else info.tiny) ** abs(exponent)
    array = np.array([[3, 0], [0, -4]], dtype) * info.dtype.type(scale)
    if array.dtype.kind == "c":
        array = array * array.dtype.type(1j)
    assert norm(array) == pytest.approx(5 * scale, rel=8 * eps_of(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_norm_of_subnormal_entries(dtype):
    assert norm(np.array([3e-310, 4e-310], dtype)) == pytest.approx(5e-310, rel=1e-10)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((0, 3)), 0.0),
        (np.zeros(4), 0.0),
        (np.array([3, 4]), 5.0),
        (np.array([1.0, -np.inf]), np.inf),
        (np.array([3 + 4j, 0, 12]), 13.0),
    ],
    ids=["empty", "zero", "integers", "infinite", "complex"],
)
def test_norm_of_special_arrays(array, expected):
    assert norm(array) == pytest.approx(expected)


def test_norm_of_nan_is_nan():
    assert np.isnan(norm(np.array([1.0, np.nan, 2.0])))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eps_of_complex_types_is_that_of_the_real_type(dtype):
    assert eps_of(dtype) == np.spacing(np.ones(1, dtype).real[0])


def test_zero_level_is_proportional_to_its_arguments():
    level = zero_level(10, 1e-16, 3.0)
    assert 0 < level < 1e-13
    assert zero_level(20, 1e-16, 3.0) == 2 * level
    assert zero_level(10, 2e-16, 3.0) == 2 * level
    assert zero_level(10, 1e-16, 6.0) == 2 * level
    assert zero_level(10, 1e-16, np.array([3.0, 0.0])).tolist() == [level, 0.0]


@pytest.mark.parametrize(
    "ratio", [residual_ratio, lambda e, n, eps, *norms: residual(e, *norms, n=n, eps=eps)]
)
class TestResidualRatio:
    """The ratio of the library, and that of the tests."""

    def test_residual_ratio_value(self, ratio):
        assert ratio(6e-15, 2, 1e-15, 3.0) == pytest.approx(1.0)
        assert ratio(6e-15, 2, 1e-15, 3.0, 0.5) == pytest.approx(2.0)
        assert ratio(6e-15, 2, 1e-15) == pytest.approx(3.0)

    def test_zero_over_zero_is_zero(self, ratio):
        assert ratio(0.0, 2, 1e-15, 0.0, 1.0) == 0.0

    def test_nonzero_over_zero_is_infinite(self, ratio):
        assert ratio(1e-300, 2, 1e-15, 0.0) == np.inf

    def test_empty_size_counts_as_one(self, ratio):
        assert ratio(2e-15, 0, 1e-15, 1.0) == pytest.approx(2.0)

    def test_nan_exceeds_every_limit(self, ratio):
        assert not ratio(np.nan, 2, 1e-15, 1.0) < 30

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_overflowing_products_of_norms_are_handled(self, ratio, scale):
        assert ratio(scale**2 * 1e-15, 1, 1e-15, scale, scale) == pytest.approx(1.0)
        assert ratio(1e-15, 1, 1e-15, scale, scale, 1 / scale, 1 / scale) == pytest.approx(1.0)


def test_errors_of_a_few_subnormal_units_count_as_zero():
    assert residual_ratio(1e-322, 2, 1e-15, 1e-165, 1e-165) == 0.0
    assert residual_ratio(1e-320, 2, 1e-15, 1e-165, 1e-165) > 1e20
    assert residual_ratio(1.0, 2, 1e-15, 1e-300) == np.inf


def test_residual_ratio_broadcasts():
    error, sizes = np.array([1e-15, 0.0, 4e-15]), np.array([1.0, 0.0, 2.0])
    assert residual_ratio(error, np.array([1, 5, 2]), 1e-15, sizes) == pytest.approx(
        [1.0, 0.0, 1.0]
    )


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


def test_residual_limit_equals_that_of_the_tests():
    assert RESIDUAL_LIMIT == LIMIT


def test_eigenvectors_are_found_if_lapack_fails_on_a_subset(monkeypatch):
    A = np.diag([3.0, 1.0, 2.0, 4.0])
    expected, eigh = eigenvectors(A, 1, 2), scipy.linalg.eigh

    def fails(A, subset_by_index=None, **options):
        if subset_by_index is not None:
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(A, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", fails)
    np.testing.assert_array_equal(abs(eigenvectors(A, 1, 2)), abs(expected))
    np.testing.assert_array_equal(abs(expected), np.eye(4)[:, [2, 0]])
