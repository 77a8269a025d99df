"""Number of zero singular values of a coboundary, and its smallest positive ones.

Small problems and small connected components are solved densely; large ones iteratively, in the
orthogonal complement of the global sections.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import (
    EPS,
    RESIDUAL_LIMIT,
    eigenvectors,
    offsets,
    ranges,
    single_threaded_blas,
)
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE
from sheafcoarsen.sections import global_sections, singular_pairs
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import (
    EigenProblem,
    Pencil,
    complex_line,
    grounded,
    independent,
    lowest_eigenpairs,
)

ENOUGH = 1e-5
"""Maximum accepted residual, relative to an eigenvalue.

The target is 1e-6. If rounding requires it, it is up to ENOUGH, for the lowest eigenvalues LEAST.
"""

TOL, TINY = 1e-8, 1e-13
"""TOL: maximum residual. TINY: rounding level of residuals. Both are relative to norm(L)."""

LEAST = 1e-2
"""Maximum residual of a pair, relative to its eigenvalue, where rounding permits no less.

The relative error of an eigenvalue that is alone is about the square of its residual.
"""

WIDENED = 100
"""Maximum number of pairs beyond the k-th that are computed to complete its multiplet.

A limit is needed because the multiplet of a star is as large as the graph.
"""


class LowPairs(NamedTuple):
    """The lowest positive singular values of a coboundary, ascending, with right singular vectors.

    The first ``end`` of them include the whole multiplet of the k-th value, or end with the k-th
    value if ``is_cut``. ``kernel`` is the number of singular values that count as zero, and
    ``zero`` the largest of these.
    """

    sigma: np.ndarray
    vectors: np.ndarray
    end: int
    kernel: int
    zero: float
    is_cut: bool = False


class KnownPairs(NamedTuple):
    """Lowest eigenvectors known from an earlier computation.

    The first ``zeros`` eigenvectors, of the eigenvalue 0, are missing; ``complete`` says whether
    the last vector ends a multiplet.
    """

    vectors: np.ndarray
    zeros: int
    complete: bool


@single_threaded_blas()
def low_pairs(
    D: scipy.sparse.csr_array,
    k: int,
    accuracy: float,
    eps: float,
    size: float,
    sheaf: CellularSheaf | None = None,
    known: KnownPairs | np.ndarray | None = None,
) -> LowPairs:
    """Return the first k positive singular values of D, or more to complete the last multiplet.

    Singular values up to ``size`` times the larger of ``accuracy`` and ``max(D.shape) * EPS`` count
    as zero, where ``size`` is an upper bound on norm(D). The Laplacian of ``sheaf`` is D* D up to a
    factor; without it the computation is dense.
    ``known`` holds known pairs or approximate vectors.
    """
    n = D.shape[1]
    if not D.data.any():
        return LowPairs(np.zeros(0), np.zeros((n, 0), D.dtype), 0, n, 0.0)
    level = max(accuracy, max(D.shape) * EPS) * size
    if isinstance(known, KnownPairs):
        before = _from_known(D, k, level, known, (eps, size))
        if before is not None:
            return before
    if sheaf is not None and n > SPARSE_ABOVE:
        parts = split_components(D, sheaf)
        if parts is not None:
            return _with_small(D, k, (level / size, eps, size), parts)
    m = min(n, k)
    start = known.vectors if isinstance(known, KnownPairs) else known
    iterated = None
    while True:
        kernel, zero = 0, 0.0
        is_sparse = n > SPARSE_ABOVE and (m * SPARSE_SHARE <= n or n > MAX_DENSE)
        if sheaf is not None and is_sparse:
            iterated = iterated or _Iterated(D, level, sheaf)
            found = iterated.pairs(m, start)
            if found is None:
                return low_pairs(D, k, accuracy, eps, size)
            start, kernel, zero = found
            X = start
        else:
            if n > MAX_DENSE:
                raise np.linalg.LinAlgError(
                    f"the first k positive eigenvalues, the zeros and multiplets together require "
                    f"more than {n // SPARSE_SHARE} of {n} eigenpairs, but the dimension is too "
                    "large for a dense solver: use a smaller k"
                )
            A = (D.conj().T @ D).toarray()
            X = eigenvectors(A, 0, min(m, n - 1))
        remaining = n - kernel  # dimension of the complement of the known kernel
        sigma, X = singular_pairs(D, X)
        zeros = int((sigma <= level).sum())
        values = sigma**2
        end, is_cut = _end(sigma, zeros, k, (eps, size), len(sigma) == remaining)
        if end is not None:
            residuals, bounds = _residuals(D, values[zeros:end], X[:, zeros:end], size)
            if m == n or (residuals <= bounds).all():
                break
            if n > SPARSE_ABOVE:
                lowest = values[zeros] / size**2
                raise np.linalg.LinAlgError(
                    f"an eigenpair has not converged, with a residual of {residuals.max():.3g} "
                    f"times its eigenvalue: the lowest is {lowest:.3g} times norm(L). If a few "
                    "maps are far larger than the others, or a few vertices have far more edges, "
                    "pass fine=eigenmodes(C.fine, "
                    f"{kernel + end + 1}, tol={max(ENOUGH * lowest, 50 * EPS):.0e}), which "
                    "includes the zeros and one pair more, or coarsen normalize(sheaf)"
                )
            m = n  # with all vectors, rounding errors of L do not affect singular values
        else:
            m = min(remaining, 2 * m + zeros, zeros + k + WIDENED)
    zero = max(zero, float(sigma[:zeros].max(initial=0.0)))
    sigma, X = sigma[zeros:], X[:, zeros:]
    return LowPairs(sigma, X, end - zeros, kernel + zeros, zero, is_cut)


def _from_known(
    D: scipy.sparse.csr_array,
    k: int,
    level: float,
    known: KnownPairs,
    precision: tuple[float, float],
) -> LowPairs | None:
    """Return the known pairs, or None if there are too few or they are too inaccurate.

    ``precision`` is that of ``_end``.
    """
    sigma, X = singular_pairs(D, known.vectors)
    values, zeros = sigma**2, int((sigma <= level).sum())
    is_complete = known.complete and len(values) >= zeros + k
    end, is_cut = _end(sigma, zeros, k, precision, is_complete)
    if end is None:
        return None
    residuals, bounds = _residuals(D, values[zeros:end], X[:, zeros:end], precision[1])
    if (residuals > bounds).any():
        return None
    zero = float(sigma[:zeros].max(initial=0.0))
    sigma, X = sigma[zeros:], X[:, zeros:]
    return LowPairs(sigma, X, end - zeros, known.zeros + zeros, zero, is_cut)


def split_components(
    D: scipy.sparse.csr_array, sheaf: CellularSheaf
) -> tuple[np.ndarray, scipy.sparse.csc_array, np.ndarray, CellularSheaf] | None:
    """Return the pairs of small components, a mask of other coordinates, and the sheaf on these.

    Small components have at most 100 columns and 400 rows. The pairs are the singular values,
    ascending, and right singular vectors as columns. Returns None if there are no small components.
    The columns of D are those of the coboundary.
    """
    labels = component_labels(sheaf.n_vertices, sheaf.edges)
    count = int(labels.max(initial=-1)) + 1
    dims = np.bincount(labels, sheaf.vertex_dims, count).astype(np.int64)
    label = np.repeat(labels, sheaf.vertex_dims)
    entries = D.tocoo()
    row_label = np.full(D.shape[0], -1)
    row_label[entries.coords[0]] = label[entries.coords[1]]
    rows = np.bincount(row_label[row_label >= 0], minlength=count)
    small = (dims <= 100) & (rows <= 400)
    if not (small & (dims > 0)).any():
        return None
    order, by_row = np.argsort(label, kind="stable"), np.argsort(row_label, kind="stable")
    starts = offsets(dims)
    inside, row_inside = np.empty(len(label), np.int64), np.empty(D.shape[0], np.int64)
    inside[order] = np.arange(len(label)) - starts[label[order]]
    row_starts = np.searchsorted(row_label[by_row], np.arange(count))
    row_inside[by_row] = np.arange(D.shape[0]) - np.append(row_starts, 0)[row_label[by_row]]
    sigma, coordinates, vectors, lengths = [], [], [], []
    of_entry = row_label[entries.coords[0]]
    for d, r in np.unique(np.stack([dims, rows], axis=1)[small & (dims > 0)], axis=0).tolist():
        members = np.flatnonzero((dims == d) & (rows == r))
        number = np.full(count, -1)
        number[members] = np.arange(len(members))
        mine = np.flatnonzero(number[of_entry] >= 0)
        blocks = np.zeros((len(members), r, d), D.dtype)
        at = [coordinate[mine] for coordinate in entries.coords]
        blocks[number[of_entry[mine]], row_inside[at[0]], inside[at[1]]] = entries.data[mine]
        _, computed, adjoints = np.linalg.svd(blocks, full_matrices=True)
        values = np.zeros((len(members), d))
        values[:, : computed.shape[1]] = computed
        sigma.append(values.ravel())
        here = order[ranges(starts[members], dims[members])].reshape(-1, d)
        coordinates.append(np.repeat(here, d, axis=0).ravel())
        vectors.append(adjoints.conj().ravel())
        lengths.append(np.full(values.size, d))
    sigmas, starts = np.concatenate(sigma), offsets(np.concatenate(lengths))
    data = np.concatenate(vectors), np.concatenate(coordinates), starts
    V = scipy.sparse.csc_array(data, shape=(D.shape[1], len(sigmas)))
    ascending = np.argsort(sigmas, kind="stable")
    return sigmas[ascending], V[:, ascending], ~small[label], grounded(sheaf, small[labels])


def _with_small(
    D: scipy.sparse.csr_array,
    k: int,
    measures: tuple[float, float, float],
    parts: tuple[np.ndarray, scipy.sparse.csc_array, np.ndarray, CellularSheaf],
) -> LowPairs:
    """Return the pairs of small components merged with the ``low_pairs`` of the other ones.

    ``measures`` holds accuracy, eps and size.
    """
    small, V, others, rest = parts
    accuracy, eps, size = measures
    zeros = int((small <= accuracy * size).sum())
    R = scipy.sparse.csr_array(scipy.sparse.csc_array(D)[:, np.flatnonzero(others)])
    found = low_pairs(R, k, accuracy, eps, size, rest)
    is_all = found.kernel + len(found.sigma) == R.shape[1]
    limit = np.inf if is_all else found.sigma[-1]
    own = np.arange(zeros, int(np.searchsorted(small, limit, side="right")))
    sigma = np.concatenate([found.sigma, small[own]])
    order = np.argsort(sigma, kind="stable")
    end, is_cut = _end(sigma[order], 0, k, (eps, size), is_all)
    if end is None:  # the multiplet may contain more pairs than were found
        end, is_cut = k, True
    order = order[:end]
    X = np.zeros((D.shape[1], end), found.vectors.dtype)
    first = order < len(found.sigma)
    X[np.ix_(others, first)] = found.vectors[:, order[first]]
    X[:, ~first] = V[:, own[order[~first] - len(found.sigma)]].toarray()
    zero = max(found.zero, float(small[:zeros].max(initial=0.0)))
    return LowPairs(sigma[order], X, end, found.kernel + zeros, zero, is_cut)


class _Iterated:
    """Iterative computation of eigenpairs orthogonal to the global sections of a sheaf."""

    def __init__(self, D: scipy.sparse.csr_array, level: float, sheaf: CellularSheaf):
        self.D, self.level = D, level
        self.known, self.zero, self.refused = 0, 0.0, False
        self.line = complex_line(sheaf)
        self.pencil = Pencil(sheaf if self.line is None else self.line.sheaf)
        self.sections: Any = None

    def _expanded(self, X: Any) -> Any:
        """Return columns as cochains of the original sheaf instead of its complex line sheaf."""
        return X if self.line is None else self.line.expand(X)

    def _targets(self, values: np.ndarray) -> np.ndarray:
        """Return the target residuals for ascending Ritz values."""
        norm = self.pencil.norm
        zeros = int((values <= TINY * norm).sum())
        targets, positive = np.full(len(values), TOL * norm / 2), values[zeros:]
        aim = np.maximum(1e-6 * positive, np.minimum(TINY * norm, ENOUGH * positive))
        # further iterations would add rounding errors
        aim = np.maximum(aim, np.minimum(40 * EPS * norm, LEAST * positive))
        targets[zeros:] = aim.clip(max=targets[zeros:])
        return targets

    def _kernel(self, method: str) -> Any:
        """Return the sections and store their number; drop all if one has norm(D x) > ``level``."""
        if self.sections is None:
            with warnings.catch_warnings():  # an unclear number of sections is no fault here
                warnings.simplefilter("ignore", SingularProblemWarning)
                Z = global_sections(self.pencil.sheaf).basis
            X = self._expanded(Z)
            squares = abs(scipy.sparse.csr_array(self.D @ X)).power(2).sum(axis=0)
            self.zero, self.known = float(np.sqrt(squares.max(initial=0.0))), X.shape[1]
            self.refused = self.zero > self.level
            if self.refused:
                Z, self.zero, self.known = Z[:, :0], 0.0, 0
            self.sections = Z
        return self.sections

    def pairs(self, m: int, start: np.ndarray | None) -> tuple[np.ndarray, int, float] | None:
        """Return vectors of the lowest positive pairs, the number of zeros and the largest zero.

        There are at least m + 1 vectors, if that many exist. Returns None if the complement of the
        kernel is so small that it is decomposed densely.
        """
        count = m if self.line is None else (m + 1) // 2
        problem = EigenProblem(
            self.pencil, count, 50 * EPS, positive=True, kernel=self._kernel, targets=self._targets
        )
        if start is not None and self.line is not None:
            start = independent(self.line.contract(start))
        method = "multilevel" if problem.chosen() == "multilevel" else "direct"
        found = lowest_eigenpairs(problem, method, start, self.sections)
        for _ in range(3):
            if found is None or (self.refused and self.pencil.n <= MAX_DENSE):
                return None
            residuals = self.pencil.residuals(found.values, found.vectors)[:count]
            values = found.values[:count]
            rounding = np.minimum(_rounding(self.D) * self.pencil.norm, LEAST * values)
            enough = np.maximum(ENOUGH * values, self._targets(found.values)[:count])
            enough = np.maximum(enough, rounding)
            if (residuals <= enough).all():
                break
            # repeat with "direct", which converges for any spectrum
            found = lowest_eigenpairs(problem, "direct", found.vectors, self.sections)
        if found is None:
            return None
        return self._expanded(found.vectors[:, : count + 1]), self.known, self.zero


def _end(
    sigma: np.ndarray, zeros: int, k: int, precision: tuple[float, float], is_all: bool
) -> tuple[int | None, bool]:
    """Return the end of the multiplet of the k-th positive value, and whether it is cut.

    ``precision`` holds the eps of the maps and the size of delta, whose product is the error of
    singular values that rounding of the maps causes. The end is None if more values are needed;
    ``is_all`` says that all values are known.
    """
    values, (eps, size) = sigma**2, precision
    tie = np.sqrt(EPS) * values[1:] + 4 * size * (EPS * size + 2 * eps * sigma[1:])
    ends = np.flatnonzero(np.diff(values) > tie) + 1
    if is_all:
        ends = np.append(ends, len(values))
    ends = ends[ends >= min(zeros + k, len(values))]
    most = zeros + k + WIDENED
    if (ends[0] if ends.size else len(values)) >= most:
        return zeros + k, True
    return (int(ends[0]) if ends.size else None), False


def _rounding(D: scipy.sparse.csr_array) -> float:
    """Return the size of rounding errors of residuals, relative to norm(D)^2."""
    return RESIDUAL_LIMIT * EPS * float(np.diff(D.indptr).max())


def _residuals(
    D: scipy.sparse.csr_array, values: np.ndarray, U: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals of pairs relative to the eigenvalues, and the largest accepted ones."""
    residuals = np.linalg.norm(D.conj().T @ (D @ U) - U * values, axis=0)
    rounding = _rounding(D) * size**2
    # at most 1e-4, or up to LEAST where rounding errors of the residual are larger
    return residuals / values, np.clip(rounding / values, 1e-4, LEAST)
