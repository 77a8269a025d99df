"""The one assertion for numbers, and dense linear algebra that says what a rank is."""

import contextlib
import itertools
import tracemalloc
import warnings

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_info

from sheafcoarsen import CellularSheaf, TiedModesWarning, verify

LIMIT = 30.0
"""A residual of this many ``n eps`` times its operands' norms is all that rounding explains."""

WORST: dict[str, tuple[float, int]] = {}
"""Label of a statement -> (worst ratio, number of comparisons), of all its tests that have run."""

_running: list[str] = []


@contextlib.contextmanager
def recording(label: str | None):
    """Keep the ratios of all comparisons made inside under a statement's label; None keeps none."""
    if label is None:
        yield
        return
    WORST.setdefault(label, (0.0, 0))
    _running.append(label)
    try:
        yield
    finally:
        _running.pop()


def _record(ratio: float) -> None:
    if _running:
        worst, count = WORST[_running[-1]]
        WORST[_running[-1]] = max(worst, float(ratio)), count + 1


def residual_table() -> list[str]:
    """Return the lines of a markdown table of `WORST`."""
    rows = [("statement", "worst ratio", "comparisons")]
    rows += [
        (f"`{label}`", f"{worst:.3g}", f"{count:,}") for label, (worst, count) in WORST.items()
    ]
    first, second, third = (max(len(row[k]) for row in rows) for k in range(3))
    lines = [f"| {a:<{first}} | {b:>{second}} | {c:>{third}} |" for a, b, c in rows]
    lines.insert(1, f"|{'-' * (first + 2)}|{'-' * (second + 1)}:|{'-' * (third + 1)}:|")
    return lines


def _values(item) -> np.ndarray:
    if scipy.sparse.issparse(item):
        if not np.isfinite(item.data).all():  # as it would be after summing duplicates
            return np.array([np.nan])
        item = item.toarray()  # duplicates are summed
    return np.asarray(item)


def eps_of(*items) -> float:
    """Return the largest eps of arrays, sparse matrices and dtypes; numbers count as double."""
    found = [np.finfo(np.float64).eps]
    for item in items:
        if isinstance(item, type | np.dtype):
            dtype = np.dtype(item)
        else:
            dtype = item.dtype if hasattr(item, "dtype") else np.asarray(item).dtype
        if dtype.kind in "fc":
            found.append(np.finfo(dtype).eps)
    return float(max(found))


def size(item) -> float:
    """Return the Frobenius norm in double precision, or the modulus of a number, at any scale."""
    moduli = np.abs(_values(item)).astype(np.float64).ravel()
    largest = float(moduli.max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(moduli / largest))


def residual(error, *operands, n: int, eps: float | None = None) -> float:
    """Return ``norm(error) / (n eps product of norms)`` as in `assert_residual`; 0/0 is 0."""
    numerator = size(error)
    if numerator == 0.0:
        return 0.0
    norms = [size(operand) for operand in operands]
    if min(norms, default=1.0) == 0.0 or not np.isfinite([numerator, *norms]).all():
        return np.inf
    eps = eps_of(error, *operands) if eps is None else eps
    # by logarithms, because a product of norms may overflow or vanish
    logarithm = np.log(numerator) - np.log(max(n, 1) * eps) - np.log(norms).sum()
    return float(np.exp(min(logarithm, 700.0)))


def assert_residual(error, *operands, n: int, eps: float | None = None) -> None:
    """Assert that ``norm(error) / (n eps product of norms) < 30``, LAPACK's criterion of rounding.

    ``error`` vanishes in exact arithmetic. ``operands`` are the *factors* of the identity, not its
    result, which may be far smaller; a matrix that enters twice stands twice. With none, the error
    is measured against 1. n is the size of the block that is tested, eps that of the scalar type in
    which the library computed, by default the coarsest among the arguments.
    """
    ratio = residual(error, *operands, n=n, eps=eps)
    _record(ratio)
    norms = ", ".join(f"{size(operand):.3g}" for operand in operands)
    assert ratio < LIMIT, (
        f"norm(error) / (n eps product of norms) = {ratio:.3g}, allowed is {LIMIT:g}: "
        "norm(error) = "
        f"{size(error):.3g}, n = {n}, norms of the operands = ({norms})"
    )


def assert_closes(lines, total, bound, *, n: int, eps: float) -> None:
    """Assert that ``abs(sum - total) <= 30 n eps B (sqrt(M) + n eps B)``, M the sum of the moduli.

    ``bound`` is B = norm(delta) norm(x); see docs/conventions.md, section 4.
    """
    lines = np.asarray(lines, dtype=np.float64)
    gap = abs(lines.sum() - float(total))
    ratio = 0.0
    if gap > 0:
        allowed = np.sqrt(np.abs(lines).sum()) + n * eps * bound
        ratio = residual(gap, bound, allowed, n=n, eps=eps)
    _record(ratio)
    assert ratio < LIMIT, (
        f"the lines {lines} miss {total:.6g} by {gap:.3g}, {ratio:.3g} times rounding, "
        f"allowed is {LIMIT:g}"
    )


