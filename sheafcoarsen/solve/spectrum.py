"""The low spectrum of a sheaf: pairs by one of three methods, zeros by global sections."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import eps_of, zero_level
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import Factors, Order, coboundary, elimination_order, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve.bases import (
    Basis,
    beside,
    orthonormal,
    overlap,
    random_columns,
    sharpened,
    weighted,
    without,
)
from sheafcoarsen.solve.block_cg import Pairs, lowest_pairs, rayleigh_ritz
from sheafcoarsen.solve.multigrid import Multigrid, padded
from sheafcoarsen.solve.products import BlockMatrix, complex_columns, multiply, real_columns
from sheafcoarsen.solve.stalks import Matrix, adjoint, block_size, norms, unit_roots

Method = Literal["auto", "dense", "direct", "multilevel"]

METHODS = get_args(Method)

DENSE_BELOW = 800
"""Dimension up to which "auto" takes all eigenpairs."""

SETTING_UP, PER_PAIR = 5e-6, 1e-6
"""Seconds that "multilevel" takes for each dimension, and for each dimension and pair: measured,
as those below; their ratios decide."""

FACTORING, PER_ENTRY, STEPS = (2e-10, 5e-8), 1e-9, 10
"""Seconds that factors take for each operation and entry, of which "direct" needs two; seconds of a
solve for each entry and column; and its steps."""

AFFORDABLE = 30.0
"""Such seconds for factors where "auto" took "multilevel", and that did not converge."""

COUNTED_UP_TO, NEIGHBOURS = 20_000, 4.5
"""Beyond so many vertices, and so many blocks in a row of L on the average, factors fill; they are
not even counted, since to find an order takes a sixth of the time of "multilevel".
"""

GUARDS = 3
"""Columns beside the k wanted ones, at least; a fifth of k where that is more; and then as many as
fill what is worked on at a time.
"""

AIM = 0.8
"""Residuals that are aimed at, relative to those that are asked for."""

ROOM = 4
"""Dimensions per column that iterating needs; where there are fewer all pairs are computed."""

BETWEEN = 2
"""Steps on every level between the coarsest and the finest, on the way of the start."""

PROBES, PROBE_STEPS, ROUNDS = 2, 8, 4
"""Random columns beside a start that was given; steps of random columns, at least; and how often it
is begun anew.

Half of the columns beside the wanted ones are random. Measured: where the start lacked any one,
three or five of the wanted vectors, one of them found these on meshes, pose graphs and grids. Two
columns of 3 steps did not.
"""

SLOW = 8, 0.1
"""Where residuals take more steps than that to fall by this, as many columns again are taken: once,
since a multiplet that the columns cut is the reason, if anything helps.
"""

DOUBTFUL_STEPS, CLEAR = 160, 0.01
"""A start that was given may be anything: then steps go on, up to so many, until the lowest of the
columns that it did not have stands above the wanted ones by a hundred times its residual. Without
that two of 1,000 small sheaves missed a vector that the start lacked among sixty nearly equal
eigenvalues.
"""

LOW = 0.1
"""Relative to norm(L, inf), eigenvalues whose vectors of "dense" rounding may mix with a kernel by
so much that it is not seen to be one.
"""

SHIFT = 1e-12
"""Of the factorization of "direct", relative to norm(L, inf)."""

HARDLY = 1e-6
"""Share, of a vector in the kernel of L's blocks, beside the sections, that is no rounding."""

NEAR_SINGULAR = 1e-6
"""A pivot below this times the largest calls for a look at the kernel."""


