"""Global sections and cohomology dimensions of sheaves of any size, by exact coarsening."""

import dataclasses
import functools
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.sections import Cut
from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    ReadOnly,
    eps_of,
    read_only,
    single_threaded_blas,
    tables,
)
from sheafcoarsen.elimination import Elimination, dim_of_few_edges, eliminate
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.sections import clustering
from sheafcoarsen.sections.clustering import choose_clusters
from sheafcoarsen.sections.equilibration import Stalks, equilibrate
from sheafcoarsen.sections.forests import forest_sections
from sheafcoarsen.sections.full_rank import FullRank, sections_of_full_rank
from sheafcoarsen.sections.lifting import lift_sections, section_residual
from sheafcoarsen.sections.rank_decision import (
    doubt,
    exceeds_bound,
    real_bytes,
    right_singular_vectors,
    section_bound,
    zero_threshold,
)
from sheafcoarsen.sections.reduction import Level, reduce_level
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, component_labels

KEEP = {8: 1e-3, 4: 3e-2}
"""Singular value inside a cluster at or below which a direction is retained, by bytes of a real.

Eliminated directions leak eps over this number.
"""


MOST_LEAKED = 1e-11
"""Largest leak for which a stalled level of large clusters is followed by one that retains less."""


SLOW = 0.5
"""Dimension of a level relative to the one before it above which the rank of delta is checked:
larger clusters get slower, and independent rows or columns determine the sections.
"""


LOOKS = 2
"""Largest number of these checks; unclear cases are left to coarsening."""


STALLED = 0.9
"""Dimension of a level relative to the one before it above which clusters are enlarged."""


MOST_GROWTH = 8
"""Largest factor by which clusters are enlarged."""


LARGE, SHARE = 2000, 0.25
"""Dimension above which leaves and chains are eliminated first, if that removes this fraction."""


MOST_PASSED = 1e3
"""Largest growth of right sides along chains, and of rounding in extensions, for elimination."""


@dataclass(frozen=True, eq=False, repr=False)
class GlobalSections(ReadOnly):
    """A basis of the global sections H^0 = ker delta, and how clear the rank decision was.

    Attributes
    ----------
    basis : ndarray or csr_array, shape (dim_c0, h0)
        Orthonormal columns; sparse if there are many.
    h0 : int
        Dimension of H^0.
    largest_zero, smallest_nonzero : float
        Singular values of the equilibrated coboundary on the last level: the largest that counts
        as zero (0 if there is none), and the smallest other (inf if there is none). No singular
        value decides for forests.
    residual : float
        norm(delta S) / norm(delta) in Frobenius norms, S being the basis.
    levels : tuple of int
        Dimension of C^0 on each level, from the equilibrated sheaf to the one that was decomposed
        densely; one number for a forest. The first is that of the input if leaves and chains were
        eliminated.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> turn = [[0.0, -1.0], [1.0, 0.0]]  # a quarter turn on the way round
    >>> sc.global_sections(sc.gallery.cycle(6, turn))
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

    def _repr_html_(self) -> str:
        kind = "sparse" if scipy.sparse.issparse(self.basis) else "dense"
        rows = [
            ("h0", self.h0),
            ("basis", f"{kind}, {self.basis.shape[0]:,} x {self.h0:,}, {self.basis.dtype}"),
            ("largest singular value taken as zero", self.largest_zero),
            ("smallest other one", self.smallest_nonzero),
            ("residual", self.residual),
        ]
        return tables.table(rows, caption="GlobalSections")


def global_sections(sheaf: CellularSheaf) -> GlobalSections:
    """Return an orthonormal basis of the global sections, H^0 = ker delta, by exact coarsening.

    They are the cochains of zero energy (``eq:global-sections``, ``eq:app-global-sections``,
    ``eq:app-zero-energy-kernel``), those of ``normalize(sheaf)`` the harmonic space of the
    normalized flow (``eq:app-harmonic-space-normalized``).

    Clusters keep their local sections, and all that is nearly one with the energy it has; sections
    that live in one cluster are peeled off; the rest is a small sheaf with the same H^0
    (``prop:kernel_preservation_loopless``), and so on. Forests go from leaves to roots, edge by
    edge: with square invertible maps there are d for each tree, at any length.

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
        Where rounding may have decided: the smallest nonzero singular value is less than 1000 times
        the largest zero or the threshold (3 times, in single precision), or the largest zero is
        above 100 eps and a thousandth of the threshold; or there are more sections than
        elimination along a spanning tree leaves room for, as along long ways on which maps grow
        and decay.

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
    found = find_sections(sheaf, stacklevel=3)
    if isinstance(found.basis, np.ndarray):
        found = dataclasses.replace(found, basis=read_only(found.basis))
    return found


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
    h0 = find_sections(sheaf, stacklevel=3).h0
    return h0, h0 - sheaf.dim_c0 + sheaf.dim_c1


