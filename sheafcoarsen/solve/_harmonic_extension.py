"""Harmonic extension of values at some vertices to all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import EPS, Vertices, checks, labels, linalg, ragged, warned
from sheafcoarsen.exceptions import NotConverged, SingularProblemWarning
from sheafcoarsen.operators import as_columns
from sheafcoarsen.sections import given_values
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, trusted_sheaf
from sheafcoarsen.solve._least_squares import NormalEquations, fit_free_vertices
from sheafcoarsen.solve._solver import vertex_at


def harmonic_extension(
    sheaf: CellularSheaf,
    vertices: Vertices,
    values: npt.ArrayLike | Sequence[npt.ArrayLike],
    *,
    weight: float | npt.ArrayLike | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Return the cochain of least energy norm(delta x)^2 with the given values at some vertices.

    With a ``weight`` the values are not constraints but penalties: x minimizes norm(delta x)^2 plus
    the sum of w_v norm(x_v - value_v)^2 over the given vertices.

    With B the given vertices and I the others, x_I solves L_II x_I = -L_IB x_B, the normal
    equations of min norm(delta_I x_I + delta_B x_B). If x_I is not unique, it is the solution of
    least norm.

    Parameters
    ----------
    sheaf : CellularSheaf
    vertices : array_like of int, shape (k,), or sequence of k names
        Distinct vertices: indices or names. Integers alone are indices; integer names are passed
        by :meth:`CellularSheaf.vertices_of`.
    values : sequence of k arrays, or one array of shape (k, d) or (k, d, h)
        One value for each vertex, of shape (d_v,) or (d_v, h) with the same h; or a number at
        stalks of dimension 1. Shape (k,) is valid if all these stalks have dimension 1.
    weight : float or array_like, shape (k,), optional
        Positive penalty weight, one for all values or one for each, in units of the squares of the
        maps. A value is a constraint if its weight is infinite, or so large that the value would
        change by less than rounding.
    progress : bool
        Show a progress bar.

    Returns
    -------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
        In the common scalar type of the sheaf and the values; values without a weight are
        unchanged.

    Raises
    ------
    ValueError
        If vertices are repeated or do not exist, values have the wrong number or shape, weights
        are not positive, or no vertices are given although L is singular.
    NotConverged
        If the iteration does not converge (a numpy.linalg.LinAlgError).

    Warns
    -----
    SingularProblemWarning
        If L_II is singular, as for a component without given values or stalk vectors that all maps
        send to 0; or so nearly singular that rounding errors can decide, as for maps 1e-7 times as
        large as others.

    Notes
    -----
    Small problems are solved by a QR decomposition of delta_I that keeps small weights exact next
    to large ones. The method of others is that of :class:`Solver` with the vertices fixed, but
    residuals are computed as delta* (delta x) in double precision and reduced to rounding level.
    :func:`global_sections` of the sheaf on the other vertices determines the free directions.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> sc.harmonic_extension(F, [0, 4], [0.0, 1.0]).round(12)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])

    With weights equal to those of the edges, the values at both ends are only approximated:

    >>> sc.harmonic_extension(F, [0, 4], [0.0, 1.0], weight=1.0).round(12)
    array([0.16666667, 0.33333333, 0.5       , 0.66666667, 0.83333333])
    """
    check_sheaf(sheaf)
    progress = checks.flag("progress", progress)
    vertices = labels.vertex_indices("vertices", vertices, sheaf, once=True)
    given = given_values(sheaf, vertices, values)
    named, dim_c0 = sheaf, sheaf.dim_c0
    if weight is not None:
        sheaf, vertices = _with_guides(sheaf, vertices, weight)
    at = ragged.ranges(sheaf.vertex_offsets[vertices], sheaf.vertex_dims[vertices])
    x = np.zeros((sheaf.dim_c0, *given.shape[1:]), np.result_type(given.dtype, sheaf.dtype))
    x[at] = given
    x = checks.cochain(sheaf, x, "values", " in all")
    fixed = np.zeros(sheaf.n_vertices, bool)
    fixed[vertices] = True
    inside = np.flatnonzero(np.repeat(~fixed, sheaf.vertex_dims))
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    zero = np.zeros((sheaf.dim_c1, work.shape[1]))
    fit, problem, _, ratio = fit_free_vertices(sheaf, fixed, work, zero, "auto", progress=progress)
    x[inside] = fit[inside].astype(x.dtype).reshape(len(inside), *x.shape[1:])
    if not ratio <= 1:
        raise NotConverged(
            f"the iteration stopped at {ratio:.3g} times the allowed residual: the maps are too "
            "ill-conditioned",
            x[:dim_c0],
        )
    _warn_if_undetermined(named, vertices, inside, problem)
    return x[:dim_c0]


