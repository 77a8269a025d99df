"""Ranks of rows with known noise levels."""

import numpy as np
import pytest

from sheafcoarsen._kernels.elimination import row_qr
from tests.support.kernels import from_python
from tests.support.strategies import DTYPES

reduce_rows = from_python(row_qr.reduce_rows)
reflect = from_python(row_qr.reflect)


@pytest.mark.parametrize(("dtype", "spread"), list(zip(DTYPES, [0, 6, 6, 0], strict=True)))
def test_noise_of_rows_does_not_count_as_rank(spread, dtype):
    """Row norms range over 2 spread decades, and each row has errors of 1e-3 of its norm."""
    double = np.result_type(dtype, np.float64)
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def normal(*shape, rng=rng):
            X = rng.standard_normal((2, *shape))
            return X[0] + 1j * X[1] if np.dtype(dtype).kind == "c" else X[0]

        height, width = rng.integers(2, 12), rng.integers(2, 7)
        rank = int(rng.integers(1, min(height, width) + 1))
        rows = normal(height, rank) @ np.linalg.qr(normal(width, rank))[0].conj().T
        sizes = 10.0 ** rng.uniform(-spread, spread, height)
        rows *= (sizes / np.abs(rows).max(axis=1))[:, None]
        noise = sizes * 10.0 ** rng.uniform(-15, -3, height)
        rows += noise[:, None] * np.sign(rng.standard_normal((height, width)))
        stack = row_qr.Rows(rows.astype(double).reshape(-1), noise)
        order = np.empty(width, np.int64)
        assert reduce_rows(stack, height, width, width, order) == rank


@pytest.mark.parametrize("seed", range(20))
def test_noise_covers_rounding_errors_of_reflections(seed):
    """It holds also for rows with small entries in the column and larger ones elsewhere."""
    rng, shape = np.random.default_rng(seed), (6, 3)
    given = rng.standard_normal(shape) * 2.0 ** rng.integers(-40, 1, shape)
    given = given[np.argsort(-np.abs(given[:, 0]))]
    rows = row_qr.Rows(given.reshape(-1).copy(), np.zeros(6))
    reflect(rows, 0, 6, 3, 0)
    exact = given.astype(np.longdouble)
    v = exact[:, 0].copy()
    v[0] += np.copysign(np.sqrt(v @ v), v[0])
    exact -= np.outer(2 * v / (v @ v), v @ exact)
    assert (np.abs(rows.data.reshape(shape) - exact).max(axis=1) <= rows.noise).all()
