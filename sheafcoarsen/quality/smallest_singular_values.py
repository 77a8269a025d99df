"""Number of zero singular values of a coboundary, and its smallest positive ones.

Small problems and small connected components are solved densely; large ones iteratively, in the
orthogonal complement of the global sections.
"""

import contextlib
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import EPS, linalg, ragged, threads, warned
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections import singular_pairs
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import EigenProblem, Pencil, Solver, grounded, lowest_eigenpairs

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


@threads.single_threaded_blas()
def low_pairs(
    D: scipy.sparse.csr_array,
    k: int,
    eps: float,
    size: float,
    sheaf: CellularSheaf | None = None,
    known: LowPairs | np.ndarray | None = None,
) -> LowPairs:
    """Return the first k positive singular values of D, or more to complete the last multiplet.

    Singular values up to ``size`` times the larger of 4 ``eps`` and ``max(D.shape) * EPS`` count as
    zero, where ``eps`` is that of the maps, and ``size`` is an upper bound on norm(D). The
    Laplacian of ``sheaf`` is D* D up to a factor; without it the computation is dense.
    ``known`` holds pairs from an earlier computation, perhaps cut, or approximate vectors.
    """
    n = D.shape[1]
    if not D.data.any():
        return LowPairs(np.zeros(0), np.zeros((n, 0), D.dtype), 0, n, 0.0)
    level = max(linalg.zero_level(1, eps, 1.0), max(D.shape) * EPS) * size
    problem = LowProblem(D, k, eps, size, level)
    X: Any = known
    if isinstance(known, LowPairs):
        X = known.vectors
        found, _ = problem.selected(X, known.kernel, known.zero, not known.is_cut)
        if found and found.end >= k and not problem.excess(found):
            return found
    if sheaf is not None and n > SPARSE_ABOVE:
        found = problem.by_components(sheaf)
        if found is not None:
            return found
    iteration = None if sheaf is None or n <= SPARSE_ABOVE else Iteration(problem, sheaf)
    m, direct = min(n, k), False
    while True:
        kernel, zero = 0, 0.0
        if iteration and (m * SPARSE_SHARE <= n or n > MAX_DENSE):
            if not iteration.run(m, X, direct):
                iteration, m = None, min(n, k)
                continue
            X, kernel, zero = iteration.vectors, iteration.kernel, iteration.zero
        elif n > MAX_DENSE:
            raise np.linalg.LinAlgError(
                f"the first k positive eigenvalues, the zeros and multiplets together require "
                f"more than {n // SPARSE_SHARE} of {n} eigenpairs, but the dimension is too "
                "large for a dense solver: use a smaller k"
            )
        else:
            iteration = None
            X = linalg.eigenvectors((D.conj().T @ D).toarray(), 0, min(m, n - 1))
        found, zeros = problem.selected(X, kernel, zero, X.shape[1] == n - kernel)
        if found is None:
            m = min(n - kernel, 2 * m + zeros, zeros + k + WIDENED)
        elif m == n or not (residual := problem.excess(found)):
            return found
        elif iteration and iteration.method == "multilevel":
            direct = True  # converges for any spectrum
        elif iteration and (refined := iteration.refined()) is not None:
            return refined
        elif n <= 2 * SPARSE_ABOVE or iteration is None:
            # with all vectors, rounding errors of L do not affect singular values
            iteration, m = None, n
        else:
            fine, lowest = "", found.sigma[0] ** 2 / size**2
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