def _with_guides(
    sheaf: CellularSheaf, vertices: np.ndarray, weight: float | npt.ArrayLike
) -> tuple[CellularSheaf, np.ndarray]:
    """Return the sheaf with a new vertex for each penalized value, and the fixed vertices.

    The new vertex has the given value and an edge with maps sqrt(w) I, whose energy is the penalty.
    A vertex with an infinite or very large weight is itself fixed.
    """
    weights = checks.scalar_array("weight", weight)
    if weights.dtype.kind == "c":
        raise TypeError(f"`weight` must be real, got dtype {weights.dtype}")
    if weights.shape not in ((), (len(vertices),)):
        raise ValueError(
            f"`weight` must be one number or one for each of the {len(vertices)} vertices, got "
            f"shape {weights.shape}"
        )
    weights = np.full(len(vertices), weights, np.float64)
    if (i := checks.first_true(~(weights > 0))) is not None:
        raise ValueError(
            f"`weight` must be above 0, got {weights[i]} for vertex {vertices[i]}: omit vertices "
            f"whose values do not matter"
        )
    finite = weights[np.isfinite(weights)]
    if finite.size:  # check the square roots, which become entries of maps
        for extreme in (finite.min(), finite.max()):
            checks.check_range("weight", float(np.sqrt(extreme)), sheaf.dtype)
    # from the weight pull / eps on, a value is a constraint up to rounding: the squares of the maps
    # would be lost if they were added to the weight
    ends, rows = sheaf.edges.ravel(), np.repeat(sheaf.edge_dims, 2)
    entries = np.bincount(ends, rows, minlength=sheaf.n_vertices) * sheaf.vertex_dims
    pull = entries[vertices] * float(sheaf.largest_entry) ** 2
    soft = np.flatnonzero(np.isfinite(weights) & (weights * linalg.eps_of(sheaf.dtype) < pull))
    guided = vertices[soft]
    dims = sheaf.vertex_dims[guided]
    new = sheaf.n_vertices + np.arange(len(soft))
    roots = ragged.identities(dims) * np.repeat(np.sqrt(weights[soft]), dims**2)
    roots = roots.astype(sheaf.dtype)
    held = vertices.copy()
    held[soft] = new
    with_guides = trusted_sheaf(
        np.concatenate([sheaf.edges, np.stack([guided, new], axis=1)]),
        np.concatenate([sheaf.vertex_dims, dims]),
        np.concatenate([sheaf.edge_dims, dims]),
        np.concatenate([sheaf.tail_data, roots]),
        np.concatenate([sheaf.head_data, roots]),
    )
    return with_guides, held


def _warn_if_undetermined(
    sheaf: CellularSheaf, vertices: np.ndarray, inside: np.ndarray, problem: NormalEquations
) -> None:
    """Warn if directions are (nearly) free; raise an error if some are and no values are given."""
    count, free = _free_coordinates(problem)
    weak = 4 * EPS**0.5  # L_II cannot resolve singular values of delta_I below weak norm(delta_I)
    if free.size:
        name = vertex_at(sheaf, inside[free[0]])
        if not len(vertices):
            raise ValueError(
                f"`vertices` is empty and L is singular, first at vertex {name}: any global "
                "section is a solution. Pass some vertices, or use nearest_section(sheaf, x), the "
                "section nearest to a cochain"
            )
        message = (
            f"the given values leave {count} of {len(inside)} dimensions free, first at vertex "
            f"{name}: the extension of least norm is returned (pass a value in every component; "
            "inside one, sections that vanish at all given vertices are free, see global_sections)"
        )
    elif problem.rank_warning is not None and len(vertices):
        message = f"the given values hardly determine the others: {problem.rank_warning}"
    elif len(vertices) and len(inside) and (smallest := problem.smallest()) < weak:
        message = (
            "the given values hardly determine the others: in some direction delta has only "
            f"{smallest:.3g} of its norm, and rounding errors can decide the extension there "
            "(are some maps far smaller than the others?)"
        )
    else:
        return
    warned.warn(message, SingularProblemWarning)


def _free_coordinates(problem: NormalEquations) -> tuple[str, np.ndarray]:
    """Return the dimension of the kernel, as text, and the indices of its nonzero coordinates."""
    rows, n = problem.D.shape
    if problem.bound == 0:
        return str(n), np.arange(n)
    if problem.method == "plain":
        # the projections of two random cochains show where the kernel is not zero
        random = np.random.default_rng(0).standard_normal((n, 2)).astype(problem.D.dtype)
        count, basis = f"at least {max(n - rows, 0)}", problem.kernel_part(random)
    elif problem.kernel is None:
        return "0", np.arange(0)
    else:
        count, basis = str(problem.kernel.shape[1]), problem.kernel
    weight = np.sqrt(np.asarray((abs(basis) ** 2).sum(axis=1)).reshape(-1))
    # entries of a kernel vector up to 1e-6 times the largest one count as rounding errors
    return count, np.flatnonzero(weight > 1e-6 * weight.max(initial=0.0))
