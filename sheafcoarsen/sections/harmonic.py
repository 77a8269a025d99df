"""Values given at some vertices, extended with least energy."""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import cochain, eps_of, flag, ranges
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections.boundary import given_values, given_vertices
from sheafcoarsen.sections.normal_equations import WEAK, NormalEquations, column_units
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, unit_sheaf


def harmonic_extension(
    sheaf: CellularSheaf,
    vertices: npt.ArrayLike,
    values: npt.ArrayLike | Sequence[npt.ArrayLike],
    *,
    progress: bool = False,
) -> np.ndarray:
    """Return the cochain of least energy norm(delta x)^2 with the given values at some vertices.

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
    progress : bool
        Show a bar of the digits reached.

    Returns
    -------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
        In the common scalar type of the sheaf and the values, which it holds unchanged.

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
    progress = flag("progress", progress)
    vertices = given_vertices(sheaf, vertices)
    given = given_values(sheaf, vertices, values)
    at = ranges(sheaf.vertex_offsets[vertices], sheaf.vertex_dims[vertices])
    x = np.zeros((sheaf.dim_c0, *given.shape[1:]), np.result_type(given.dtype, sheaf.dtype))
    x[at] = given
    x = cochain(sheaf, x, "values", " in all")
    inside = np.ones(sheaf.dim_c0, bool)
    inside[at] = False
    inside = np.flatnonzero(inside)
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    delta = coboundary(unit_sheaf(sheaf)[0])
    columns = scipy.sparse.csc_array(delta)
    solver = NormalEquations(
        scipy.sparse.csr_array(columns[:, inside]), eps_of(sheaf.dtype), progress
    )
    free, smallest = solver.free_coordinates()
    _warn_of_doubt(sheaf, vertices, inside, solver, free, smallest)
    units = column_units(work)
    work = work / units
    y = solver.solve(-(delta @ work), singular=bool(free.size))
    x[inside] = (y * units).astype(x.dtype).reshape(len(inside), *x.shape[1:])
    return x


def _warn_of_doubt(
    sheaf: CellularSheaf,
    vertices: np.ndarray,
    inside: np.ndarray,
    solver: NormalEquations,
    free: np.ndarray,
    smallest: float,
) -> None:
    """Warn where directions inside are free, or hardly determined; refuse all free."""
    if free.size:
        first = int(np.searchsorted(sheaf.vertex_offsets, inside[free[0]], side="right")) - 1
        if not len(vertices):
            raise ValueError(
                f"`vertices` is empty and L is singular, first at vertex {first}: any global "
                "section is an answer. Give some vertices, or take the section nearest to a "
                "cochain: nearest_section(sheaf, x)"
            )
        message = (
            f"the given values leave {solver.count_free()} of {len(inside)} dimensions free, first "
            f"at vertex {first}: the extension of least norm was taken (give a value in every "
            "component; see that maps leave no direction of a stalk out)"
        )
    elif smallest < WEAK and len(vertices):
        message = (
            "the given values hardly determine the others: some direction changes norm(delta x) "
            f"by {smallest:.3g} of norm(delta) only, and rounding decides how much of it the "
            "extension has (are some maps far smaller than the others?)"
        )
    else:
        return
    warnings.warn(message, SingularProblemWarning, stacklevel=3)