@dataclass
class Found:
    """Lowest pairs beside the sections that were computed, one more than wanted if there is one."""

    values: np.ndarray
    vectors: np.ndarray
    sections: Basis
    completeness: str
    method: str
    iterations: int = 0

    def whole(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and vectors with those of the sections before them."""
        h0 = self.sections.shape[1]
        if h0 == 0:
            return self.values, self.vectors
        return np.append(np.zeros(h0), self.values), np.hstack([self.sections, self.vectors])


class LowSpectrum:
    """The lowest eigenpairs of a sheaf with maps of the size of 1.

    Parameters
    ----------
    sheaf : CellularSheaf
    k : int
        How many are wanted.
    tol : float
        Of the residuals norm(L x - t M x), relative to norm(L, inf) norm(x).
    mass : ndarray, shape (dim_c0,), optional
        The diagonal of M, the identity by default.
    positive : bool
        Whether the k are those beside all global sections; else sections are among them.
    sections_of : callable, optional
        Returns an orthonormal basis of the global sections, where it is called for.
    aims : callable, optional
        Ritz values -> residuals to iterate down to, instead of half of ``tol``. Where one is larger
        than that, the eigenvalue is known to lie within the residual, which has to do.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        k: int,
        tol: float,
        *,
        mass: np.ndarray | None = None,
        positive: bool = False,
        sections_of: Callable[[], Basis] | None = None,
        aims: Callable[[np.ndarray], np.ndarray] | None = None,
        progress: bool = False,
    ):
        self.sheaf, self.k, self.tol, self.positive = sheaf, k, tol, positive
        self.mass = mass
        self.progress, self._aims = progress, aims
        self.beyond = 0  # how many of the k are only told apart from those before them
        self.rounded: CellularSheaf | None = None  # where maps are: its sections count
        self._order: Order | None = None  # of elimination, where it was looked for
        self._sections_of = sections_of or (lambda: global_sections(sheaf).basis)
        d = block_size(sheaf.vertex_dims)
        self.L: Matrix = laplacian(sheaf, "csr" if d in (None, 1) else "bsr")
        self.n = self.L.shape[0]
        self.norm = float(abs(self.L).sum(axis=1).max(initial=0.0))

    def chosen(self) -> str:
        """Return the method that "auto" takes."""
        if self.is_small():
            return "dense"
        return "direct" if self._is_cheap_to_factor() else "multilevel"

    def is_small(self) -> bool:
        """Whether all pairs are computed at once."""
        return self.n <= DENSE_BELOW or self.small(0)

    def _is_cheap_to_factor(self) -> bool:
        """Whether factors, counted before they are made, cost less than iterating would."""
        vertices = self.sheaf.n_vertices
        if vertices > COUNTED_UP_TO and self.L.nnz * vertices > NEIGHBOURS * self.n**2:
            return False
        return self.is_factored_within(self.n * (SETTING_UP + PER_PAIR * self.k))

    def is_factored_within(self, seconds: float) -> bool:
        """Whether "direct" takes at most so long; its order of elimination is kept, then."""
        order = elimination_order(scipy.sparse.csr_array(self.L), seconds / FACTORING[0])
        factoring = FACTORING[0] * order.operations + FACTORING[1] * order.entries
        solving = PER_ENTRY * order.entries * STEPS * (self.k + GUARDS)
        if 2 * factoring + solving > seconds:
            return False
        self._order = order
        return True

    def small(self, h0: int) -> bool:
        """Whether iterating beside h0 sections is not worth it, or nothing to iterate on."""
        return self.norm == 0 or ROOM * (self.wanted(h0) + GUARDS) >= self.n - h0

    def wanted(self, h0: int) -> int:
        """Return how many pairs are wanted beside h0 sections."""
        return self.k if self.positive else max(self.k - h0, 1)

    def near(self) -> float:
        """Return the level at or below which an eigenvalue may be a zero."""
        return max(self.tol, 1e-10) * self.norm

    def pairs(
        self, method: str, start: np.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> Found | None:
        """Return the pairs by a method; None where all have to be computed beside the sections."""
        rng = np.random.default_rng(0) if rng is None else rng
        if method == "dense" or (not self.positive and self.small(0)):
            return self.dense()
        return self.direct(start, rng) if method == "direct" else self.multilevel(start, rng)

    def dense(self) -> Found:
        """Return the pairs from all of them; zeros do not depend on the mass."""
        A = self.L.toarray()
        values, X = scipy.linalg.eigh(A)
        near = int((values <= self.near()).sum())
        zeros = 0
        for m in (near, int((values <= LOW * self.norm).sum())):
            if zeros == near:
                break
            values, X = resolved(self._delta, values, X, m)
            zeros = int((values[:near] <= self._zero**2).sum())
        sections, values, X = X[:, :zeros], values[zeros:], X[:, zeros:]
        if self.mass is not None:
            roots, sections = np.sqrt(self.mass)[:, None], orthonormal(sections, self.mass)
            A = A / roots / roots.T
            values, X = scipy.linalg.eigh(A)
            m = int((values <= LOW * abs(A).sum(axis=1).max()).sum())
            C = scipy.linalg.qr(X[:, :m].conj().T @ (roots * sections))[0][:, zeros:]
            values, X = values[zeros:], np.hstack([X[:, :m] @ C, X[:, m:]]) / roots
            values, X = resolved(self._delta, values, X, m - zeros)
        m = self.k + 1
        return Found(values[:m], X[:, :m], sections[:, :m], "dense", "dense")

    def direct(self, start: np.ndarray | None, rng: np.random.Generator) -> Found | None:
        """Return the pairs by inverse iteration on factors; the signs of pivots count them."""
        pivots = np.abs(self._factors.pivots)
        singular = pivots.min() <= NEAR_SINGULAR * pivots.max()
        known = singular or "sections" in self.__dict__
        sections, steps = self.sections if known else self._none, 0
        for _ in range(ROUNDS):
            h0 = sections.shape[1]
            if h0 > self.k and not self.positive:
                return self._joined(sections, None, "direct", "probe")
            if self.small(h0):
                return None if self.positive else self.dense()
            wanted = self.wanted(h0)
            rough = lambda values, wanted=wanted: self._rough_goals(values, wanted)  # noqa: E731
            found = self._iterated(self._inverse, sections, start, rng, goals=rough)
            found = found._replace(steps=steps + found.steps)
            if not self._may_hold_zeros(found):
                cut, shift, counted = self._counted(found, h0)
                below = -1 if counted is None else counted.count_negative()
                if counted is not None and below == cut and self._aims is not None:
                    # near the shift, which is beside the last pairs, these factors do more
                    inside = self._beside(self._columns(counted.solve), sections)
                    again = self._lowest(inside, found.vectors, wanted, self._aims)
                    found = again._replace(steps=found.steps + again.steps)
            if self._may_hold_zeros(found):  # pivots do not show every kernel
                sections, start = self.sections, found.vectors
                continue
            if below == cut:
                return self._joined(sections, found, "direct", "inertia")
            if below < 0:  # not to be counted
                again = self._iterated(self._inverse, sections, found.vectors, rng, True)
                again = again._replace(steps=found.steps + again.steps)
                if not self._may_hold_zeros(again):
                    return self._joined(sections, again, "direct", "probe")
                sections, start, steps = self.sections, again.vectors, again.steps
                continue
            more = self._missing(found, sections, below - cut, rng)
            start, steps = np.hstack([found.vectors, more.vectors]), found.steps + more.steps
        raise NotConverged(
            f"method 'direct' found {cut} eigenvalues below {shift:g} where inertia counts "
            f'{below}: take method="multilevel"'
        )

    def _missing(
        self, found: Pairs, sections: Basis, count: int, rng: np.random.Generator
    ) -> Pairs:
        """Return so many more pairs beside those found.

        Iterated on their own: among pairs that have converged no step would be taken.
        """
        known = sections, found.vectors[:, : self.wanted(sections.shape[1])]  # others are rough
        columns = min(count + GUARDS, self.n - sum(basis.shape[1] for basis in known))
        Y = without(random_columns(rng, (self.n, columns), self.L.dtype), *known, mass=self.mass)
        inside = self._beside(self._inverse, *known)
        return self._lowest(inside, Y, min(count, columns), self._target)

    def _may_hold_zeros(self, found: Pairs) -> bool:
        if "sections" in self.__dict__:
            return False
        return self.count_near(found.values[:1], found.vectors[:, :1]) > 0

    def count_near(self, values: np.ndarray, X: np.ndarray) -> int:
        """Return how many values, ascending, may be zeros: whatever M, by norms of vectors."""
        return int(np.cumprod(values <= self.near() * self.squares(X)).sum())

    def squares(self, X: np.ndarray) -> np.ndarray | float:
        """Return norm(x)^2 for columns that are orthonormal in M."""
        return 1.0 if self.mass is None else norms(X) ** 2

    def _beside(self, precondition: Callable, *bases: Basis) -> Callable:
        return beside(precondition, *bases, mass=self.mass)

    def _lowest(self, *args: Any, **options: Any) -> Pairs:
        mass = None if self.mass is None else scipy.sparse.diags_array(self._real(self.mass))
        return lowest_pairs(self.apply, *args, mass=mass, **options)

    def _real(self, mass: np.ndarray) -> np.ndarray:
        """Return the masses of ``real_columns``."""
        return np.repeat(mass, 2) if self.L.dtype.kind == "c" else mass

    def _counted(self, found: Pairs, h0: int) -> tuple[int, float, Factors | None]:
        """Return how many values lie below a shift, the shift, and factors there, where they exist.

        The shift is below the multiplet of the last value, which k may cut, or before the first one
        that is not known better.
        """
        values = found.values[: self.wanted(h0)]
        scale = np.max(self.squares(found.vectors[:, len(values) - 1 : len(values)]))
        shift = values[-1] - max(4 * self.tol, np.sqrt(eps_of(self.L.dtype))) * self.norm * scale
        limit, rough = self._known_below(found, len(values))
        if rough.any():
            shift = (values[~rough].max(initial=0.0) + limit) / 2
        cut = int((values < shift).sum()) + (h0 if shift > 0 else 0)
        try:
            return cut, shift, self._factored(-shift, self.mass) if cut else None
        except np.linalg.LinAlgError:
            return cut, shift, None  # a pivot vanished

    def multilevel(self, start: np.ndarray | None, rng: np.random.Generator) -> Found | None:
        """Return the pairs by block conjugate gradients, and probe for what they lack."""
        cycle = self._cycle
        doubtful = start is not None
        if start is None:
            width = self._width(self.k)
            lifted = width - (width - self.k) // 2  # the others are random
            start = self._first(cycle, min(lifted, self.n // 4))
        # whoever takes the start holds it alone: it is as large as all else that iterating needs
        first, start = [start], None
        held = None if "sections" in self.__dict__ else cycle.kernel()
        if held is not None:
            held = held if self.positive else held[:, : self.k + 1]
            self.sections = held if self.mass is None else orthonormal(held, self.mass)
        found = None
        if not cycle.unseen and "sections" not in self.__dict__:
            # what no map sees, the cycle does not either
            found = self._iterated(cycle.cycle, self._none, first.pop(), rng, True, doubtful)
            if not self._may_hold_zeros(found):
                return self._joined(self._none, found, "multilevel", "probe")
        sections = self.sections
        h0 = sections.shape[1]
        if h0 > self.k and not self.positive:
            return self._joined(sections, None, "multilevel", "probe")
        if self.small(h0):
            return None if self.positive else self.dense()
        X = first.pop() if found is None else found.vectors
        if cycle.unseen:
            X = np.hstack([self._hardly_seen(cycle.unseen, sections, rng), X])
        again = self._iterated(cycle.cycle, sections, X, rng, found is None, doubtful)
        if found is not None:
            again = again._replace(steps=found.steps + again.steps)
        return self._joined(sections, again, "multilevel", "probe")

    def _hardly_seen(self, unseen: int, sections: Basis, rng: np.random.Generator) -> np.ndarray:
        """Return vectors beside the sections on which L is rounding, and the cycle is zero."""
        S, T = unit_roots(self.L, self.sheaf.vertex_dims)
        Y = random_columns(rng, (self.n, min(unseen, self.k + 1)), self.L.dtype)
        Y = Y - T @ (S @ Y)
        sizes = norms(Y)
        Y = Y - sections @ (sections.conj().T @ weighted(self.mass, Y))
        return Y[:, norms(Y) > HARDLY * sizes]

    @cached_property
    def _delta(self) -> scipy.sparse.csr_array:
        return coboundary(self.sheaf)

    @property
    def _zero(self) -> float:
        """The singular value of delta up to which it is zero: by how much maps were rounded."""
        size, n = np.sqrt(self.norm), max(self.sheaf.dim_c0, self.sheaf.dim_c1)
        computed = zero_level(n, eps_of(np.float64), size)
        if self.rounded is None:
            return computed
        return max(computed, zero_level(1, eps_of(np.float32), size))  # as global_sections has it

    @cached_property
    def sections(self) -> Basis:
        """A basis of ker L, dense and up to k + 1 columns where zeros are among the k.

        Zeros are decided on singular values, which eigenvalues do not resolve.
        """
        basis = self._sections_of()
        if self.rounded is not None:
            rounded = global_sections(self.rounded).basis[:, : self.k + 1]
            if rounded.shape[1] > basis.shape[1]:
                basis = sharpened(self.apply, self._precondition, rounded.astype(self.L.dtype))
        if self.positive:
            return basis
        basis = basis[:, : self.k + 1]
        basis = basis if isinstance(basis, np.ndarray) else basis.toarray()
        return basis if self.mass is None else orthonormal(basis, self.mass)

    @cached_property
    def _none(self) -> np.ndarray:
        return np.zeros((self.n, 0), self.L.dtype)

    @cached_property
    def _cycle(self) -> Multigrid:
        cycle = Multigrid(self.sheaf, L=self.L, progress=self.progress)
        cycle.forget()
        return cycle

    @cached_property
    def _factors(self) -> Factors:
        return self._factored(SHIFT * self.norm, None)

    def _precondition(self, X: np.ndarray) -> np.ndarray:
        """Return what is set up of the preconditioners, applied."""
        inverse = self._cycle.cycle if "_cycle" in self.__dict__ else self._inverse
        return complex_columns(inverse(real_columns(X))) if X.dtype.kind == "c" else inverse(X)

    def _inverse(self, X: np.ndarray) -> np.ndarray:
        return self._columns(self._factors.solve)(X)

    def _columns(self, solve: Callable) -> Callable:
        """Return an operator on real columns, those of a complex sheaf in ``real_columns``."""
        if self.L.dtype.kind != "c":
            return solve
        return lambda X: real_columns(solve(complex_columns(X)))

    def _factored(self, shift: float, mass: np.ndarray | None) -> Factors:
        A = scipy.sparse.csr_array(self.L)
        if mass is not None:
            A, shift = A + scipy.sparse.diags_array(shift * mass, format="csr"), 0.0
        return Factors(A, shift, self._order)

    def polished(self, found: Found, residual: float) -> Found:
        """Return the pairs with residuals at or below ``residual``, or as small as they get."""
        if found.method == "dense":
            return found
        precondition = self._inverse if found.method == "direct" else self._cycle.cycle
        again = self._lowest(
            self._beside(precondition, found.sections),
            found.vectors.copy(),
            self.wanted(found.sections.shape[1]),
            residual,
        )
        polished = self._joined(found.sections, again, found.method, found.completeness)
        polished.iterations += found.iterations
        return polished

    def residuals(self, found: Found) -> np.ndarray:
        """Return norm(L x - t M x) / norm(x) for every pair."""
        X = found.vectors
        return norms(self.apply(X) - weighted(self.mass, X) * found.values) / norms(X)

    @cached_property
    def _product(self) -> BlockMatrix:
        return BlockMatrix(self.L)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return L X."""
        return self._product @ X

    def _iterated(
        self,
        precondition: Callable,
        sections: Basis,
        X: np.ndarray | None,
        rng: np.random.Generator,
        seeks: bool = False,
        doubtful: bool = False,
        goals: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> Pairs:
        """Return the lowest pairs beside the sections, with residuals down to ``goals``.

        Where it ``seeks``, random columns look for what X lacks; and where X is ``doubtful``, until
        the lowest of them stands clearly above the wanted ones.
        """
        wanted, goals = self.wanted(sections.shape[1]), goals or self._goals
        inside = self._beside(precondition, sections)

        def aims(values: np.ndarray) -> np.ndarray:
            found = goals(values)
            above = values[wanted:] - values[wanted - 1 : wanted]
            found[wanted:] = np.maximum(found[wanted:], CLEAR * doubtful * above)
            return found

        X = self._none if X is None else X
        least = max(wanted, X.shape[1]) + 1 if doubtful else wanted
        more = max(self._width(wanted) - X.shape[1], int(seeks), PROBES * doubtful)
        X = np.hstack([X, random_columns(rng, (self.n, more), self.L.dtype)])
        X, steps = without(X, sections, mass=self.mass), 0
        limits: dict = {"steps": (PROBE_STEPS * seeks, 60), "stalled": SLOW}
        if doubtful:
            limits = {"steps": (PROBE_STEPS, DOUBTFUL_STEPS), "stalled": (DOUBTFUL_STEPS, 0.7)}
        for _ in range(ROUNDS):
            found = self._lowest(inside, X, least, aims, **limits)
            steps += found.steps
            lost = max(wanted + 1 - len(found.values), 0)
            allowed = np.maximum(goals(found.values), self._target)
            drifted = overlap(sections, weighted(self.mass, found.vectors)) > np.sqrt(
                eps_of(self.L.dtype)
            )
            if not (lost or drifted or (found.residuals > allowed)[:wanted].any()):
                break
            more = lost + (PROBES if "stalled" not in limits else self._width(wanted))
            limits.pop("stalled", None)
            X = np.hstack([found.vectors, random_columns(rng, (self.n, more), self.L.dtype)])
            X = without(X, sections, mass=self.mass)
        return found._replace(steps=steps)

    def _width(self, wanted: int) -> int:
        """Return how many columns are iterated for so many pairs: what is worked on at a time."""
        wanted -= self.beyond  # those do for guards
        return padded(wanted + max(GUARDS, wanted // 5, self.beyond + 1))

    @property
    def _target(self) -> float:
        return AIM * self.tol * self.norm

    def _goals(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals that are aimed at."""
        return np.full(len(values), self._target) if self._aims is None else self._aims(values)

    def _rough_goals(self, values: np.ndarray, wanted: int) -> np.ndarray:
        """Return residuals that tell the wanted pairs from the others."""
        goals = self._goals(values)
        rough = (goals > self._target) & (np.arange(len(goals)) < wanted)
        return np.maximum(goals, goals[rough].min()) if rough.any() else goals

    def _known_below(self, found: Pairs, wanted: int) -> tuple[float, np.ndarray]:
        """Return up to where the values found are all that there should be, and which are rough."""
        values, residuals = found.values[:wanted], found.residuals[:wanted]
        rough = self._goals(found.values)[:wanted] > self._target
        return float((values - residuals)[rough].min(initial=values[-1])), rough

    def _joined(
        self, sections: Basis, found: Pairs | None, method: str, completeness: str
    ) -> Found:
        """Return the sections and the pairs beside them."""
        if found is None:
            return Found(np.zeros(0), self._none, sections, completeness, method)
        return Found(found.values, found.vectors, sections, completeness, method, found.steps)

    def _massive(self, A: Matrix) -> Matrix:
        """Return M A, in the format of A."""
        if self.mass is None:
            return A
        M = scipy.sparse.csr_array(scipy.sparse.diags_array(self.mass)) @ A
        return M.tobsr(A.blocksize) if A.format == "bsr" else scipy.sparse.csr_array(M)

    def _first(self, cycle: Multigrid, m: int) -> np.ndarray:
        """Return the lowest vectors of the coarsest level, lifted and improved on the way."""
        roots = cycle.roots
        # of x* x in the coordinates of each level; smoothing matters: without it 3 steps more
        masses = [multiply(adjoint(roots), self._massive(roots))]
        for P in cycle.prolongations:
            masses.append(multiply(adjoint(P), multiply(masses[-1], P)))
        last = cycle.operators[-1].toarray()
        X = rayleigh_ritz(last, masses[-1].toarray(), min(m, len(last)))[1]
        for level in range(len(cycle.prolongations) - 1, -1, -1):
            X = cycle.prolongations[level] @ X
            if level and X.shape[1]:
                X = lowest_pairs(
                    BlockMatrix(cycle.operators[level]).__matmul__,
                    lambda R, level=level: cycle.level_cycle(level, R),
                    X,
                    X.shape[1],
                    0.0,
                    mass=BlockMatrix(masses[level]),
                    steps=(0, BETWEEN),
                ).vectors
        return np.ascontiguousarray(roots @ X)


def resolved(
    delta: scipy.sparse.csr_array, values: np.ndarray, X: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first m pairs as squared singular values of delta and their vectors, ascending.

    Eigenvalues resolve them only to the square root of rounding.
    """
    if m == 0:
        return values, X
    R = scipy.linalg.qr(delta @ X[:, :m], mode="r")[0][:m]
    singular, V = scipy.linalg.svd(R)[1:]
    singular = np.append(singular, np.zeros(m - len(singular)))[::-1]
    X = np.hstack([X[:, :m] @ V.conj().T[:, ::-1], X[:, m:]])
    return np.append(singular**2, values[m:]), X
