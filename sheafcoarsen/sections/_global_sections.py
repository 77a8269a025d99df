"""Global sections and cohomology dimensions by exact coarsening."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from sheafcoarsen._support import ReadOnly, linalg, ragged, tables, threads, warned
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections import clustering
from sheafcoarsen.sections.clustering import Level, choose_clusters, reduce_level
from sheafcoarsen.sections.equilibration import Stalks, equilibrate
from sheafcoarsen.sections.forests import forest_sections
from sheafcoarsen.sections.lifting import lift_sections, section_residual
from sheafcoarsen.sections.rank_decision import (
    FullRank,
    doubt,
    section_bound,
    sections_of_full_rank,
    singular_pairs,
    zero_threshold,
)
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

KEEP = {64: 1e-3, 32: 3e-2}
"""Singular value at or below which a cluster retains a direction, by bits per real number.

Rounding errors of the eliminated directions are eps divided by this value.
"""


@dataclass(frozen=True, eq=False, repr=False)
class GlobalSections(ReadOnly):
    """Basis of the global sections H^0 = ker delta, with the singular values that decided h0.

    Attributes
    ----------
    basis : ndarray or csr_array, shape (dim_c0, h0)
        Matrix with orthonormal columns; it is sparse if there are many columns.
    h0 : int
        Dimension of H^0.
    largest_zero, smallest_nonzero : float
        Singular values of the equilibrated coboundary: the largest on all levels that counts as
        zero (0 if there is none), and the smallest on the last one that does not (inf if there is
        none). They are 0 and inf for forests, and if no vector of a small singular value remains in
        any cluster: then no singular values of the last level are computed.
    residual : float
        norm(delta S) / norm(delta) in Frobenius norms, for the basis S.
    levels : tuple of int
        Dimension of C^0 on each level, from the equilibrated sheaf to the one that was decomposed
        densely. For a forest it is a single number.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> rotation = [[0.0, -1.0], [1.0, 0.0]]  # by pi / 2 around the cycle
    >>> sc.global_sections(sc.gallery.cycle(6, rotation))
    GlobalSections(h0=0, dense basis, largest_zero=0, smallest_nonzero=0.18, residual=0)
    """

    basis: np.ndarray | scipy.sparse.csr_array
    h0: int
    largest_zero: float
    smallest_nonzero: float
    residual: float
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        if isinstance(self.basis, np.ndarray):  # scipy writes to the arrays of sparse matrices
            ragged.read_only(self.basis)

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
            return "GlobalSections(h0=0, decided without singular values)"
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
            ("largest singular value counted as zero", self.largest_zero),
            ("smallest nonzero singular value", self.smallest_nonzero),
            ("residual", self.residual),
        ]
        return tables.table(rows, caption="GlobalSections")


def global_sections(sheaf: CellularSheaf) -> GlobalSections:
    """Return an orthonormal basis of the global sections, H^0 = ker delta, by exact coarsening.

    Global sections are the cochains of zero energy (``eq:global-sections``,
    ``eq:app-global-sections``, ``eq:app-zero-energy-kernel``). Those of ``normalize(sheaf)`` form
    the harmonic space of the normalized flow (``eq:app-harmonic-space-normalized``).

    Clusters retain their local sections, and vectors of small energy together with their energy.
    Sections supported in one cluster are removed; the others correspond to the sections of a small
    sheaf (``prop:kernel_preservation_loopless``), which is coarsened again. Forests are solved edge
    by edge from the leaves to the roots: with invertible d x d maps each tree has d sections,
    however long its paths are.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    GlobalSections
        The ``basis`` in the scalar type of the sheaf, ``h0``, the singular values closest to the
        threshold below which they count as zero, and the residual.

    Raises
    ------
    numpy.linalg.LinAlgError
        If coarsening stalls at more than 6000 dimensions, as it may on expanders whose edge stalks
        are smaller than the vertex stalks, or if the dimension of a single stalk exceeds 6000.

    Warns
    -----
    SingularProblemWarning
        If rounding errors may have determined h0, for one of three reasons. The smallest nonzero
        singular value is less than 1000 times the largest zero or 1000 times the threshold (3 times
        in single precision). The largest zero is above 100 eps, above sqrt(dim C^1) eps of double
        precision, and above a thousandth of the threshold. Or h0 exceeds an upper bound from a
        spanning tree, as it may if maps grow and decay along long paths.

    Notes
    -----
    Edges and stalks are equilibrated first: every [A | -B] gets norm 1 (with weights, if scales of
    vertices differ), and the stacked maps at every vertex become an isometry, so that zero can be
    decided relative to 1. Singular values up to ``10 eps n / g`` count as zero, where n is the
    dimension of the last sheaf and g the smallest eliminated singular value; this threshold is
    larger for vectors that are sensitive to errors of ill-conditioned maps. The computation uses
    double precision; for maps in single precision, ``eps n`` is replaced by their eps.

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
    check_sheaf(sheaf)
    with threads.single_threaded_blas():
        full = forest_sections(sheaf)
        if full is not None:
            residual = section_residual(sheaf, full)
            return GlobalSections(full, full.shape[1], 0.0, np.inf, residual, (sheaf.dim_c0,))
        return _coarsened(sheaf)


