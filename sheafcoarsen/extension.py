"""Cochains of least energy: the harmonic extension of given stalk values, and the global section nearest to a cochain."""

import contextlib
import warnings

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from sheafcoarsen._checks import SCALARS, cochain, flag, integer_array, scalar_array
from sheafcoarsen._kernels.modes import power_of_two
from sheafcoarsen._linalg import RESIDUAL_LIMIT, eps_of
from sheafcoarsen._progress import bar
from sheafcoarsen._ragged import ranges
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.factors import Factors
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

EPS = eps_of(np.float64)

DIRECT_UP_TO = 5000
"""Unknowns up to which a factorization is always affordable."""

DIRECT_CYCLES = 1000
"""Independent cycles up to which a graph is nearly a forest, and its factors nearly without fill."""

DIRECT_BEFORE = 20
"""How much is spent on a factorization: with breadth-first levels up to the size w, and this many of them, w^3 operations
against so many times depth nnz(L). Some 4 depth iterations each cost a few nnz(L). Surfaces are factored, space grids from 30^3 iterated on."""

DIRECT_AT_LAST = 30_000
"""Unknowns up to which L is factored, whatever it fills up, where iterating did not get there: minutes and a few gigabytes at most."""

SHIFT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}
"""Of L in units of its norm before it is factored, by the precision of the sheaf. What counts as zero, (n eps)^2, is far below it:
one step of the iteration then moves such a direction by less than eps."""

WEAK = 4 * EPS**0.5
"""Singular value of delta_I, over its norm, below which L_II, its square, is lost in rounding."""

PATIENCE = 500
"""Iterations without progress, beyond half of all, after which rounding is all that is left."""

ROUNDS = 4
"""Of projections at most; each takes all but 1e-6 of what is too much."""

MOST_STEPS = 20_000
"""Iterations at most."""

PROBES = 2
"""Random cochains by which a singular problem is found out; each shows a kernel with probability 1."""


