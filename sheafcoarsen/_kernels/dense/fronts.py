"""The first columns of a dense symmetric matrix eliminated, by BLAS and LAPACK."""

import numpy as np
from numba.extending import overload

from sheafcoarsen._kernels.dense.lapack import external
from sheafcoarsen._kernels.jit import JIT_IS_OFF


def front_room(size: int) -> tuple[np.ndarray, ...]:
    """Allocate room for fronts up to size x size, and for what BLAS takes by address."""
    return (
        np.empty(size * size),
        np.zeros(4, np.int32),  # pivots, rows below, size, info
        np.array([1.0, -1.0]),
        np.frombuffer(b"LRTN", np.uint8).copy(),
    )


def eliminate_front(size, pivots, room):
    """Overwrite a matrix, its lower triangle in columns, by its factor and what is left.

    The first ``pivots`` columns become those of its Cholesky factor, the rest the Schur complement.
    Returns LAPACK's info: 0 if the eliminated part is positive definite.
    """
    full = room[0][: size * size].reshape(size, size).T
    try:
        factor = np.linalg.cholesky(full[:pivots, :pivots])
    except np.linalg.LinAlgError:
        return 1
    below = np.linalg.solve(factor, full[pivots:, :pivots].T).T
    full[:pivots, :pivots], full[pivots:, :pivots] = factor, below
    full[pivots:, pivots:] -= np.tril(below @ below.T)
    return 0


if not JIT_IS_OFF:
    _dpotrf, _dtrsm = external("dpotrf", 5), external("dtrsm", 11, "cython_blas")
    _dsyrk = external("dsyrk", 10, "cython_blas")

    @overload(eliminate_front)
    def _compiled_eliminate_front(size, pivots, room):
        def compiled(size, pivots, room):
            front, ints, numbers, chars = room
            ints[0], ints[1], ints[2], ints[3] = pivots, size - pivots, size, 0
            k, rest, lead, info = ints.ctypes, ints[1:].ctypes, ints[2:].ctypes, ints[3:].ctypes
            one, minus = numbers.ctypes, numbers[1:].ctypes
            lower, right = chars.ctypes, chars[1:].ctypes
            across, plain = chars[2:].ctypes, chars[3:].ctypes
            corner = front.ctypes
            _dpotrf(lower, k, corner, lead, info)
            if ints[3] != 0 or size == pivots:
                return np.int64(ints[3])
            side, left = front[pivots:].ctypes, front[pivots * size + pivots :].ctypes
            _dtrsm(right, lower, across, plain, rest, k, one, corner, lead, side, lead)
            _dsyrk(lower, plain, rest, k, minus, side, lead, one, left, lead)
            return np.int64(0)

        return compiled