def cohomology_dims(sheaf: CellularSheaf) -> tuple[int, int]:
    """Return (dim H^0, dim H^1), where dim H^1 = dim H^0 - dim C^0 + dim C^1.

    :func:`global_sections` has a basis of H^0. One of H^1, as the orthogonal complement of im
    delta, is ``scipy.linalg.null_space(sc.coboundary(F).toarray().conj().T)``.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    h0, h1 : int

    Warns
    -----
    SingularProblemWarning
        If rounding errors may have determined h0, as in :func:`global_sections`.

    Examples
    --------
    A cycle has one hole:

    >>> import sheafcoarsen as sc
    >>> sc.cohomology_dims(sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 0]]))
    (1, 1)
    """
    h0 = global_sections(sheaf).h0
    return h0, h0 - sheaf.dim_c0 + sheaf.dim_c1


def _coarsened(F: CellularSheaf) -> GlobalSections:
    """Return the sections by steps (a) to (d) of the algorithm in the package docstring."""
    eps = linalg.eps_of(F.dtype)
    sheaf, stalks = equilibrate(F, eps)  # step (a)
    levels, last, zero, dropped, full = _descend(sheaf, F.dtype)  # steps (b) and (c)
    threshold, weight = zero_threshold(last.dim_c0, eps, dropped), 1.0
    if full is None:
        sigma, Z = singular_pairs(coboundary(last))  # step (d)
        h, weight = _count_zeros(stalks, levels, Z, sigma, threshold)
        zero = max(zero, float(sigma[:h].max(initial=0)))
        nonzero = float(sigma[h:].min(initial=np.inf))
        basis = lift_sections(stalks, levels, last, np.ascontiguousarray(Z[:, :h]))
    else:
        nonzero, basis = full.smallest, lift_sections(stalks, levels, last, full)
    h0 = basis.shape[1]
    reason = doubt(zero, nonzero, threshold, weight, F.dtype, F.dim_c1)
    # the bound is at least the maximum below, and is computed only if necessary
    if reason is None and h0 > max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0)):
        bound = section_bound(F)
        if h0 > bound:
            reason = (
                f"{h0} cochains are sections up to rounding, but a spanning tree bounds h0 by "
                f"{bound}, because maps grow and decay along long paths"
            )
    if reason is not None:
        message = (
            f"rounding errors determine the number of sections: {reason}. If scales of vertices "
            f"differ, count the sections of normalize(sheaf), which has as many"
        )
        warned.warn(message, SingularProblemWarning)
    dims = (sheaf.dim_c0, *(level.R.offsets[-1] for level in levels))
    residual = section_residual(F, basis)
    return GlobalSections(basis, h0, zero, nonzero, residual, tuple(map(int, dims)))


def _descend(
    sheaf: CellularSheaf, dtype: np.dtype
) -> tuple[list[Level], CellularSheaf, float, float, FullRank | None]:
    """Coarsen down to dimension ``LAST`` or until coarsening stalls.

    Returns the levels, the last sheaf, the largest removed and the smallest eliminated singular
    value, and the kernel of the last coboundary if this has full rank.
    """
    levels: list[Level] = []
    keep, eps = KEEP[np.finfo(dtype).bits], linalg.eps_of(dtype)
    rows, zero, dropped, growth, checks = sheaf.dim_c1, 0.0, 1.0, 1, 0
    while sheaf.dim_c0 > clustering.LAST:
        given, partition, split, is_cut = choose_clusters(sheaf, growth)
        level, coarse, zeros, eliminated = reduce_level(given, partition, (keep, eps))
        zero, dropped = max(zero, zeros), min(dropped, eliminated)
        levels.append(level._replace(split=split))
        slow = coarse.dim_c0 > max(0.5 * sheaf.dim_c0, clustering.LAST)
        # coarsening stalls if the dimension of the next level is larger
        limit = sheaf.dim_c0 - clustering.LAST if is_cut else 0.9 * sheaf.dim_c0
        sheaf = coarse
        if slow and checks < 2:
            checks += 1
            full = sections_of_full_rank(sheaf)
            threshold = zero_threshold(sheaf.dim_c0, eps, dropped)
            if full and doubt(zero, full.smallest, threshold, 1.0, dtype, rows) is None:
                return levels, sheaf, zero, dropped, full
        if sheaf.dim_c0 <= limit:
            continue
        if growth < 8:
            growth *= 2  # enlarge clusters
        elif eps / keep < 1e-11:
            keep /= 10  # retain less; ``dropped`` bounds the larger rounding errors, eps / keep
        else:
            break
    if sheaf.dim_c0 > clustering.LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"coarsening for global sections stalled at dimension {sheaf.dim_c0}, but dense "
            f"decompositions are limited to dimension {clustering.LARGEST_LAST}; this happens if "
            "the graph has no small separators"
        )
    return levels, sheaf, zero, dropped, None


def _count_zeros(
    stalks: Stalks, levels: list[Level], Z: np.ndarray, sigma: np.ndarray, threshold: float
) -> tuple[int, float]:
    """Return the number of zeros among ascending singular values, and the weight of the last one.

    Zeros are at most ``threshold`` times their weight, the sensitivity to relative errors of the
    maps: for a cochain x, the square root of the sum of norm(D_v) norm(x_v)^2. It is at least 1.
    """

    def weigh(column: int) -> float:
        y = Z[:, column]
        for level in reversed(levels):
            y = level.on_original(level.R.matrix @ y)
        return float(np.sqrt(stalks.weights @ abs(stalks.W @ y) ** 2))

    zeros = int((sigma <= threshold).sum())
    while zeros < len(sigma) and sigma[zeros] <= threshold * weigh(zeros):
        zeros += 1
    return zeros, max(weigh(zeros - 1), 1.0) if zeros else 1.0
