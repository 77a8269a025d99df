"""Harmonic extension: the cochain of least energy with given values at some vertices."""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import (
    EPS,
    Vertices,
    check_range,
    cochain,
    eps_of,
    flag,
    offsets,
    ranges,
    scalar_array,
    vertex_indices,
)
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections import given_values
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, trusted_sheaf, unit_sheaf
from sheafcoarsen.solve.dirichlet import grounded
from sheafcoarsen.solve.normal_equations import NormalEquations, column_units, minimize

WEAK = 4 * EPS**0.5
"""Singular value of delta_I, over its norm, below which L_II, its square, is lost in rounding."""

PROBES = 2
"""Random cochains whose projections on a kernel show its support if no basis is computed."""

TOUCHED = 1e-6
"""Entries of kernel vectors below this, relative to the largest, count as rounding."""


def harmonic_extension(
    sheaf: CellularSheaf,
    vertices: Vertices,
    values: npt.ArrayLike | Sequence[npt.ArrayLike],
    *,
    weight: float | npt.ArrayLike | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Return the cochain of least energy norm(delta x)^2 with the given values at some vertices.

    With a ``weight`` the values are guides, which x need not hold: of least energy is then
    norm(delta x)^2 plus the sum of w_v norm(x_v - value_v)^2 over the given vertices.

    With B the given vertices and I the others, x_I solves L_II x_I = -L_IB x_B, the normal
    equations of min norm(delta_I x_I + delta_B x_B). Where that leaves x_I undetermined, it is the
    solution of least norm.

    Parameters
    ----------
    sheaf : CellularSheaf
    vertices : array_like of int, shape (k,), or sequence of k names
        No vertex twice; names as :meth:`CellularSheaf.vertices_of` takes them.
    values : sequence of k arrays, or one array of shape (k, d) or (k, d, h)
        One value for each vertex, of shape (d_v,) or (d_v, h) with the same h.
    weight : float or array_like, shape (k,), optional
        Of all values or of each, above 0: how much it costs to miss them, in units of the squares
        of the maps. Infinity, as no weight, means that a value is held, and so does a weight that
        would let it change by less than rounding.
    progress : bool
        Show a progress bar.

    Returns
    -------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
        In the common scalar type of the sheaf and the values, which it holds unchanged where they
        have no weight.

    Raises
    ------
    ValueError
        Vertices that are repeated or do not exist, values of another number or shape, weights that
        are not above 0, or no vertices at all where L is singular: every global section is then an
        answer.
    NotConverged
        A numpy.linalg.LinAlgError, where the iteration does not get there.

    Warns
    -----
    SingularProblemWarning
        Where L_II is singular: a component without given values, or directions of a stalk that no
        map sees; or so nearly singular that rounding decides: maps of which some are 1e-7 of the
        others.

    Notes
    -----
    :class:`Solver` with the vertices fixed, made exact: residuals are taken as delta* (delta x) in
    double precision until they are rounding. Which directions are free :func:`global_sections`
    decides, for the sheaf on the other vertices.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(5))
    >>> sc.harmonic_extension(F, [0, 4], [[0.0], [1.0]]).round(12)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])

    With weights of the same size as those of the edges, both ends give way:

    >>> sc.harmonic_extension(F, [0, 4], [[0.0], [1.0]], weight=1.0).round(12)
    array([0.16666667, 0.33333333, 0.5       , 0.66666667, 0.83333333])
    """
    check_sheaf(sheaf)
    progress = flag("progress", progress)
    vertices = vertex_indices("vertices", vertices, sheaf, once=True)
    given = given_values(sheaf, vertices, values)
    dim_c0 = sheaf.dim_c0
    if weight is not None:
        weights = _guide_weights(weight, vertices, sheaf.dtype)
        weights[_held(sheaf, vertices, weights)] = np.inf
        sheaf, vertices = _with_guides(sheaf, vertices, weights)
    at = ranges(sheaf.vertex_offsets[vertices], sheaf.vertex_dims[vertices])
    x = np.zeros((sheaf.dim_c0, *given.shape[1:]), np.result_type(given.dtype, sheaf.dtype))
    x[at] = given
    x = cochain(sheaf, x, "values", " in all")
    fixed = np.zeros(sheaf.n_vertices, bool)
    fixed[vertices] = True
    inside = np.flatnonzero(np.repeat(~fixed, sheaf.vertex_dims))
    rest = grounded(sheaf, fixed) if len(vertices) else sheaf
    unit = unit_sheaf(rest)[1]
    scaled = unit_sheaf(sheaf)
    delta = scipy.sparse.csr_array(coboundary(scaled[0]) * (scaled[1] / unit))
    D = scipy.sparse.csr_array(scipy.sparse.csc_array(delta)[:, inside])
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    units = column_units(work)
    work = work / units
    y, problem = minimize(D, rest, -(delta @ work), progress)
    _warn_of_doubt(sheaf, vertices, inside, problem)
    x[inside] = (y * units).astype(x.dtype).reshape(len(inside), *x.shape[1:])
    return x[:dim_c0]


def _guide_weights(
    weight: float | npt.ArrayLike, vertices: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Return one weight for each given vertex."""
    weights = scalar_array("weight", np.asarray(weight))
    if weights.dtype.kind == "c":
        raise TypeError(f"`weight` must be real, got dtype {weights.dtype}")
    if weights.shape not in ((), (len(vertices),)):
        raise ValueError(
            f"`weight` must be one number or one for each of the {len(vertices)} vertices, got "
            f"shape {weights.shape}"
        )
    weights = np.full(len(vertices), weights, np.float64)
    bad = np.flatnonzero(~(weights > 0))
    if bad.size:
        i = int(bad[0])
        raise ValueError(
            f"`weight` must be above 0, got {weights[i]} for vertex {vertices[i]}: leave a vertex "
            f"out whose value does not count"
        )
    soft = weights[np.isfinite(weights)]
    if soft.size:  # their roots become maps
        for extreme in (soft.min(), soft.max()):
            check_range("weight", float(np.sqrt(extreme)), dtype)
    return weights


