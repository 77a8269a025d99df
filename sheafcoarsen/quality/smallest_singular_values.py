"""Number of zero singular values of a coboundary, and its smallest positive ones.

Small problems and small connected components are solved densely; large ones iteratively, in the
orthogonal complement of the global sections.
"""

import contextlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import EPS, linalg, ragged, threads, warned
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections import global_sections, singular_pairs
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import (
    EigenProblem,
    Pencil,
    Solver,
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


@threads.single_threaded_blas()
def low_pairs(
    D: scipy.sparse.csr_array,
    k: int,
    eps: float,
    size: float,
    sheaf: CellularSheaf | None = None,
    known: KnownPairs | np.ndarray | None = None,
) -> LowPairs:
    """Return the first k positive singular values of D, or more to complete the last multiplet.

    Singular values up to ``size`` times the larger of 4 ``eps`` and ``max(D.shape) * EPS`` count as
    zero, where ``eps`` is that of the maps, and ``size`` is an upper bound on norm(D). The
    Laplacian of ``sheaf`` is D* D up to a factor; without it the computation is dense.
    ``known`` holds known pairs or approximate vectors.
    """
    level = max(linalg.zero_level(1, eps, 1.0), max(D.shape) * EPS) * size
    return LowProblem(D, k, eps, size, level, sheaf).solve(known)


@dataclass(frozen=True)
class LowProblem:
    """The arguments of `low_pairs`; singular values up to ``level`` count as zero."""

    D: scipy.sparse.csr_array
    k: int
    eps: float
    size: float
    level: float
    sheaf: CellularSheaf | None

    def solve(self, known: KnownPairs | np.ndarray | None = None) -> LowPairs:
        """Return the known pairs, or those of an iterative or a dense solver."""
        D, n, sheaf = self.D, self.D.shape[1], self.sheaf
        if not D.data.any():
            return LowPairs(np.zeros(0), np.zeros((n, 0), D.dtype), 0, n, 0.0)
        X: Any = known
        if isinstance(known, KnownPairs):
            X = known.vectors
            found, _ = self.selected(X, known.zeros, 0.0, known.complete)
            if found and found.end >= self.k and not self.excess(found):
                return found
        if sheaf is not None and n > SPARSE_ABOVE:
            parts = split_components(D, sheaf)
            if parts is not None:
                return self.with_small(*parts)
        m, iterated = min(n, self.k), None
        while True:
            kernel, zero = 0, 0.0
            is_sparse = n > SPARSE_ABOVE and (m * SPARSE_SHARE <= n or n > MAX_DENSE)
            if sheaf is not None and is_sparse:
                iterated = iterated or _Iterated(D, self.level, sheaf)
                X = iterated.vectors(m, X)
                if X is None:
                    return replace(self, sheaf=None).solve()
                kernel, zero = iterated.known, iterated.zero
            elif n > MAX_DENSE:
                raise np.linalg.LinAlgError(
                    f"the first k positive eigenvalues, the zeros and multiplets together require "
                    f"more than {n // SPARSE_SHARE} of {n} eigenpairs, but the dimension is too "
                    "large for a dense solver: use a smaller k"
                )
            else:
                X = linalg.eigenvectors((D.conj().T @ D).toarray(), 0, min(m, n - 1))
            found, zeros = self.selected(X, kernel, zero, X.shape[1] == n - kernel)
            if found is None:
                m = min(n - kernel, 2 * m + zeros, zeros + self.k + WIDENED)
            elif m == n or not (residual := self.excess(found)):
                return found
            elif iterated and (refined := iterated.refined(self)) is not None:
                return refined
            elif n <= 2 * SPARSE_ABOVE or iterated is None:
                # with all vectors, rounding errors of L do not affect singular values
                sheaf, m = None, n
            else:
                fine, lowest = "", found.sigma[0] ** 2 / self.size**2
                if isinstance(known, np.ndarray):  # approximations, not pairs of the user
                    fine = (
                        f"pass fine=eigenmodes(C.fine, {found.kernel + found.end + 1}, tol=1e-13), "
                        "which includes the zeros and one pair more, or "
                    )
                raise np.linalg.LinAlgError(
                    f"an eigenpair has not converged, with a residual of {residual:.3g} "
                    f"times its eigenvalue: the lowest is at most {lowest:.3g} times norm(L). If a "
                    "few maps are far larger than the others, or a few vertices have far more "
                    f"edges, {fine}coarsen normalize(sheaf)"
                )

    def selected(
        self, X: np.ndarray, kernel: int, zero: float, is_all: bool
    ) -> tuple[LowPairs | None, int]:
        """Return the pairs in span X, or None if more are needed, and the number of zeros in it.

        ``kernel`` and ``zero`` belong to zeros orthogonal to X; ``is_all`` is that of `end`.
        """
        sigma, X = singular_pairs(self.D, X)
        zeros = int((sigma <= self.level).sum())
        zero = max(zero, float(sigma[:zeros].max(initial=0.0)))
        sigma, X = sigma[zeros:], X[:, zeros:]
        end, is_cut = self.end(sigma, is_all)
        if end is None:
            return None, zeros
        return LowPairs(sigma, X, end, kernel + zeros, zero, is_cut), zeros

    def end(self, sigma: np.ndarray, is_all: bool) -> tuple[int | None, bool]:
        """Return the end of the multiplet of the k-th positive value, and whether it is cut.

        Rounding of the maps causes errors of ``eps`` ``size`` in singular values. The end is None
        if more values are needed; ``is_all`` says that no more values exist.
        """
        values, size = sigma**2, self.size
        tie = np.sqrt(EPS) * values[1:] + 4 * size * (EPS * size + 2 * self.eps * sigma[1:])
        ends = np.flatnonzero(np.diff(values) > tie) + 1
        if is_all:
            ends = np.append(ends, len(values))
        ends = ends[ends >= min(self.k, len(values))]
        if (ends[0] if ends.size else len(values)) >= self.k + WIDENED:
            return self.k, True
        return (int(ends[0]) if ends.size else None), False

    def excess(self, found: LowPairs) -> float:
        """Return the largest residual relative to an eigenvalue, or 0 if all are acceptable."""
        D, values, U = self.D, found.sigma[: found.end] ** 2, found.vectors[:, : found.end]
        residuals = np.linalg.norm(D.conj().T @ (D @ U) - U * values, axis=0) / values
        # at most 1e-4, or up to LEAST where rounding errors of the residual are larger
        rounding = _rounding(D) * self.size**2 / values
        return 0.0 if (residuals <= rounding.clip(1e-4, LEAST)).all() else float(residuals.max())

    def with_small(
        self,
        small: np.ndarray,
        V: scipy.sparse.csc_array,
        others: np.ndarray,
        rest: CellularSheaf,
    ) -> LowPairs:
        """Return the pairs of small components, from `split_components`, merged with the others."""
        zeros = int((small <= self.level).sum())
        R = scipy.sparse.csr_array(scipy.sparse.csc_array(self.D)[:, np.flatnonzero(others)])
        found = replace(self, D=R, sheaf=rest).solve()
        is_all = found.kernel + len(found.sigma) == R.shape[1]
        limit = np.inf if is_all else found.sigma[-1]
        own = np.arange(zeros, int(np.searchsorted(small, limit, side="right")))
        sigma = np.concatenate([found.sigma, small[own]])
        order = np.argsort(sigma, kind="stable")
        end, is_cut = self.end(sigma[order], is_all)
        if end is None:  # the multiplet may contain more pairs than were found
            end, is_cut = self.k, True
        order = order[:end]
        X = np.zeros((len(others), end), found.vectors.dtype)
        first = order < len(found.sigma)
        X[np.ix_(others, first)] = found.vectors[:, order[first]]
        X[:, ~first] = V[:, own[order[~first] - len(found.sigma)]].toarray()
        zero = max(found.zero, float(small[:zeros].max(initial=0.0)))
        return LowPairs(sigma[order], X, end, found.kernel + zeros, zero, is_cut)


def split_components(
    D: scipy.sparse.csr_array, sheaf: CellularSheaf
) -> tuple[np.ndarray, scipy.sparse.csc_array, np.ndarray, CellularSheaf] | None:
    """Return the singular pairs of small components, and a mask and the sheaf of the rest.

    Small components have at most 100 columns and 400 rows. The pairs are the singular values,
    ascending, and right singular vectors as columns. Returns None if there are no small components.
    The columns of D are those of the coboundary.
    """
    labels = component_labels(sheaf.n_vertices, sheaf.edges)
    count = int(labels.max(initial=-1)) + 1
    label = np.repeat(labels, sheaf.vertex_dims)
    rows, columns = D.tocoo().coords
    row_label = np.full(D.shape[0], count)  # rows without entries belong to no component
    row_label[rows] = label[columns]
    heights, dims = (np.bincount(part, minlength=count + 1)[:count] for part in (row_label, label))
    small = (dims <= 100) & (heights <= 400)
    if not (small & (dims > 0)).any():
        return None
    pieces = []
    for _, members, blocks in linalg.diagonal_blocks(D, row_label, label, small & (dims > 0)):
        _, sigma, adjoints = np.linalg.svd(blocks, full_matrices=True)
        n, d = members.shape
        values = np.zeros((n, d))
        values[:, : sigma.shape[1]] = sigma
        indices = np.repeat(members, d, axis=0)
        pieces.append((values, adjoints.conj(), indices, np.full((n, d), d)))
    sigma, vectors, indices, lengths = (
        np.concatenate([array.reshape(-1) for array in arrays])
        for arrays in zip(*pieces, strict=True)
    )
    data = vectors, indices, ragged.offsets(lengths)
    V = scipy.sparse.csc_array(data, shape=(D.shape[1], len(sigma)))
    ascending = np.argsort(sigma, kind="stable")
    return sigma[ascending], V[:, ascending], ~small[label], grounded(sheaf, small[labels])


class _Iterated:
    """Iterative computation of eigenpairs orthogonal to the global sections of a sheaf."""

    def __init__(self, D: scipy.sparse.csr_array, level: float, sheaf: CellularSheaf):
        self.D, self.level, self.sheaf = D, level, sheaf
        self.known, self.zero, self.refused = 0, 0.0, False
        self.line = complex_line(sheaf)
        self.pencil = Pencil(sheaf if self.line is None else self.line.sheaf)
        self.sections: Any = None
        self.last: Any = None  # all vectors of the last iteration

    def _expanded(self, X: Any) -> Any:
        """Map cochains of the complex line sheaf, if one is used, to the original sheaf."""
        return X if self.line is None else self.line.expand(X)

    def _targets(self, values: np.ndarray) -> np.ndarray:
        """Return the target residuals for ascending Ritz values."""
        size = self.pencil.norm
        zeros = int((values <= TINY * size).sum())
        targets, positive = np.full(len(values), TOL * size / 2), values[zeros:]
        aim = np.maximum(1e-6 * positive, np.minimum(TINY * size, ENOUGH * positive))
        # further iterations would add rounding errors
        aim = np.maximum(aim, np.minimum(40 * EPS * size, LEAST * positive))
        targets[zeros:] = aim.clip(max=targets[zeros:])
        return targets

    def _kernel(self, method: str) -> Any:
        """Return the sections and store their number; drop all if one has norm(D x) > ``level``."""
        with warned.collected():  # an unclear number of sections is no fault here
            Z = global_sections(self.pencil.sheaf).basis
        X = self._expanded(Z)
        squares = abs(scipy.sparse.csr_array(self.D @ X)).power(2).sum(axis=0)
        self.zero, self.known = float(np.sqrt(squares.max(initial=0.0))), X.shape[1]
        self.refused = self.zero > self.level
        if self.refused:
            Z, self.zero, self.known = Z[:, :0], 0.0, 0
        self.sections = Z
        return Z

    def vectors(self, m: int, start: np.ndarray | None) -> np.ndarray | None:
        """Return vectors of the lowest positive pairs, at least m + 1 if that many exist.

        ``known`` and ``zero`` then are the number of sections and the largest norm(D x) of one.
        Returns None if the complement of the kernel is so small that it is decomposed densely.
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
            if (residuals <= np.maximum(enough, rounding)).all():
                break
            # repeat with "direct", which converges for any spectrum
            found = lowest_eigenpairs(problem, "direct", found.vectors, self.sections)
        if found is None:
            return None
        self.last = self._expanded(found.vectors)
        return self._expanded(found.vectors[:, : count + 1])

    def refined(self, problem: LowProblem) -> LowPairs | None:
        """Return the pairs after inverse iteration, or None if it fails.

        A `Solver` scales every stalk, so hubs do not determine its rounding errors. It ends when
        norm(x - sigma^2 (D* D)^+ x) was at most ``LEAST`` before the last step.
        """
        if self.refused:
            return None
        solve, factor = (
            Solver(self.sheaf),
            linalg.norm(coboundary(self.sheaf).data) / linalg.norm(self.D.data),
        )
        X, done = self.last, False
        # ValueError: the vectors are not orthogonal to the sections
        with contextlib.suppress(NotConverged, ValueError):
            for _ in range(6):
                pairs, zeros = problem.selected(X, self.known, self.zero, False)
                if pairs is None or zeros or done:
                    return None if zeros else pairs
                inverse = solve(pairs.vectors) * factor * factor
                steps = pairs.vectors - pairs.sigma**2 * inverse
                done = bool((np.linalg.norm(steps, axis=0)[: pairs.end] <= LEAST).all())
                X = np.linalg.qr(inverse / np.linalg.norm(inverse, axis=0))[0]
        return None


def _rounding(D: scipy.sparse.csr_array) -> float:
    """Return the size of rounding errors of residuals, relative to norm(D)^2."""
    return linalg.RESIDUAL_LIMIT * EPS * float(np.diff(D.indptr).max())