def harmonic_extension(
    sheaf: CellularSheaf, vertices, values, *, return_residual: bool = False, progress: bool = False
):
    """Return the cochain of least energy norm(delta x)^2 that has the given values at some vertices.

    With B the given vertices and I the others, x_I solves L_II x_I = -L_IB x_B, the normal equations of
    min norm(delta_I x_I + delta_B x_B). Where that leaves x_I undetermined, it is the solution of least norm.

    Parameters
    ----------
    sheaf : CellularSheaf
    vertices : array_like of int, shape (k,)
        No vertex twice.
    values : sequence of k arrays, or one array of shape (k, d) or (k, d, h)
        One value for each vertex, of shape (d_v,) or (d_v, h) with the same h.
    return_residual : bool
        Return the residual too.
    progress : bool
        Show a bar of the digits reached.

    Returns
    -------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
        In the common scalar type of the sheaf and the values, which it holds unchanged.
    residual : float, or ndarray of shape (h,)
        norm of delta_I* delta x in units of norm(delta)^2 norm(x), if asked for.

    Raises
    ------
    ValueError
        Vertices that are repeated or do not exist, values of another number or shape, or no vertices at all where L is singular:
        every global section is then an answer.
    numpy.linalg.LinAlgError
        Where the iteration does not converge.

    Warns
    -----
    SingularProblemWarning
        Where L_II is singular: a component without given values, or directions of a stalk that no map sees; or so nearly singular
        that rounding decides: maps of which some are 1e-7 of the others.

    Notes
    -----
    Up to moderate fill a shifted L_II is factored and preconditions conjugate gradients on the least-squares problem, with
    residuals taken as delta* (delta x); beyond, its diagonal does, and where that does not get there, factors again, up to 30,000 unknowns. Computed in double precision. A direction of singular
    value sigma <= max(delta.shape) eps norm(delta) counts as free, eps being that of the sheaf.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(5))
    >>> sc.harmonic_extension(F, [0, 4], [[0.0], [1.0]]).round(12)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_sheaf(sheaf)
    return_residual, progress = flag("return_residual", return_residual), flag("progress", progress)
    vertices = _boundary(sheaf, vertices)
    given = _values(sheaf, vertices, values)
    at = ranges(sheaf.vertex_offsets[vertices], sheaf.vertex_dims[vertices])
    x = np.zeros((sheaf.dim_c0, *given.shape[1:]), np.result_type(given.dtype, sheaf.dtype))
    x[at] = given
    x = cochain(sheaf, x, "values", " in all")
    inside = np.ones(sheaf.dim_c0, bool)
    inside[at] = False
    inside = np.flatnonzero(inside)
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    delta = _unit_coboundary(sheaf)
    columns = scipy.sparse.csc_array(delta)
    solver = _LeastSquares(scipy.sparse.csr_array(columns[:, inside]), eps_of(sheaf.dtype), progress)
    free, smallest = solver.free_coordinates()
    if free.size:
        first = int(np.searchsorted(sheaf.vertex_offsets, inside[free[0]], side="right")) - 1
        if not len(vertices):
            raise ValueError(
                f"`vertices` is empty and L is singular, first at vertex {first}: any global section is an answer. Give some "
                "vertices, or take the section nearest to a cochain: nearest_section(sheaf, x)"
            )
        warnings.warn(
            f"the given values leave {solver.count_free()} of {len(inside)} dimensions free, first at vertex {first}: the extension of "
            "least norm was taken (give a value in every component; see that maps leave no direction of a stalk out)",
            SingularProblemWarning,
            stacklevel=2,
        )
    elif smallest < WEAK and len(vertices):
        warnings.warn(
            f"the given values hardly determine the others: some direction changes norm(delta x) by {smallest:.3g} of norm(delta) only, "
            "and rounding decides how much of it the extension has (are some maps far smaller than the others?)",
            SingularProblemWarning,
            stacklevel=2,
        )
    units = _column_units(work)
    work = work / units
    y = solver.solve(-(delta @ work), singular=bool(free.size))
    work[inside] = y
    x[inside] = (y * units).astype(x.dtype).reshape(len(inside), *x.shape[1:])
    if not return_residual:
        return x
    gradient = columns[:, inside].conj().T @ (delta @ work)
    return x, _relative(gradient, solver.bound, work, x.ndim)


def nearest_section(sheaf: CellularSheaf, x, *, return_residual: bool = False, progress: bool = False):
    """Return the orthogonal projection of x on the global sections ker delta, (I - delta^+ delta) x.

    No basis of the sections is formed, however many there are.

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)
    return_residual : bool
        Return the residual too.
    progress : bool
        Show a bar of the digits reached.

    Returns
    -------
    section : ndarray, shape of x
        In the common scalar type of x and the sheaf.
    residual : float, or ndarray of shape (h,)
        norm(delta section) in units of norm(delta) norm(x), if asked for.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the iteration does not converge.

    Notes
    -----
    Method and precision are those of :func:`harmonic_extension`, on a delta whose rows are first scaled to the same size, which
    changes no section. A unit cochain u with norm(delta u) <= max(delta.shape) eps norm(delta) counts as a section,
    eps being that of the sheaf. One with norm(delta u) = sigma beyond that is removed with a relative error of about
    eps norm(delta) / sigma.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(3))
    >>> sc.nearest_section(F, [3.0, 0.0, 0.0]).round(12)
    array([1., 1., 1.])
    """
    x = cochain(check_sheaf(sheaf), x)
    return_residual, progress = flag("return_residual", return_residual), flag("progress", progress)
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    delta, eps = _unit_coboundary(sheaf), eps_of(sheaf.dtype)
    units = _column_units(work)
    work = work / units
    solver = _LeastSquares(_equal_rows(delta, eps), eps, progress)
    section = solver.kernel_part(work)
    result = (section * units).astype(x.dtype).reshape(x.shape)
    if not return_residual:
        return result
    return result, _relative(delta @ section, np.sqrt(_square_bound(delta)), work, x.ndim)


def _boundary(sheaf, vertices) -> np.ndarray:
    vertices = integer_array("vertices", vertices)
    bad = np.flatnonzero((vertices < 0) | (vertices >= sheaf.n_vertices))
    if bad.size:
        raise ValueError(
            f"`vertices` must be numbers from 0 to {sheaf.n_vertices - 1}, got {vertices[bad[0]]} at index {bad[0]}"
        )
    _, first, place = np.unique(vertices, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[place] != np.arange(len(vertices)))
    if again.size:
        i = int(again[0])
        raise ValueError(
            f"`vertices` must not repeat, got vertex {vertices[i]} at index {first[place[i]]} and again at {i}"
        )
    return vertices


def _values(sheaf, vertices, values) -> np.ndarray:
    """Return the stalk values one after the other, (sum d_v,) or (sum d_v, h)."""
    if scipy.sparse.issparse(values) or not hasattr(values, "__len__") or isinstance(values, str | bytes | dict | set):
        raise TypeError(f"`values` must be a sequence of arrays, one for each vertex, got {type(values).__name__}")
    if len(values) != len(vertices):
        raise ValueError(
            f"`values` must hold one array for each of the {len(vertices)} vertices, got {len(values)} of them"
        )
    if not len(vertices):
        return np.zeros(0, sheaf.dtype)
    if isinstance(values, np.ndarray) and values.ndim in (2, 3):
        given = scalar_array("values", values)
        bad = np.flatnonzero(sheaf.vertex_dims[vertices] != given.shape[1])
        if bad.size:
            v = int(vertices[bad[0]])
            raise ValueError(
                f"`values[{bad[0]}]` must have shape ({sheaf.vertex_dims[v]},) or ({sheaf.vertex_dims[v]}, h), the dimension of vertex "
                f"{v}, got shape {given.shape[1:]}"
            )
        given = given.reshape(given.shape[0] * given.shape[1], *given.shape[2:])
    else:
        given = _joined(sheaf, vertices, values)
    finite = np.isfinite(as_columns(given)).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        i = int(np.searchsorted(np.cumsum(sheaf.vertex_dims[vertices]), row, side="right"))
        raise ValueError(f"`values[{i}]` must be finite, got {given[row].tolist()} for vertex {vertices[i]}")
    return given


def _joined(sheaf, vertices, values) -> np.ndarray:
    """Return a sequence of stalk values in one array."""
    try:
        arrays = [np.asarray(value) for value in values]
    except ValueError as error:
        raise ValueError(f"`values` must hold rectangular arrays of numbers: {error}") from None
    for i, array in enumerate(arrays):  # a sequence is read one by one whatever is done
        v = vertices[i]
        if array.size and array.dtype.newbyteorder("=").type not in SCALARS and array.dtype.kind not in "iu":
            raise TypeError(
                f"`values[{i}]` must hold float32, float64, complex64, complex128 or integers, got dtype {array.dtype}"
            )
        if array.ndim not in (1, 2) or len(array) != sheaf.vertex_dims[v]:
            raise ValueError(
                f"`values[{i}]` must have shape ({sheaf.vertex_dims[v]},) or ({sheaf.vertex_dims[v]}, h), the dimension of vertex "
                f"{v}, got shape {array.shape}"
            )
        if array.shape[1:] != arrays[0].shape[1:]:
            raise ValueError(
                f"`values` must all have one number of columns, got shape {arrays[0].shape} at index 0 and {array.shape} at {i}"
            )
    types = {array.dtype.newbyteorder("=") for array in arrays if array.size}
    dtype = np.result_type(sheaf.dtype, *(t if t.kind in "fc" else np.float64 for t in types))
    return np.concatenate(arrays).astype(dtype)


def _unit_coboundary(sheaf) -> scipy.sparse.csr_array:
    """Return delta in double precision, divided by the power of two just above its largest entry."""
    delta = coboundary(sheaf).astype(np.result_type(sheaf.dtype, np.float64))
    unit = power_of_two(sheaf.largest_entry)
    delta.data = (delta.data.view(np.float64) / unit).view(delta.dtype)
    return delta


def _equal_rows(delta, eps: float) -> scipy.sparse.csr_array:
    """Return delta with rows scaled by powers of two to entries of the size of 1; rows of rounding size stay as they are."""
    if 0 in delta.shape:
        return delta
    largest = abs(delta).max(axis=1).toarray().reshape(-1)
    scale = np.where(largest > eps * largest.max(initial=0.0), np.ldexp(1.0, -np.frexp(largest)[1]), 1.0)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(scale) @ delta)


def _column_units(x) -> np.ndarray:
    """Return a power of two for each column by which its largest entry becomes 1/2 .. 1."""
    return np.array([power_of_two(size) for size in np.abs(x).max(axis=0, initial=0.0)])


def _square_bound(D) -> float:
    """Return an upper bound of norm(D)^2, the product of the largest row and column sums."""
    moduli = abs(D)
    return float(moduli.sum(axis=0).max(initial=0.0)) * float(moduli.sum(axis=1).max(initial=0.0))


def _relative(error, size: float, x, ndim: int):
    sizes = size * np.linalg.norm(x, axis=0)
    residual = np.linalg.norm(error, axis=0) / np.where(sizes > 0, sizes, 1.0)
    return float(residual[0]) if ndim == 1 else residual


def _dot(x, y) -> np.ndarray:
    """Return the real parts of the inner products of columns."""
    return np.einsum("ij,ij->j", x.conj(), y).real


class _LeastSquares:
    """Solutions of least norm of min norm(D y - r), D of entries up to 1 in double precision."""

    def __init__(self, D: scipy.sparse.csr_array, eps: float, progress: bool):
        self.D, self.adjoint, self.eps, self.progress = D, scipy.sparse.csr_array(D.conj().T), eps, progress
        self.bound = _square_bound(D)
        self.L = scipy.sparse.csr_array(self.adjoint @ D)
        self.shift = SHIFT[np.dtype(np.float32 if eps > 1e-10 else np.float64)] * self.bound
        diagonal = self.L.diagonal().real
        self.scale = 1 / np.where(diagonal > 0, diagonal, 1.0)[:, None]
        self.factors: Factors | None = None
        if self.bound > 0 and _fills_little(self.L):
            with contextlib.suppress(np.linalg.LinAlgError, MemoryError):  # without them, iterate
                self.factors = Factors(self.L, self.shift)

    def precondition(self, g):
        """Return an approximation of L^+ g."""
        return self.scale * g if self.factors is None else self._solve(g)

    def _solve(self, g):
        """Return (L + shift I)^{-1} g."""
        assert self.factors is not None
        if g.dtype.kind == "c" and self.D.dtype.kind != "c":
            return self.factors.solve(g.real) + 1j * self.factors.solve(g.imag)
        return self.factors.solve(g)

    def solve(self, r, *, singular: bool) -> np.ndarray:
        """Return the y of least norm that minimizes norm(D y - r), column by column."""
        try:
            return self._solved(r, singular)
        except np.linalg.LinAlgError:
            # a kernel that the iteration overlooked was not warned of
            if not self._factored_at_last() or (not singular and self.free_coordinates()[0].size):
                raise
        return self._solved(r, singular)

    def _solved(self, r, singular: bool) -> np.ndarray:
        """Return what ``solve`` returns, by the method at hand."""
        y = self._iterate(r, self.precondition)
        y = y + self._iterate(r - self.D @ y, self.precondition)  # what is small beside r itself
        if singular:
            y = y - self.kernel_part(y) if self.factors is None else self._without_kernel(y)
        self._make_sure(r, y)
        return y

    def kernel_part(self, x) -> np.ndarray:
        """Return the orthogonal projection of x on ker D."""
        level = max(self.D.shape) * self.eps * np.sqrt(self.bound) * np.linalg.norm(x, axis=0)
        start = x
        for _ in range(ROUNDS):
            r = self.D @ x
            if self.factors is None:  # a step from zero along D* is orthogonal to the kernel
                x = x - self._iterate(r, lambda g: g / self.bound)
            else:
                x = x - self._without_kernel(self._iterate(r, self._solve))
            if (np.linalg.norm(self.D @ x, axis=0) <= level).all():
                return x
        if self._factored_at_last():
            return self.kernel_part(start)
        raise self._stopped(np.linalg.norm(self.D @ x, axis=0), level)

    def _factored_at_last(self) -> bool:
        """Factor L although it fills up, if that is bearable; tell whether there are factors now that there were not."""
        if self.factors is not None or self.L.shape[0] > DIRECT_AT_LAST:
            return False
        with contextlib.suppress(np.linalg.LinAlgError, MemoryError):
            self.factors = Factors(self.L, self.shift)
        return self.factors is not None

    def _without_kernel(self, y) -> np.ndarray:
        """Take out of y what rounding, amplified by norm(L) / shift in each solve, has put into ker D."""
        for _ in range(ROUNDS):
            z = y
            for _ in range(2):  # (I + L / shift)^{-1} keeps the kernel and little else
                z = self.shift * self._solve(z)
            z = z - self._iterate(self.D @ z, self._solve)
            y = y - z
            if (np.linalg.norm(z, axis=0) <= EPS * np.linalg.norm(y, axis=0)).all():
                break
        return y

    def _iterate(self, r, precondition) -> np.ndarray:
        """Conjugate gradients on D* D y = D* r from 0, preconditioned by M.

        A direction u of singular value sigma has a share of sigma^2 |<r, D u>|^2 / shift in the error <g, M g>. It stops where that is
        due to sigma = 4 eps norm(D), so that what counts as zero is never solved for; a few plain steps with a factored M, which do not
        care about such directions, take the others to rounding.
        """
        D, adjoint = self.D, self.adjoint
        y = np.zeros((D.shape[1], r.shape[1]), np.result_type(D.dtype, r.dtype))
        if self.bound == 0 or not r.size:
            return y
        g = adjoint @ r
        best, z = y, precondition(g)
        first = rho = lowest = _dot(g, z)
        reach = 1.0 if self.factors is None else self.bound / self.shift
        tolerance = (4 * self.eps) ** 2 * reach * _dot(r, r)
        p, idle = z, 0
        digits = bar(16, "digits", self.progress)
        for done in range(MOST_STEPS):
            if (lowest <= tolerance).all() or idle > PATIENCE + done // 2:
                break
            q = D @ p
            step = _dot(q, q)
            y = y + np.where(step > 0, rho / np.where(step > 0, step, 1.0), 0.0) * p
            before, g = g, adjoint @ (r - D @ y)
            z = precondition(g)
            old, rho = rho, _dot(g, z)
            p = z + np.where(old > 0, (rho - _dot(before, z)) / np.where(old > 0, old, 1.0), 0.0) * p
            best = np.where(rho < lowest, y, best)
            idle = 0 if (rho < lowest / 4)[lowest > tolerance].any() else idle + 1
            lowest = np.minimum(rho, lowest)
            reached = -np.log10(np.maximum(np.max(lowest / np.where(first > 0, first, 1.0)), 1e-32)) / 2
            digits.update(max(reached - digits.n, 0))
        digits.close()
        if self.factors is not None:
            for _ in range(3):
                best = best + precondition(adjoint @ (r - D @ best))
        return best

    def _stopped(self, found, allowed) -> np.linalg.LinAlgError:
        worst = float((found / np.where(allowed > 0, allowed, 1.0)).max())
        return np.linalg.LinAlgError(
            f"the iteration stopped at {worst:.3g} times the residual allowed: the maps are too ill-conditioned"
        )

    def _make_sure(self, r, y) -> None:
        gradient = np.linalg.norm(self.adjoint @ (r - self.D @ y), axis=0)
        size = self.bound * np.linalg.norm(y, axis=0) + np.sqrt(self.bound) * np.linalg.norm(r, axis=0)
        allowed = RESIDUAL_LIMIT * max(self.D.shape[1], 1) * self.eps * size
        if (gradient > allowed).any():
            raise self._stopped(gradient, allowed)

    def free_coordinates(self) -> tuple[np.ndarray, float]:
        """Return the coordinates that directions of no energy touch, ascending, and the smallest singular value found, over norm(D).

        There are none where D is injective; the singular value is then a bound from above, sharp where it is small.
        """
        n = self.D.shape[1]
        if self.bound == 0:
            return np.arange(n), 0.0 if n else 1.0
        V = np.random.default_rng(0).standard_normal((n, min(PROBES, n))).astype(self.D.dtype)
        for _ in range(2):  # once more, because the first remainder is as large as D is ill-conditioned
            size = np.linalg.norm(V, axis=0)
            V = V[:, size > 0] / size[size > 0]
            V = V - self._iterate(self.D @ V, self.precondition)
        if not V.any():
            return np.zeros(0, np.int64), 1.0
        V = scipy.linalg.qr(V, mode="economic")[0]
        Y = self.D @ V
        if len(Y) < V.shape[1]:  # so that there are as many singular values
            Y = np.vstack([Y, np.zeros_like(V[: V.shape[1]])])
        _, sigma, turn = np.linalg.svd(Y, full_matrices=False)
        sigma = sigma / np.sqrt(self.bound)
        V = V @ turn.conj().T[:, sigma <= max(self.D.shape) * self.eps]
        weight = np.linalg.norm(V, axis=1)
        return np.flatnonzero(weight > 1e-6 * weight.max()), float(sigma.min())

    def count_free(self) -> str:
        """Return how many directions have no energy: the negative pivots of L less a tiny shift (Sylvester), where they are cheap."""
        if self.bound == 0:
            return str(self.D.shape[1])
        count = -1 if self.factors is None else Factors(self.L, -1e-3 * self.shift).count_negative()
        return "some" if count < 0 else str(count)


def _fills_little(L) -> bool:
    """Tell whether L can be factored without much fill, by the widths of breadth-first levels and the number of cycles."""
    n = L.shape[0]
    if n <= DIRECT_UP_TO:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    count, labels = connected_components(L, directed=False)
    cycles = (L.nnz - int((L.diagonal() != 0).sum())) // 2 - n + count
    if cycles <= DIRECT_CYCLES:
        return True
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    start = largest[0]
    for _ in range(2):  # from an end, so that levels are separators
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    levels = np.bincount(depth[depth >= 0].astype(np.int64))
    return float(levels.max()) ** 3 <= float(DIRECT_BEFORE) * len(levels) * L.nnz
