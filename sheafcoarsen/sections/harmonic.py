"""Values given at some vertices, extended with least energy."""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import (
    SCALARS,
    cochain,
    eps_of,
    flag,
    integer_array,
    ranges,
    scalar_array,
)
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import as_columns
from sheafcoarsen.sections.least_squares import (
    WEAK,
    LeastSquares,
    column_units,
    relative_size,
    unit_coboundary,
)
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


def harmonic_extension(
    sheaf: CellularSheaf,
    vertices: npt.ArrayLike,
    values: npt.ArrayLike | Sequence[npt.ArrayLike],
    *,
    return_residual: bool = False,
    progress: bool = False,
) -> np.ndarray | tuple:
    """Return the cochain of least energy norm(delta x)^2 that has the given values at some vertices.

    With B the given vertices and I the others, x_I solves L_II x_I = -L_IB x_B, the normal
    equations of min norm(delta_I x_I + delta_B x_B). Where that leaves x_I undetermined, it is the
    solution of least norm.

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
        Vertices that are repeated or do not exist, values of another number or shape, or no
        vertices at all where L is singular: every global section is then an answer.
    numpy.linalg.LinAlgError
        Where the iteration does not converge.

    Warns
    -----
    SingularProblemWarning
        Where L_II is singular: a component without given values, or directions of a stalk that no
        map sees; or so nearly singular that rounding decides: maps of which some are 1e-7 of the
        others.

    Notes
    -----
    Up to moderate fill a shifted L_II is factored and preconditions conjugate gradients on the
    least-squares problem, with residuals taken as delta* (delta x); beyond, its diagonal does, and
    where that does not get there, factors again, up to 30,000 unknowns. Computed in double
    precision. A direction of singular value sigma <= max(delta.shape) eps norm(delta) counts as
    free, eps being that of the sheaf.

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
    delta = unit_coboundary(sheaf)
    columns = scipy.sparse.csc_array(delta)
    solver = LeastSquares(scipy.sparse.csr_array(columns[:, inside]), eps_of(sheaf.dtype), progress)
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
    units = column_units(work)
    work = work / units
    y = solver.solve(-(delta @ work), singular=bool(free.size))
    work[inside] = y
    x[inside] = (y * units).astype(x.dtype).reshape(len(inside), *x.shape[1:])
    if not return_residual:
        return x
    gradient = columns[:, inside].conj().T @ (delta @ work)
    return x, relative_size(gradient, solver.bound, work, x.ndim)


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
    if (
        scipy.sparse.issparse(values)
        or not hasattr(values, "__len__")
        or isinstance(values, str | bytes | dict | set)
    ):
        raise TypeError(
            f"`values` must be a sequence of arrays, one for each vertex, got {type(values).__name__}"
        )
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
        raise ValueError(
            f"`values[{i}]` must be finite, got {given[row].tolist()} for vertex {vertices[i]}"
        )
    return given


def _joined(sheaf, vertices, values) -> np.ndarray:
    """Return a sequence of stalk values in one array."""
    try:
        arrays = [np.asarray(value) for value in values]
    except ValueError as error:
        raise ValueError(f"`values` must hold rectangular arrays of numbers: {error}") from None
    for i, array in enumerate(arrays):  # a sequence is read one by one whatever is done
        v = vertices[i]
        if (
            array.size
            and array.dtype.newbyteorder("=").type not in SCALARS
            and array.dtype.kind not in "iu"
        ):
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
