"""The k lowest eigenpairs of the whole sheaf."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    ReadOnly,
    choice,
    eps_of,
    flag,
    random_generator,
    read_only,
    scalar_array,
    single_threaded_blas,
    tables,
    whole_number,
    zero_level,
)
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, trusted_sheaf, unit_sheaf
from sheafcoarsen.solve.block_cg import rayleigh_ritz
from sheafcoarsen.solve.lines import ComplexLine, complex_line
from sheafcoarsen.solve.solver import tolerance
from sheafcoarsen.solve.spectrum import AFFORDABLE, LOW, METHODS, Found, LowSpectrum, Method

FLOOR = 1e-13
"""Of the problem without a mass matrix, a residual that rounding lets be reached."""


@dataclass(frozen=True, eq=False, repr=False)
class Eigenmodes(ReadOnly):
    """The k lowest eigenpairs of L x = lambda M x; :func:`eigenmodes` computes them.

    Attributes
    ----------
    values : ndarray, shape (k,)
        Ascending.
    vectors : ndarray, shape (dim_c0, k)
        Columns orthonormal in M (I without ``mass``). Of a multiple eigenvalue any basis.
    residuals : ndarray, shape (k,)
        norm(L x - lambda M x) / norm(L, inf), computed afresh.
    n_zero : int
        How many of the k are zero, decided by singular values of delta on their span.
    tied : bool
        Whether k cuts a multiplet: another vector has the k-th value to sqrt(eps).
    method : str
    iterations : int
    completeness : {"dense", "inertia", "probe"}
        How it is known that none is missing: all were computed; a factorization counted them;
        random columns found none below.
    sheaf : CellularSheaf
        The one that was given.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.eigenmodes(sc.gallery.cycle(6, 0.0), 2)
    Eigenmodes(k=2, values 0 .. 0, n_zero=2, method='dense', completeness='dense')
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_zero: int
    tied: bool
    method: str
    iterations: int
    completeness: str
    sheaf: CellularSheaf

    def __repr__(self) -> str:
        k = len(self.values)
        span = f"{self.values[0]:.4g} .. {self.values[-1]:.4g}" if k else "none"
        return (
            f"Eigenmodes(k={k}, values {span}, n_zero={self.n_zero}, method={self.method!r}, "
            f"completeness={self.completeness!r})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("values", tables.span(self.values)),
            ("of them zero", self.n_zero),
            ("largest residual", f"{self.residuals.max(initial=0.0):.2g}"),
            ("cuts a multiplet", self.tied),
            ("method", self.method),
            ("iterations", self.iterations),
            ("known to be complete by", self.completeness),
        ]
        return tables.table(rows, caption="Eigenmodes")


