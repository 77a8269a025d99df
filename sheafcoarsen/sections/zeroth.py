"""Global sections and cohomology dimensions of sheaves of any size, by exact coarsening."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._support import eps_of, single_threaded_blas
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition import select
from sheafcoarsen.sections.basis import lifted, section_residual
from sheafcoarsen.sections.columns import EPS
from sheafcoarsen.sections.equilibration import Stalks, equilibrated, stalk_columns
from sheafcoarsen.sections.reduction import (
    LARGEST_LAST,
    LAST,
    Level,
    cluster_count,
    reduce_level,
    without_heaps,
)
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

KEEP = {8: 1e-3, 4: 3e-2}
"""What has smaller singular values inside a cluster is kept, by bytes of a real number: what is left out leaks eps over that."""


MOST_LEAKED = 1e-11
"""Up to which leak a level that stalls although clusters are large is followed by one that keeps ten times less."""


STALLED = 0.9
"""A level that keeps more than this of its dimension has clusters too small; the next ones are twice as large."""


LARGE_ZERO = 100
"""Where there is no nonzero singular value, a zero of more than so many eps is worth a warning."""


SMALL_GAP = 1e3
"""A smaller ratio between the smallest nonzero and the largest zero singular value is worth a warning."""


@dataclass(frozen=True, eq=False, repr=False)
class GlobalSections:
    """A basis of the global sections H^0 = ker delta, and how clear the decision was.

    Attributes
    ----------
    basis : ndarray or csr_array, shape (dim_c0, h0)
        Orthonormal columns; sparse where there are many.
    h0 : int
        Dimension of H^0.
    largest_zero, smallest_nonzero : float
        Singular values of the equilibrated coboundary, restricted to what coarsening kept: the
        largest taken for zero (0 where there is none), and the smallest other (inf where there is
        none).
    residual : float
        norm(delta S) / norm(delta) in Frobenius norms, S being the basis.
    levels : tuple of int
        Dimension of C^0 level by level, from the equilibrated sheaf to the one that was decomposed
        densely.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.global_sections(sc.gallery.cycle(6, [[0.0, -1.0], [1.0, 0.0]]))  # a quarter turn on the way round
    GlobalSections(h0=0, dense basis, largest_zero=0, smallest_nonzero=0.18, residual=0)
    """

    basis: np.ndarray | scipy.sparse.csr_array
    h0: int
    largest_zero: float
    smallest_nonzero: float
    residual: float
    levels: tuple[int, ...]

    def toarray(self) -> np.ndarray:
        """Return the basis as a dense array.

        Returns
        -------
        ndarray, shape (dim_c0, h0)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.global_sections(sc.CellularSheaf.constant([[0, 1]])).toarray().shape
        (2, 1)
        """
        return self.basis if isinstance(self.basis, np.ndarray) else self.basis.toarray()

    def __repr__(self) -> str:
        if self.h0 == 0 and self.smallest_nonzero == np.inf:
            return "GlobalSections(h0=0, nothing near zero)"
        kind = "sparse" if scipy.sparse.issparse(self.basis) else "dense"
        return (
            f"GlobalSections(h0={self.h0}, {kind} basis, largest_zero={self.largest_zero:.2g}, "
            f"smallest_nonzero={self.smallest_nonzero:.2g}, residual={self.residual:.2g})"
        )


def global_sections(sheaf: CellularSheaf) -> GlobalSections:
    """Return an orthonormal basis of the global sections, H^0 = ker delta, by exact coarsening.

    They are the cochains of zero energy (``eq:global-sections``, ``eq:app-global-sections``,
    ``eq:app-zero-energy-kernel``), those of ``normalize(sheaf)`` the harmonic space of the
    normalized flow (``eq:app-harmonic-space-normalized``).

    Clusters keep their local sections, and all that is nearly one with the energy it has; sections
    that live in one cluster are peeled off; the rest is a small sheaf with the same H^0
    (``prop:kernel_preservation_loopless``), and so on.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    GlobalSections
        ``basis`` in the scalar type of the sheaf, ``h0``, the two singular values between which
        zero was decided, and the residual.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where coarsening stalls at more than 6000 dimensions, as it may on expanders with edge
        stalks smaller than the vertex stalks, or one stalk alone has more.

    Warns
    -----
    SingularProblemWarning
        Where the smallest nonzero singular value is less than 1000 times the largest zero, or there
        is none and the largest zero exceeds 100 eps: rounding may have decided.

    Notes
    -----
    Edges and stalks are equilibrated first, so that every [A | -B] has norm 1 and the maps at every
    vertex, stacked, are an isometry; zero is then decided against 1: singular values up to ``10 eps
    n / g``, n the dimension of the last sheaf and g the smallest singular value of what was left
    out on the way. All is computed in double precision, so that for maps in single precision their
    own eps takes the place of ``eps n``.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> S = sc.global_sections(sc.CellularSheaf.constant([[0, 1], [1, 2], [3, 4]]))
    >>> S.h0
    2
    >>> abs(S.basis @ S.basis.T).round(3)
    array([[0.333, 0.333, 0.333, 0.   , 0.   ],
           [0.333, 0.333, 0.333, 0.   , 0.   ],
           [0.333, 0.333, 0.333, 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.5  , 0.5  ],
           [0.   , 0.   , 0.   , 0.5  , 0.5  ]])
    """
    return _sections(sheaf, stacklevel=3)


def cohomology_dims(sheaf: CellularSheaf) -> tuple[int, int]:
    """Return (dim H^0, dim H^1); dim H^1 = dim H^0 - dim C^0 + dim C^1.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    h0, h1 : int

    Warns
    -----
    SingularProblemWarning
        As :func:`global_sections`.

    Examples
    --------
    A cycle has one hole:

    >>> import sheafcoarsen as sc
    >>> sc.cohomology_dims(sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 0]]))
    (1, 1)
    """
    h0 = _sections(sheaf, stacklevel=3).h0
    return h0, h0 - sheaf.dim_c0 + sheaf.dim_c1


def _sections(F: CellularSheaf, stacklevel: int) -> GlobalSections:
    check_sheaf(F)
    eps = eps_of(F.dtype)
    with single_threaded_blas():
        sheaf, stalks = equilibrated(F, eps)
        levels: list[Level] = []
        dims, zero, dropped = [sheaf.dim_c0], 0.0, 1.0
        keep, growth = KEEP[F.dtype.type(0).real.itemsize], 1
        while sheaf.dim_c0 > LAST:
            count = cluster_count(sheaf, growth)
            partition, cut = without_heaps(sheaf, select(sheaf, count, "balls"), growth)
            level, coarse, zeros, g = reduce_level(sheaf, partition, keep, eps)
            zero, dropped = max(zero, zeros), min(dropped, g)
            levels.append(level)
            stalled = coarse.dim_c0 > (sheaf.dim_c0 - LAST if cut else STALLED * sheaf.dim_c0)
            sheaf = coarse
            dims.append(sheaf.dim_c0)
            if stalled and count > 1 and growth < 8:
                growth *= 2
            elif stalled and eps / keep < MOST_LEAKED:
                keep /= 10  # a finer cut leaks more, and g says so
            elif stalled:
                break
        if sheaf.dim_c0 > LARGEST_LAST:
            raise np.linalg.LinAlgError(
                f"coarsening got no further than dimension {sheaf.dim_c0}, and a dense decomposition is taken up to {LARGEST_LAST}: "
                f"the graph has no small separators, or the sheaf no decay"
            )
        Z, sigma = _singular_vectors(sheaf)
        h = _count_zeros(F, stalks, levels, Z, sigma, 10 * max(eps, sheaf.dim_c0 * EPS) / dropped)
        zero, nonzero = (
            max(zero, float(sigma[:h].max(initial=0))),
            float(sigma[h:].min(initial=np.inf)),
        )
        Z = np.ascontiguousarray(Z[:, :h])
        basis = lifted(F, stalks, levels, sheaf, Z)
    if nonzero < SMALL_GAP * zero or (nonzero == np.inf and zero > LARGE_ZERO * eps):
        other = "there is no other" if nonzero == np.inf else f"the smallest other is {nonzero:.2g}"
        warnings.warn(
            f"whether a section is one is decided by rounding: the largest singular value taken for zero is {zero:.2g}, {other}; "
            f"a clear decision has a ratio of {SMALL_GAP:.0e} between the two, or none above {LARGE_ZERO * eps:.0e}",
            SingularProblemWarning,
            stacklevel=stacklevel,
        )
    return GlobalSections(
        basis, basis.shape[1], zero, nonzero, section_residual(F, basis), tuple(dims)
    )


def _singular_vectors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the right singular vectors of delta as columns, and the singular values, ascending."""
    n = sheaf.dim_c0
    delta = coboundary(sheaf)
    rows = max(1000, 2 * n)
    triangle = np.zeros((0, n), sheaf.dtype)
    for lo in range(
        0, delta.shape[0], rows
    ):  # so that the dense rows never take more than a few times n^2
        triangle = np.concatenate([triangle, delta[lo : lo + rows].toarray()])
        if len(triangle) > n:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    if n == 0:
        return np.zeros((0, 0), sheaf.dtype), np.zeros(0)
    _, found, vectors = np.linalg.svd(triangle, full_matrices=True)
    sigma = np.zeros(n)
    sigma[: len(found)] = found
    return vectors[::-1].conj().T, sigma[::-1]


def _count_zeros(
    F: CellularSheaf, stalks: Stalks, levels: list[Level], Z, sigma, level: float
) -> int:
    """Return how many singular values, ascending, are zero: at most ``level`` times what a cochain makes of relative errors in the maps.

    norm(D_v)^{1/2} norm(x_v) says that, 1 for all v together where the maps are well conditioned.
    """
    zeros = int((sigma <= level).sum())
    W = None
    while zeros < len(sigma) and sigma[zeros] <= KEEP[F.dtype.type(0).real.itemsize]:
        if W is None:
            W = stalk_columns(F, stalks, stalks.W, 0 * stalks.ranks, stalks.ranks)
        y = Z[:, zeros]
        for step in reversed(levels):
            y = step.R @ y
        if sigma[zeros] > level * np.sqrt(stalks.weights @ abs(W @ y) ** 2):
            break
        zeros += 1
    return zeros