def find_sections(F: CellularSheaf, stacklevel: int) -> GlobalSections:
    """Find the sections of a forest, or of F after elimination if that is cheaper."""
    check_sheaf(F)
    with single_threaded_blas():
        whole = forest_sections(F)
        if whole is not None:
            h0 = whole.shape[1]
            return GlobalSections(whole, h0, 0.0, np.inf, section_residual(F, whole), (F.dim_c0,))
        K = without_chains(F)
        if K is not None:
            left = find_sections(K.sheaf, stacklevel + 1)
            basis = put_back(K, left.basis) if isinstance(left.basis, np.ndarray) else None
            if basis is not None:
                residual, levels = section_residual(F, basis), (F.dim_c0, *left.levels)
                return dataclasses.replace(left, basis=basis, residual=residual, levels=levels)
        return _coarsened(F, stacklevel + 1)


def without_chains(F: CellularSheaf) -> Elimination | None:
    """Return the elimination of leaves and chains, None if it removes little.

    Much is removed then, and the rest is not decomposed densely. A vertex of each component stays,
    one with most neighbours, so that trees leave their root. Where the kept vertices fix all
    others, H^0 is mapped isomorphically: docs/conventions.md, section 12.
    """
    if F.dim_c0 <= LARGE or dim_of_few_edges(F) < SHARE * F.dim_c0:
        return None
    n = F.n_vertices
    labels = component_labels(n, F.edges)
    order = np.lexsort((-np.bincount(F.edges.reshape(-1), minlength=n), labels))
    keep = np.zeros(n, bool)
    keep[order[np.diff(labels[order], prepend=-1) > 0]] = True
    K = eliminate(F, keep)
    pays = clustering.LAST < K.sheaf.dim_c0 <= (1 - SHARE) * F.dim_c0 and K.is_determined
    return K if pays and K.growth < MOST_PASSED else None


def put_back(K: Elimination, basis: np.ndarray) -> np.ndarray | None:
    """Return an orthonormal basis of the extended sections, None if rounding errors have grown."""
    whole = np.linalg.qr(K.extend(basis))[0]
    good = section_residual(K.fine, whole) <= RESIDUAL_LIMIT * eps_of(K.fine.dtype)
    return whole if good else None


def _coarsened(F: CellularSheaf, stacklevel: int) -> GlobalSections:
    """Run steps (a) to (d) of the package's docstring."""
    eps = eps_of(F.dtype)
    sheaf, stalks = equilibrate(F, eps)  # (a)
    descent = _descend(sheaf, F.dtype)  # (b), (c)
    last, levels = descent.last, descent.levels
    threshold = zero_threshold(last.dim_c0, eps, descent.dropped)
    if descent.full is None:
        Z, sigma = right_singular_vectors(last)  # (d)
        h, weight = _count_zeros(stalks, levels, Z, sigma, threshold)
        zero = max(descent.zero, float(sigma[:h].max(initial=0)))
        nonzero = float(sigma[h:].min(initial=np.inf))
        basis = lift_sections(stalks, levels, last, np.ascontiguousarray(Z[:, :h]))
    else:
        zero, nonzero, weight = descent.zero, descent.full.smallest, 1.0
        basis = lift_sections(stalks, levels, last, descent.full)
    reason = doubt(zero, nonzero, threshold, weight, F.dtype)
    _warn_of_doubt(F, basis.shape[1], reason, stacklevel + 1)
    dims = (sheaf.dim_c0, *(level.R.offsets[-1] for level in levels))
    residual = section_residual(F, basis)
    return GlobalSections(basis, basis.shape[1], zero, nonzero, residual, tuple(map(int, dims)))


