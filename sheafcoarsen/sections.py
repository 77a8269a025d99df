"""Global sections and cohomology dimensions of sheaves of any size, by exact coarsening."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.lapack import svd_workspace
from sheafcoarsen._linalg import eps_of, norm
from sheafcoarsen._ragged import offsets, read_only
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, clusters_of, crossing_half_edges
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import as_matrix, block_layout
from sheafcoarsen.realization import SERIAL_BELOW, realize
from sheafcoarsen.selection import select
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

EPS = eps_of(np.float64)

VERTICES, DIMENSION = 40, 120
"""Size of a cluster, in vertices and in dimensions."""
LAST = 400
"""Dimension at which coarsening ends and a dense singular value decomposition is taken."""
LARGEST_LAST = 6000
"""Dimension up to which that is done where coarsening gets no further."""
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
DENSE_ENTRIES, DENSE_COLUMNS = 1 << 22, 16
"""Entries, or columns, up to which the basis is a dense array."""
CHUNK = 64
"""Rows that a QR takes at a time."""


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
        Singular values of the equilibrated coboundary, restricted to what coarsening kept: the largest taken for zero (0 where there is
        none), and the smallest other (inf where there is none).
    residual : float
        norm(delta S) / norm(delta) in Frobenius norms, S being the basis.
    levels : tuple of int
        Dimension of C^0 level by level, from the equilibrated sheaf to the one that was decomposed densely.

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


class _Stalks(NamedTuple):
    """What equilibration makes of the stalks: blocks d_v x d_v at ``starts``; see ``vertex_bases``."""

    clusters: Clusters
    partition: Partition
    ranks: np.ndarray
    starts: np.ndarray
    W: np.ndarray
    V: np.ndarray
    weights: np.ndarray  # (dim_c0,) tr(D_v) / d_v, for every coordinate of v


class _Level(NamedTuple):
    """One step: the sheaf it started from, what its clusters carry on (R) and what they peel off (P)."""

    sheaf: CellularSheaf
    clusters: Clusters
    carried: np.ndarray
    R: scipy.sparse.csr_array
    peeled: np.ndarray
    P: scipy.sparse.csr_array


def global_sections(sheaf: CellularSheaf) -> GlobalSections:
    """Return an orthonormal basis of the global sections, ker delta (``eq:global-sections``), by exact coarsening.

    Clusters keep their local sections, and all that is nearly one with the energy it has; sections that live in one cluster
    are peeled off; the rest is a small sheaf with the same H^0 (``prop:kernel_preservation_loopless``), and so on.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    GlobalSections
        ``basis`` in the scalar type of the sheaf, ``h0``, the two singular values between which zero was decided, and the residual.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where coarsening stalls at more than 6000 dimensions, as it may on expanders with edge stalks smaller than the vertex stalks, or
        one stalk alone has more.

    Warns
    -----
    SingularProblemWarning
        Where the smallest nonzero singular value is less than 1000 times the largest zero, or there is none and the largest zero
        exceeds 100 eps: rounding may have decided.

    Notes
    -----
    Edges and stalks are equilibrated first, so that every [A | -B] has norm 1 and the maps at every vertex, stacked, are an
    isometry; zero is then decided against 1: singular values up to ``10 eps n / g``, n the dimension of the last sheaf and g the
    smallest singular value of what was left out on the way. All is computed in double precision, so that for maps in single precision
    their own eps takes the place of ``eps n``.

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
        sheaf, stalks = _equilibrated(F, eps)
        levels: list[_Level] = []
        dims, zero, dropped = [sheaf.dim_c0], 0.0, 1.0
        keep, growth = KEEP[F.dtype.type(0).real.itemsize], 1
        while sheaf.dim_c0 > LAST:
            count = _cluster_count(sheaf, growth)
            partition, cut = _without_heaps(sheaf, select(sheaf, count, "balls"), growth)
            level, coarse, zeros, g = _reduced(sheaf, partition, keep, eps)
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
        zero, nonzero = max(zero, float(sigma[:h].max(initial=0))), float(sigma[h:].min(initial=np.inf))
        Z = np.ascontiguousarray(Z[:, :h])
        basis = _lifted(F, stalks, levels, sheaf, Z)
    if nonzero < SMALL_GAP * zero or (nonzero == np.inf and zero > LARGE_ZERO * eps):
        other = "there is no other" if nonzero == np.inf else f"the smallest other is {nonzero:.2g}"
        warnings.warn(
            f"whether a section is one is decided by rounding: the largest singular value taken for zero is {zero:.2g}, {other}; "
            f"a clear decision has a ratio of {SMALL_GAP:.0e} between the two, or none above {LARGE_ZERO * eps:.0e}",
            SingularProblemWarning,
            stacklevel=stacklevel,
        )
    return GlobalSections(basis, basis.shape[1], zero, nonzero, _residual(F, basis), tuple(dims))