class LowProblem(NamedTuple):
    """The arguments of `low_pairs`, and the selection of pairs from a subspace."""

    D: scipy.sparse.csr_array
    k: int
    eps: float
    size: float
    level: float  # up to which singular values count as zero

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
        terms = float(np.diff(D.indptr).max())
        rounding = linalg.RESIDUAL_LIMIT * EPS * terms * self.size**2 / values
        return 0.0 if (residuals <= rounding.clip(1e-4, LEAST)).all() else float(residuals.max())

    def by_components(self, sheaf: CellularSheaf) -> LowPairs | None:
        """Return the pairs of small components, decomposed densely, merged with the others.

        Small components have at most 100 columns and 400 rows; None is returned if there are none.
        The columns of D are those of the coboundary of the sheaf.
        """
        D, labels = self.D, component_labels(sheaf.n_vertices, sheaf.edges)
        count = int(labels.max(initial=-1)) + 1
        label = np.repeat(labels, sheaf.vertex_dims)
        rows, columns = D.tocoo().coords
        row_label = np.full(D.shape[0], count)  # rows without entries belong to no component
        row_label[rows] = label[columns]
        heights = np.bincount(row_label, minlength=count + 1)[:count]
        dims = np.bincount(label, minlength=count)
        small = (dims <= 100) & (heights <= 400)
        chosen = small & (dims > 0)
        if not chosen.any():
            return None
        pieces = []
        for _, members, blocks in linalg.diagonal_blocks(D, row_label, label, chosen):
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
        data, shape = (vectors, indices, ragged.offsets(lengths)), (D.shape[1], len(sigma))
        ascending, others = np.argsort(sigma, kind="stable"), ~small[label]
        alone, V = sigma[ascending], scipy.sparse.csc_array(data, shape)[:, ascending]
        zeros = int((alone <= self.level).sum())
        R = scipy.sparse.csr_array(scipy.sparse.csc_array(D)[:, np.flatnonzero(others)])
        found = low_pairs(R, self.k, self.eps, self.size, grounded(sheaf, small[labels]))
        is_all = found.kernel + len(found.sigma) == R.shape[1]
        limit = np.inf if is_all else found.sigma[-1]
        own = np.arange(zeros, int(np.searchsorted(alone, limit, side="right")))
        sigma = np.concatenate([found.sigma, alone[own]])
        order = np.argsort(sigma, kind="stable")
        end, is_cut = self.end(sigma[order], is_all)
        if end is None:  # the multiplet may contain more pairs than were found
            end, is_cut = self.k, True
        order = order[:end]
        X = np.zeros((len(others), end), found.vectors.dtype)
        first = order < len(found.sigma)
        X[np.ix_(others, first)] = found.vectors[:, order[first]]
        X[:, ~first] = V[:, own[order[~first] - len(found.sigma)]].toarray()
        zero = max(found.zero, float(alone[:zeros].max(initial=0.0)))
        return LowPairs(sigma[order], X, end, found.kernel + zeros, zero, is_cut)


class Iteration:
    """Iterative computation of eigenpairs orthogonal to the global sections of a sheaf."""

    def __init__(self, problem: LowProblem, sheaf: CellularSheaf):
        self.problem, self.sheaf, self.pencil = problem, sheaf, Pencil(sheaf)
        self.sections: Any = None

    def targets(self, values: np.ndarray) -> np.ndarray:
        """Return the target residuals for ascending Ritz values, 1e-6 of a value if possible."""
        size = self.pencil.norm
        # below 40 EPS size, further iterations would add rounding errors
        aim = np.clip(1e-6 * values, 40 * EPS * size, TOL * size / 2)
        return np.where(values <= TINY * size, TOL * size / 2, aim)

    def run(self, m: int, start: np.ndarray | None, direct: bool) -> bool:
        """Compute ``vectors`` of the lowest positive pairs, at least m + 1 if that many exist.

        ``kernel`` and ``zero`` are the number of sections and the largest norm(D x) of one. Return
        False if the complement of the kernel is so small that it is decomposed densely, or if
        vectors are sections of the sheaf, but not zeros of D.
        """
        pencil = self.pencil
        count = -(-m // pencil.copies)
        problem = EigenProblem(pencil, count, 50 * EPS, positive=True, targets=self.targets)
        is_multilevel = not direct and problem.chosen() == "multilevel"
        self.method = "multilevel" if is_multilevel else "direct"
        start = None if start is None else pencil.contract(start)
        try:
            with warned.collected():  # an unclear number of sections is no fault here
                found = lowest_eigenpairs(problem, self.method, start, self.sections)
        except np.linalg.LinAlgError:
            if self.problem.D.shape[1] > 2 * SPARSE_ABOVE:
                raise
            found = None
        if found is None:
            return False
        self.sections, Z = found.sections, pencil.expand(found.sections)
        images = scipy.sparse.csr_array(self.problem.D @ Z)
        self.kernel = Z.shape[1]
        self.zero = float(np.sqrt(abs(images).power(2).sum(axis=0).max(initial=0.0)))
        self.all_vectors = pencil.expand(found.vectors)
        self.vectors = self.all_vectors[:, : pencil.copies * (count + 1)]
        return self.zero <= self.problem.level

    def refined(self) -> LowPairs | None:
        """Return the pairs after inverse iteration, or None if it fails.

        A `Solver` scales every stalk, so hubs do not determine its rounding errors. It ends when
        norm(x - sigma^2 (D* D)^+ x) was at most ``LEAST`` before the last step.
        """
        solve, D = Solver(self.sheaf), self.problem.D
        factor = linalg.norm(coboundary(self.sheaf).data) / linalg.norm(D.data)
        X, done = self.all_vectors, False
        # ValueError: the vectors are not orthogonal to the sections
        with contextlib.suppress(NotConverged, ValueError):
            for _ in range(6):
                pairs, zeros = self.problem.selected(X, self.kernel, self.zero, False)
                if pairs is None or zeros or done:
                    return None if zeros else pairs
                inverse = solve(pairs.vectors) * factor * factor
                steps = pairs.vectors - pairs.sigma**2 * inverse
                done = bool((np.linalg.norm(steps, axis=0)[: pairs.end] <= LEAST).all())
                X = np.linalg.qr(inverse / np.linalg.norm(inverse, axis=0))[0]
        return None