def _held(sheaf: CellularSheaf, vertices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a mask of the soft values with weights so large that they are held to rounding.

    Next to such a weight the maps of the sheaf would be lost in rounding.
    """
    entries = np.bincount(
        sheaf.edges.ravel(), np.repeat(sheaf.edge_dims, 2), minlength=sheaf.n_vertices
    )
    pull = (entries * sheaf.vertex_dims)[vertices] * float(sheaf.largest_entry) ** 2
    return weights * eps_of(sheaf.dtype) >= pull


def _with_guides(
    sheaf: CellularSheaf, vertices: np.ndarray, weights: np.ndarray
) -> tuple[CellularSheaf, np.ndarray]:
    """Return the sheaf with one more vertex for each soft value, and which values are held.

    The new vertex holds the value, and an edge with maps sqrt(w) I leads to it: the energy of the
    edge is what it costs to miss the value.
    """
    soft = np.flatnonzero(np.isfinite(weights))
    guided = vertices[soft]
    dims = sheaf.vertex_dims[guided]
    new = sheaf.n_vertices + np.arange(len(soft))
    squares = dims**2
    roots = np.zeros(int(squares.sum()), sheaf.dtype)
    starts = np.repeat(offsets(squares)[:-1], dims)
    rows = ranges(np.zeros(len(dims), np.int64), dims)
    roots[starts + rows * (np.repeat(dims, dims) + 1)] = np.repeat(np.sqrt(weights[soft]), dims)
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


def _warn_of_doubt(
    sheaf: CellularSheaf, vertices: np.ndarray, inside: np.ndarray, problem: NormalEquations
) -> None:
    """Warn if interior directions are free or nearly so; raise if all of them are free."""
    count, free = _free_coordinates(problem)
    if free.size:
        first = int(np.searchsorted(sheaf.vertex_offsets, inside[free[0]], side="right")) - 1
        if not len(vertices):
            raise ValueError(
                f"`vertices` is empty and L is singular, first at vertex {first}: any global "
                "section is an answer. Give some vertices, or take the section nearest to a "
                "cochain: nearest_section(sheaf, x)"
            )
        message = (
            f"the given values leave {count} of {len(inside)} dimensions free, first at vertex "
            f"{first}: the extension of least norm was taken (give a value in every component; see "
            "that maps leave no direction of a stalk out)"
        )
    elif problem.doubt is not None and len(vertices):
        message = f"the given values hardly determine the others: {problem.doubt}"
    elif len(vertices) and len(inside) and (smallest := problem.smallest()) < WEAK:
        message = (
            "the given values hardly determine the others: some direction changes norm(delta x) "
            f"by {smallest:.3g} of norm(delta) only, and rounding decides how much of it the "
            "extension has (are some maps far smaller than the others?)"
        )
    else:
        return
    warnings.warn(message, SingularProblemWarning, stacklevel=3)


def _free_coordinates(problem: NormalEquations) -> tuple[str, np.ndarray]:
    """Return the number of directions without energy, in words, and the mask of their support."""
    n = problem.D.shape[1]
    if problem.method == "plain" and problem.bound:
        random = np.random.default_rng(0).standard_normal((n, PROBES)).astype(problem.D.dtype)
        weight = np.linalg.norm(problem.kernel_part(random), axis=1)
        count = f"at least {max(n - problem.D.shape[0], 0)}"
    elif problem.kernel is None:
        return str(n * (problem.bound == 0)), np.arange(n * (problem.bound == 0))
    else:
        weight = np.sqrt(np.asarray((abs(problem.kernel) ** 2).sum(axis=1)).reshape(-1))
        count = str(problem.kernel.shape[1])
    return count, np.flatnonzero(weight > TOUCHED * weight.max(initial=0.0))