def _cluster_count(sheaf: CellularSheaf, growth: int) -> int:
    """Return how many clusters to take: beyond one for each component, because `select` would pack components, but not split the largest."""
    n = sheaf.n_vertices
    links = scipy.sparse.coo_array((np.ones(sheaf.n_edges, np.int8), sheaf.edges.T), shape=(n, n))
    components = scipy.sparse.csgraph.connected_components(links, directed=False)[0]
    size = max(n / (VERTICES * growth), min(sheaf.dim_c0 / (DIMENSION * growth), n / 4))
    return min(components - 1 + int(np.ceil(size)), n)


def _without_heaps(sheaf: CellularSheaf, P: Partition, growth: int) -> tuple[Partition, bool]:
    """Cut vertices off clusters far heavier than the others, those of fewest links first; tell whether there were any.

    Connected clusters cannot share the leaves of a hub. Here a cluster may be of any kind: the leaves cut off become clusters of their own,
    which keep all they have, and join the hub on a later level.
    """
    labels, dims, K = P.labels, sheaf.vertex_dims, P.n_clusters
    largest = min(max(2 * LAST * growth, 4 * sheaf.dim_c0 // K), LARGEST_LAST)
    if np.bincount(labels, dims).max() <= largest:
        return P, False
    inner = sheaf.edges[labels[sheaf.edges[:, 0]] == labels[sheaf.edges[:, 1]]]
    order = np.lexsort((-np.bincount(inner.reshape(-1), minlength=len(labels)), labels))
    reached = np.cumsum(dims[order])
    first = np.searchsorted(labels[order], np.arange(K))
    before = reached - dims[order]
    before -= before[first][labels[order]]
    off = order[(before > 0) & (before + dims[order] > largest)]
    labels = labels.copy()
    labels[off] = K + np.arange(len(off))
    return Partition(labels), len(off) > 0


def _room(n: int, k: int, rows: int, dtype) -> kernels.Room:
    n, k = max(n, 1), max(k, 1)
    sizes = (max(rows * k, k * k), max(rows, k), k, k * k, n * k, n * k)
    return kernels.Room(*(np.empty(size, dtype) for size in sizes))


def _check(results, what: str) -> None:
    for a in results:
        if a >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on {what} {a}")


# ---------------------------------------------------------------- down


def _equilibrated(F: CellularSheaf, eps: float) -> tuple[CellularSheaf, _Stalks]:
    """Return the sheaf with equilibrated edges and stalks, in double precision, and the bases of the stalks."""
    dtype = np.result_type(F.dtype, np.float64)
    tail, head = np.zeros(len(F.tail_data), dtype), np.zeros(len(F.head_data), dtype)
    f, n = F._arrays, F.n_vertices
    rows = F.edge_dims * F.vertex_dims[F.edges].sum(axis=1) + 1.0
    run_ranges(lambda lo, hi: kernels.normalized_edges(lo, hi, f, tail, head), rows, serial_below=SERIAL_BELOW)
    f = f._replace(tail_data=tail, head_data=head)
    ends = F.edges.reshape(-1)
    halves = np.flatnonzero((np.arange(len(ends)) % 2 == 0) | np.repeat(F.edges[:, 0] != F.edges[:, 1], 2))
    halves = halves[np.argsort(ends[halves], kind="stable")]
    ptr = offsets(np.bincount(ends[halves], minlength=n))
    dims = F.vertex_dims
    starts = offsets(dims**2)
    W, V = np.zeros(int(starts[-1]), dtype), np.zeros(int(starts[-1]), dtype)
    ranks, sizes = np.zeros(n, np.int64), np.zeros(n)

    def work(lo, hi):
        d = int(dims[lo:hi].max())
        room = _room(d, d, d + CHUNK, dtype)
        return kernels.vertex_bases(
            lo, hi, f, ptr, halves, eps, svd_workspace(d, d, dtype, 0), room, starts, W, V, ranks, sizes
        )

    cost = dims**2 * (dims + np.bincount(ends, np.repeat(F.edge_dims, 2), minlength=n)) + 1.0
    _check(run_ranges(work, cost, serial_below=SERIAL_BELOW), "the maps at vertex")
    read_only(ranks)
    partition = Partition(np.arange(n))
    stalks = _Stalks(
        clusters_of(F, partition), partition, ranks, starts, W, V, np.repeat(sizes / np.maximum(dims, 1), dims)
    )
    tail_starts = offsets(F.edge_dims * ranks[F.edges[:, 0]])
    head_starts = offsets(F.edge_dims * ranks[F.edges[:, 1]])
    tail, head = np.zeros(int(tail_starts[-1]), dtype), np.zeros(int(head_starts[-1]), dtype)

    def change(lo, hi):
        kernels.changed_maps(lo, hi, f, starts, W, ranks, tail_starts, head_starts, tail, head)

    run_ranges(change, rows, serial_below=SERIAL_BELOW)
    return CellularSheaf._trusted(F.edges, ranks, F.edge_dims, tail, head), stalks


def _reduced(
    sheaf: CellularSheaf, partition: Partition, keep: float, eps: float
) -> tuple[_Level, CellularSheaf, float, float]:
    """Return one step, the coarse sheaf, the largest singular value peeled off as zero and the smallest left out."""
    clusters = clusters_of(sheaf, partition)
    if (largest := int(clusters.dims.max())) > LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"a cluster of dimension {largest} would have to be factored densely, which is done up to {LARGEST_LAST}: it is a single "
            f"stalk, of the sheaf or of what coarsening kept"
        )
    f, dims, K, dtype = sheaf._arrays, clusters.dims, clusters.n_clusters, sheaf.dtype
    internal = crossing_half_edges(sheaf, partition, clusters, principal=False)
    crossing = crossing_half_edges(sheaf, partition, clusters, principal=True)
    map_size = int((sheaf.edge_dims * sheaf.vertex_dims[sheaf.edges].sum(axis=1)).max(initial=0))
    kept = np.zeros(K, np.int64)

    def count_kept(lo, hi):
        n = int(dims[lo:hi].max())
        kernels.kept_dims(lo, hi, f, clusters, *internal, keep, svd_workspace(n, n, dtype, map_size), kept)

    run_ranges(count_kept, dims**3 + 1.0, serial_below=SERIAL_BELOW)
    z_starts, loop_starts = offsets(dims * kept), offsets(kept**2)
    z, loops = np.empty(int(z_starts[-1]), dtype), np.empty(int(loop_starts[-1]), dtype)
    peeled, loop_rows = np.zeros(K, np.int64), np.zeros(K, np.int64)
    dropped, zeros = np.empty(K), np.empty(K)

    def reduce(lo, hi):
        n, k = int(dims[lo:hi].max()), int(kept[lo:hi].max())
        return kernels.reduced(
            lo, hi, f, clusters, *internal, *crossing, keep, eps, kept, svd_workspace(n, n, dtype, map_size),
            _room(n, k, k + max(k, CHUNK), dtype), z_starts, z, loop_starts, loops, peeled, loop_rows, dropped, zeros,
        )  # fmt: skip

    cost = dims * (dims + kept) * (dims + 10.0 * kept) * (kept > 0) + 1.0
    _check(run_ranges(reduce, cost, serial_below=SERIAL_BELOW), "cluster")
    carried = read_only(kept - peeled)
    R = _columns(sheaf, partition, clusters, kept, z_starts, z, np.zeros(K, np.int64), carried)
    P = _columns(sheaf, partition, clusters, kept, z_starts, z, carried, peeled)

    def write(to, out):
        kernels.put_loops(0, K, carried, loop_rows, loop_starts, loops, to, out)

    coarse = realize(sheaf, clusters, R, carried, (loop_rows, write), compress=True)
    level = _Level(sheaf, clusters, carried, R, peeled, P)
    return level, coarse, float(zeros.max(initial=0)), float(dropped.min(initial=np.inf))


def _columns(sheaf, partition, clusters, kept, z_starts, z, first, counts) -> scipy.sparse.csr_array:
    """Return columns first .. first + counts of every cluster's block of z as a block-sparse matrix."""
    indptr, indices = block_layout(sheaf, partition, counts)
    data = np.empty(len(indices), z.dtype)
    f = sheaf._arrays
    kernels.store_columns(0, len(counts), f, clusters, kept, z_starts, z, first, counts, indptr, data)
    return as_matrix(indptr, indices, data, int(counts.sum()))


def _singular_vectors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the right singular vectors of delta as columns, and the singular values, ascending."""
    n = sheaf.dim_c0
    delta = coboundary(sheaf)
    rows = max(1000, 2 * n)
    triangle = np.zeros((0, n), sheaf.dtype)
    for lo in range(0, delta.shape[0], rows):  # so that the dense rows never take more than a few times n^2
        triangle = np.concatenate([triangle, delta[lo : lo + rows].toarray()])
        if len(triangle) > n:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    if n == 0:
        return np.zeros((0, 0), sheaf.dtype), np.zeros(0)
    _, found, vectors = np.linalg.svd(triangle, full_matrices=True)
    sigma = np.zeros(n)
    sigma[: len(found)] = found
    return vectors[::-1].conj().T, sigma[::-1]


def _count_zeros(F: CellularSheaf, stalks: _Stalks, levels: list[_Level], Z, sigma, level: float) -> int:
    """Return how many singular values, ascending, are zero: at most ``level`` times what a cochain makes of relative errors in the maps.

    norm(D_v)^{1/2} norm(x_v) says that, 1 for all v together where the maps are well conditioned.
    """
    zeros = int((sigma <= level).sum())
    W = None
    while zeros < len(sigma) and sigma[zeros] <= KEEP[F.dtype.type(0).real.itemsize]:
        if W is None:
            W = _stalk_columns(F, stalks, stalks.W, 0 * stalks.ranks, stalks.ranks)
        y = Z[:, zeros]
        for step in reversed(levels):
            y = step.R @ y
        if sigma[zeros] > level * np.sqrt(stalks.weights @ abs(W @ y) ** 2):
            break
        zeros += 1
    return zeros


# ---------------------------------------------------------------- up


def _lifted(F: CellularSheaf, stalks: _Stalks, levels: list[_Level], last: CellularSheaf, Z: np.ndarray):
    """Return the orthonormal basis, in the scalar type of F, of what the levels peeled off and of Z on the last."""
    lost = F.vertex_dims - stalks.ranks
    h0 = Z.shape[1] + sum(level.P.shape[1] for level in levels) + int(lost.sum())
    alone = _stalk_columns(F, stalks, stalks.V, stalks.ranks, lost)
    if h0 > DENSE_COLUMNS and h0 * F.dim_c0 > DENSE_ENTRIES:
        steps, Q = _orthonormal_steps(stalks, levels, last, Z)
        E = _stalk_columns(F, stalks, stalks.V, 0 * lost, stalks.ranks)
        for k, (R, P) in reversed(list(enumerate(steps))):
            R, P = (R, P) if k else (E @ R, E @ P)  # few columns yet
            Q = scipy.sparse.hstack([R @ Q, P], format="csr")
        return scipy.sparse.hstack([Q if steps else E @ Q, alone], format="csr", dtype=F.dtype)
    Y = Z
    for level in reversed(levels):
        Y = np.concatenate([level.R @ Y, level.P.toarray()], axis=1)
    W = _stalk_columns(F, stalks, stalks.W, 0 * lost, stalks.ranks)
    for _ in range(2 if Y.shape[1] else 0):
        # in the coordinates where delta has norm 1, so that the residual does not suffer from the condition of W
        triangle = np.linalg.qr(W @ Y, mode="r")
        Y = scipy.linalg.solve_triangular(triangle, Y.T, trans="T", lower=False).T
    return np.concatenate([W @ Y, alone.toarray()], axis=1).astype(F.dtype)


def _stalk_columns(F: CellularSheaf, stalks: _Stalks, blocks, first, counts) -> scipy.sparse.csr_array:
    """Return the block-diagonal matrix of columns first .. first + counts of the stalks' blocks."""
    return _columns(F, stalks.partition, stalks.clusters, F.vertex_dims, stalks.starts, blocks, first, counts)


def _orthonormal_steps(stalks: _Stalks, levels: list[_Level], last: CellularSheaf, Z: np.ndarray):
    """Return what replaces R and P level by level, and what replaces Z, in orthonormal bases of im W_v.

    Going up, every cluster splits what it peels off from what it carries on, orthogonally in the true metric, and hands up the triangular
    factor of the metric of the latter. So sections are orthonormal, and as sparse as their clusters are small.
    """
    starts = offsets(stalks.ranks**2)
    factors = np.empty(int(starts[-1]), stalks.W.dtype)
    kernels.stalk_factors(0, len(stalks.ranks), stalks.clusters.dims, stalks.starts, stalks.V, stalks.W, stalks.ranks, starts, factors)  # fmt: skip
    blocks = []
    for level in levels:
        R, P = level.R.copy(), level.P.copy()
        dims, kept, dtype = level.clusters.dims, level.carried + level.peeled, factors.dtype
        new_starts = offsets(level.carried**2)
        new = np.zeros(int(new_starts[-1]), dtype)

        def work(lo, hi, level=level, R=R, P=P, new_starts=new_starts, new=new, starts=starts, factors=factors):
            n, k = int(level.clusters.dims[lo:hi].max()), int((level.carried + level.peeled)[lo:hi].max())
            return kernels.orthonormal_blocks(
                lo, hi, level.sheaf._arrays, level.clusters, starts, factors, level.carried, level.peeled, R.indptr, R.data,
                P.indptr, P.data, svd_workspace(k, k, factors.dtype, 0), _room(n, k, n, factors.dtype), new_starts, new,
            )  # fmt: skip

        _check(run_ranges(work, dims * kept * (kept + 1.0) + 1.0, serial_below=SERIAL_BELOW), "the sections of cluster")
        blocks.append((R, P))
        starts, factors = new_starts, new
    labels = Partition(np.arange(last.n_vertices))
    indptr, indices = block_layout(last, labels, last.vertex_dims)
    metric = scipy.sparse.csr_array((factors, indices, indptr), shape=(last.dim_c0, last.dim_c0))
    Q = scipy.sparse.csr_array(np.linalg.qr(metric @ Z)[0])
    return blocks, Q


def _residual(F: CellularSheaf, basis) -> float:
    """Return norm(delta S) / norm(delta), at any scale."""
    if F.largest_entry == 0 or basis.shape[1] == 0:
        return 0.0
    scale = float(2.0 ** np.floor(np.log2(F.largest_entry)))
    delta = coboundary(F)
    dtype = np.result_type(F.dtype, np.float64)
    delta.data = (delta.data.astype(dtype).view(np.float64) / scale).view(dtype)
    image = delta @ basis.astype(dtype)
    size = norm(delta.data)
    return norm(image.data if scipy.sparse.issparse(image) else image) / size if size else 0.0