def singular_values(A) -> np.ndarray:
    """Return all singular values, descending, at any scale."""
    A = _values(A)
    if not A.any():
        return np.zeros(min(A.shape))
    largest = float(np.abs(A).max())
    return largest * np.linalg.svd(A / largest, compute_uv=False)


def dense_rank(A) -> int:
    """Return the number of singular values above ``max(shape) eps sigma_max`` (conventions 6)."""
    A = _values(A)
    sigma = singular_values(A)
    return int((sigma > max(A.shape) * eps_of(A) * sigma.max(initial=0)).sum())


def dense_kernel(A) -> np.ndarray:
    """Return an orthonormal basis of ker A: the right singular vectors beyond `dense_rank`."""
    A = _values(A)
    columns = A.shape[1]
    if 0 in A.shape or not A.any():
        return np.eye(columns, dtype=A.dtype)
    vh = np.linalg.svd(A / np.abs(A).max())[2]
    return vh[dense_rank(A) :].conj().T


def dense_range(A) -> np.ndarray:
    """Return an orthonormal basis of im A."""
    A = _values(A)
    if 0 in A.shape or not A.any():
        return np.zeros((A.shape[0], 0), dtype=A.dtype)
    u = np.linalg.svd(A / np.abs(A).max())[0]
    return u[:, : dense_rank(A)]


def subspace_difference(U, V) -> float:
    """Return the Frobenius norm of the difference of the projectors onto im U and im V."""
    return size(_projector(U) - _projector(V))


def _projector(U) -> np.ndarray:
    Q = dense_range(U)
    return Q @ Q.conj().T


def same_subspace(U, V, *, condition: float = 1.0, eps: float | None = None) -> bool:
    """Return whether two bases span one space up to rounding.

    ``condition`` is how far the space moves with a unit of relative perturbation: norm(L) / gap for
    eigenvectors of L whose eigenvalues are a gap away from all others.
    """
    U, V = _values(U), _values(V)
    if U.shape[0] != V.shape[0] or dense_rank(U) != dense_rank(V):
        return False
    error = subspace_difference(U, V)
    return residual(error, condition, n=max(U.shape[0], 1), eps=eps or eps_of(U, V)) < LIMIT


def maps_of(F) -> list[np.ndarray]:
    """Return copies of the tail maps and of the head maps, (m, d_e, d_v) each."""
    return [data.reshape(-1, *F.map_shape).copy() for data in (F.tail_data, F.head_data)]


@contextlib.contextmanager
def ties_allowed():
    """Silence `TiedModesWarning` in a test of what holds for every choice of modes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiedModesWarning)
        yield


def covering(first, *others) -> list[tuple]:
    """Return cases with every value of the first list and every combination of the others.

    For parameters that do not interact, where the product of all lists would repeat itself.
    """
    first, rest = list(first), list(itertools.product(*others))
    length = max(len(first), len(rest))
    # shift by one after each round, so that values are not always paired with the same others
    turns = [(i + i // len(first)) % len(first) for i in range(length)]
    return [(first[turn], *rest[i % len(rest)]) for i, turn in enumerate(turns)]


def blas_threads() -> list[int]:
    """Return the current number of threads of every BLAS library."""
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


def peak_memory(call) -> tuple:
    """Return the result of a call, and how many bytes it takes at most."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def normal(rng, shape, dtype) -> np.ndarray:
    """Draw standard normal entries, for complex types real and imaginary parts."""
    X = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        X = X + 1j * rng.standard_normal(shape)
    return X.astype(dtype)


class Tensor:
    """The part of a tensor's interface that numpy needs."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __len__(self):
        return len(self.array)


def assert_verified(item, seed=0):
    """Assert that all statements about an object hold, and return their checks."""
    V = verify(item, seed)
    assert V.passed, str(V)
    return V


def new_maps(F, kind, seed, dtype=None, scale=1.0):
    """Return a sheaf with other maps whose graph arrays are equal copies of those of F."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(F.dtype if dtype is None else dtype)
    data = []
    for old in (F.tail_data, F.head_data):
        values = rng.standard_normal(len(old))
        values += np.copysign(1, values)  # never so small that maps are out of range
        values = np.clip(np.round(values), -2, 2) if kind == "integer" else values
        if dtype.kind == "c":
            values = values + 1j * rng.permutation(values)
        if kind == "zero":
            values *= 0
        data.append((values * scale).astype(dtype))
    if kind == "partly zero":  # the maps of some edges are zero
        for e in np.flatnonzero(rng.random(F.n_edges) < 0.5):
            data[0][F.tail_offsets[e] : F.tail_offsets[e + 1]] = 0
            data[1][F.head_offsets[e] : F.head_offsets[e + 1]] = 0
    return CellularSheaf.from_flat(F.edges.copy(), *data, F.vertex_dims.copy(), F.edge_dims.copy())