def _warn_of_doubt(F: CellularSheaf, h0: int, reason: str | None, stacklevel: int) -> None:
    """Warn if the rank decision is unclear, or h0 exceeds its bound."""
    if reason is None and exceeds_bound(F, h0):
        reason = (
            f"there are {h0} cochains that are sections to rounding, but elimination from vertex "
            f"to vertex leaves room for {section_bound(F)} sections at most: maps grow and decay "
            "along long ways"
        )
    if reason is not None:
        message = f"whether a section is one is decided by rounding: {reason}"
        warnings.warn(message, SingularProblemWarning, stacklevel=stacklevel)


class _Descent(NamedTuple):
    """The levels, the last sheaf, the largest value removed as zero, the smallest one eliminated.

    full: the sections of the last sheaf if its coboundary has full rank.
    """

    levels: list[Level]
    last: CellularSheaf
    zero: float
    dropped: float
    full: FullRank | None = None


def _descend(sheaf: CellularSheaf, dtype: np.dtype) -> _Descent:
    """Coarsen until the dimension is at most ``LAST`` or coarsening stalls."""
    levels: list[Level] = []
    keep, eps = KEEP[real_bytes(dtype)], eps_of(dtype)
    zero, dropped, growth, looks = 0.0, 1.0, 1, 0
    while sheaf.dim_c0 > clustering.LAST:
        given, partition, split, is_cut = choose_clusters(sheaf, growth)
        level, coarse, zeros, left_out = reduce_level(given, partition, Cut(keep, eps))
        zero, dropped = max(zero, zeros), min(dropped, left_out)
        levels.append(level._replace(split=split))
        slow = coarse.dim_c0 > max(SLOW * sheaf.dim_c0, clustering.LAST)
        limit = sheaf.dim_c0 - clustering.LAST if is_cut else STALLED * sheaf.dim_c0
        sheaf = coarse
        if slow and looks < LOOKS:
            looks += 1
            full = sections_of_full_rank(sheaf)
            threshold = zero_threshold(sheaf.dim_c0, eps, dropped)
            if full is not None and doubt(zero, full.smallest, threshold, 1.0, dtype) is None:
                return _Descent(levels, sheaf, zero, dropped, full)
        if sheaf.dim_c0 <= limit:
            continue
        if growth < MOST_GROWTH:
            growth *= 2
        elif eps / keep < MOST_LEAKED:
            keep /= 10  # a finer cut leaks more, and ``dropped`` says so
        else:
            break
    if sheaf.dim_c0 > clustering.LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"coarsening got no further than dimension {sheaf.dim_c0}, and a dense decomposition "
            f"is taken up to {clustering.LARGEST_LAST}: the graph has no small separators, or the "
            "sheaf no decay"
        )
    return _Descent(levels, sheaf, zero, dropped)


def _count_zeros(
    stalks: Stalks, levels: list[Level], Z: np.ndarray, sigma: np.ndarray, threshold: float
) -> tuple[int, float]:
    """Return the number of zeros among ascending singular values, and their weight, at least 1.

    The weight of a cochain x is its sensitivity to relative errors of the maps, the root of the sum
    of norm(D_v) norm(x_v)^2; it is 1 for well-conditioned maps. A singular value is zero if it is
    at most ``threshold`` times the weight.
    """
    zeros = int((sigma <= threshold).sum())
    weigh = functools.cache(functools.partial(_weight, stalks, levels, Z))
    while zeros < len(sigma) and sigma[zeros] <= threshold * weigh(zeros):
        zeros += 1
    return zeros, max(weigh(zeros - 1), 1.0) if zeros else 1.0


def _weight(stalks: Stalks, levels: list[Level], Z: np.ndarray, column: int) -> float:
    """Return the root of the sum of norm(D_v) norm(x_v)^2 for a cochain of the last sheaf."""
    y = Z[:, column]
    for level in reversed(levels):
        y = level.lift(y)
    W = stalks.leading(stalks.bases.W)
    return float(np.sqrt(stalks.weights @ abs(W @ y) ** 2))