def eigenmodes(
    sheaf: CellularSheaf,
    k: int,
    *,
    tol: float = 1e-8,
    method: Method = "auto",
    mass: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Eigenmodes:
    """Return the k lowest eigenpairs of the sheaf Laplacian, complete and with multiplicities.

    Large sheaves are their own preconditioner: eigenvectors of the coarsest level are lifted and
    improved level by level, the finest one by block conjugate gradients with the multigrid cycle
    of the sheaf's coarsening; random columns then look for what the start did not contain.

    Parameters
    ----------
    sheaf : CellularSheaf
        For the normalized Laplacian, ``normalize(sheaf)``.
    k : int
        1 .. dim_c0.
    tol : float
        Of norm(L x - lambda M x) / norm(L, inf).
    method : {"auto", "dense", "direct", "multilevel"}
        All eigenpairs; inverse iteration on a factorization, counted by inertia; or the sheaf's own
        coarsening. "auto" counts what factors would cost, and takes them where they are cheaper, or
        "multilevel" does not converge and they are affordable.
    mass : array_like, shape (n,), optional
        Positive weights m_v of the vertices: L x = lambda M x with M = blockdiag(m_v I). The areas
        of a mesh's vertices, say. Where they differ by many orders of magnitude, what rounding
        allows counts as converged; ``residuals`` say how much that is.
    start : array_like, shape (dim_c0, h), optional
        Vectors near the wanted ones, to begin from; of complex ones for a real sheaf the real and
        the imaginary parts.
    seed : int
        Of the random columns.
    progress : bool

    Returns
    -------
    Eigenmodes

    Raises
    ------
    ValueError, TypeError
        k out of range, a mass that is not positive, a tolerance below rounding.
    NotConverged
        Its ``result`` holds what was found.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> E = sc.eigenmodes(sc.CellularSheaf.constant(nx.cycle_graph(6)), 3)
    >>> E.values.round(12), E.n_zero, E.tied
    (array([0., 1., 1.]), 1, False)
    """
    check_sheaf(sheaf)
    k = whole_number("k", k, at_least=1)
    if k > sheaf.dim_c0:
        raise ValueError(f"`k` must be at most dim_c0 = {sheaf.dim_c0}, got {k}")
    choice("method", method, METHODS)
    progress = flag("progress", progress)
    rng = random_generator("seed", seed)
    tol = tolerance("tol", tol, eps_of(np.float64))
    roots = _mass_roots(sheaf, mass)
    given = None if start is None else _start(sheaf, start, roots)
    work, unit = unit_sheaf(sheaf)
    whole = LowSpectrum(_weighted(work, roots), k, tol, progress=progress)
    norm, allowed = whole.norm, tol
    if mass is not None and whole.norm:
        norm = float(abs(laplacian(work)).sum(axis=1).max())
        share = norm / whole.norm / float(roots.max())  # residuals are norm(M^1/2) times as much
        whole.tol, allowed = min(tol, max(tol * share, FLOOR)), max(tol, FLOOR / share)
    spectrum, line = whole, None
    if method != "dense" and not (method == "auto" and whole.is_small()):
        line = complex_line(whole.sheaf)
    if line is not None:
        spectrum = LowSpectrum(line.sheaf, (k + 1) // 2, tol, progress=progress)
        spectrum.tol = whole.tol * whole.norm / (spectrum.norm or 1.0)
    if sheaf.dtype != work.dtype and mass is None:
        spectrum.rounded = _in_single_precision(spectrum.sheaf)
    with single_threaded_blas():
        if line is not None and given is not None:
            given = _independent(line.contract(given))
        found = spectrum.pairs(spectrum.chosen() if method == "auto" else method, given, rng)
        assert found is not None  # with the sections among the k there always is an answer
        result = _finished(whole, _expanded(found, line), unit, roots, norm, sheaf)
        reached = int((result.residuals <= allowed).sum())
        if reached < k and method == "auto" and found.method == "multilevel":
            again = _by_factors(spectrum, found, rng)
            result = _finished(whole, _expanded(again, line), unit, roots, norm, sheaf)
            reached = int((result.residuals <= allowed).sum())
    if reached < k:
        other = {"direct": "multilevel", "multilevel": "direct"}.get(result.method)
        raise NotConverged(
            f"{reached} of {k} pairs reached the residual `tol` = {tol:g} in "
            f"{result.iterations} steps of method {result.method!r}, the worst stands at "
            f"{result.residuals.max():.2g}: ask for a larger `tol`, for fewer pairs"
            + (f', or take method="{other}"' if other else "")
            + "; what was found is in the error's `result`",
            result,
        )
    return result


def _by_factors(spectrum: LowSpectrum, found: Found, rng: np.random.Generator) -> Found:
    """Return what "direct" makes of pairs that did not converge; these if factors cost too much."""
    if not spectrum.is_factored_within(AFFORDABLE):
        return found
    try:
        again = spectrum.pairs("direct", found.vectors, rng)
    except (np.linalg.LinAlgError, MemoryError):
        return found
    assert again is not None
    again.iterations += found.iterations
    return again


def _expanded(found: Found, line: ComplexLine | None) -> Found:
    """Return the pairs of the real sheaf, of which those of its complex line are two each."""
    if line is None:
        return found
    values, vectors, sections = found.values, found.vectors, found.sections
    doubled = np.repeat(values, 2), line.expand(vectors), line.expand(sections)
    return Found(*doubled, found.completeness, found.method, found.iterations)


def _finished(
    spectrum: LowSpectrum,
    found: Found,
    unit: float,
    roots: np.ndarray,
    norm: float,
    sheaf: CellularSheaf,
) -> Eigenmodes:
    """Return the result in the units and the scalar type of the sheaf."""
    whole = _orthonormal(spectrum, *found.whole())
    zero = _zero_level(spectrum, sheaf if (roots == 1).all() else spectrum.sheaf)
    values, X, n_zero = _zeros_decided(spectrum, zero, spectrum.near(), *whole)
    if found.method == "dense" and n_zero < len(values) and values[n_zero] <= spectrum.near():
        values, X, n_zero = _zeros_decided(spectrum, zero, LOW * spectrum.norm, *whole)
    k, roots = spectrum.k, np.repeat(roots, sheaf.vertex_dims)[:, None]
    following = values[k] if len(values) > k else np.inf
    values, X, n_zero = values[:k], X[:, :k], min(n_zero, k)
    residuals = np.linalg.norm(roots * (spectrum.apply(X) - X * values), axis=0)
    tie = np.sqrt(eps_of(np.float64)) * spectrum.norm
    dtype = sheaf.dtype
    return Eigenmodes(
        read_only((np.maximum(values, 0) * unit * unit).astype(dtype.type(0).real.dtype)),
        read_only((X / roots).astype(dtype)),
        read_only(residuals / (norm or 1.0)),
        n_zero,
        bool(following - values[-1] <= tie),
        found.method,
        found.iterations,
        found.completeness,
        sheaf,
    )


def _orthonormal(
    spectrum: LowSpectrum, values: np.ndarray, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Ritz pairs of the span of X where iterating has made its columns less orthonormal."""
    G = X.conj().T @ X
    drift = float(abs(G - np.eye(len(G))).max(initial=0.0))
    if drift <= RESIDUAL_LIMIT * len(X) * eps_of(X.dtype):
        return values, X
    again, C = rayleigh_ritz(X.conj().T @ spectrum.apply(X), G, len(G))
    return (again, X @ C) if len(again) == len(values) else (values, X)


def _zero_level(spectrum: LowSpectrum, sheaf: CellularSheaf) -> float:
    """Return the singular value of delta up to which it is zero: by how much maps were rounded."""
    size, n = np.sqrt(spectrum.norm), max(sheaf.dim_c0, sheaf.dim_c1)
    computed = zero_level(n, eps_of(np.float64), size)
    given = zero_level(1, eps_of(sheaf.dtype), size)  # as global_sections takes single precision
    return max(computed, given)


def _zeros_decided(
    spectrum: LowSpectrum, zero: float, level: float, values: np.ndarray, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Turn the vectors of values up to a level into singular vectors of delta; count its zeros.

    Eigenvalues resolve singular values only to the square root of rounding.
    """
    values = values.copy()
    near = int((values <= level).sum())
    if near == 0:
        return values, X, 0
    delta = coboundary(spectrum.sheaf)
    R = scipy.linalg.qr(delta @ X[:, :near], mode="r")[0][:near]
    singular, V = scipy.linalg.svd(R)[1:]
    singular = np.append(singular, np.zeros(near - len(singular)))[::-1]
    X = np.hstack([X[:, :near] @ V.conj().T[:, ::-1], X[:, near:]])
    values[:near] = singular**2
    n_zero = int((singular <= zero).sum())
    values[:n_zero] = 0
    return values, X, n_zero


def _mass_roots(sheaf: CellularSheaf, mass: npt.ArrayLike | None) -> np.ndarray:
    """Return sqrt(m_v), shape (n,)."""
    if mass is None:
        return np.ones(sheaf.n_vertices)
    weights = scalar_array("mass", mass)
    if weights.shape != (sheaf.n_vertices,) or weights.dtype.kind == "c":
        raise ValueError(
            f"`mass` must hold one real number for each of {sheaf.n_vertices} vertices, got shape "
            f"{weights.shape} of {weights.dtype}"
        )
    bad = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(
            f"`mass` must be positive and finite, got {weights[bad[0]]:g} at vertex {bad[0]}"
        )
    return np.sqrt(weights.astype(np.float64))


def _in_single_precision(sheaf: CellularSheaf) -> CellularSheaf:
    """Return the sheaf with maps rounded, for ``global_sections`` to know that they are."""
    dtype = np.complex64 if sheaf.dtype.kind == "c" else np.float32
    return sheaf.with_maps(sheaf.tail_data.astype(dtype), sheaf.head_data.astype(dtype))


def _weighted(sheaf: CellularSheaf, roots: np.ndarray) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} / sqrt(m_v), whose Laplacian is M^{-1/2} L M^{-1/2}."""
    if (roots == 1).all():
        return sheaf
    data = [
        flat / np.repeat(roots[sheaf.edges[:, end]], np.diff(starts))
        for end, flat, starts in (
            (0, sheaf.tail_data, sheaf.tail_offsets),
            (1, sheaf.head_data, sheaf.head_offsets),
        )
    ]
    return trusted_sheaf(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, *data)


def _start(sheaf: CellularSheaf, start: npt.ArrayLike, roots: np.ndarray) -> np.ndarray:
    """Return the start in the coordinates of the weighted problem, with independent columns."""
    X = scalar_array("start", start)
    if X.ndim != 2 or X.shape[0] != sheaf.dim_c0:
        raise ValueError(
            f"`start` must hold finite vectors as columns, shape ({sheaf.dim_c0}, h), got {X.shape}"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        row, column = bad[0]
        raise ValueError(f"`start[{row}, {column}]` must be finite, got {X[row, column]}")
    if X.dtype.kind == "c" and sheaf.dtype.kind != "c":  # real eigenvectors span complex ones
        X = np.hstack([X.real, X.imag])
    X = X.astype(np.result_type(X.dtype, sheaf.dtype, np.float64))
    return _independent(X * np.repeat(roots, sheaf.vertex_dims)[:, None])


def _independent(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns, without what rounding alone makes independent."""
    Q, R, _ = scipy.linalg.qr(X, mode="economic", pivoting=True)
    sizes = abs(np.diag(R))
    return Q[:, sizes > np.sqrt(eps_of(X.dtype)) * sizes.max(initial=0.0)]
