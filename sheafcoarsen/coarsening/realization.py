"""The coarse sheaf: crossing edges between clusters, and a loop-cell for the energy retained inside each."""

import numpy as np

from sheafcoarsen._support import offsets, read_only
from sheafcoarsen.coarsening.crossing import OFFSETS, write_crossing_maps
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def realize(
    sheaf: CellularSheaf,
    clusters: Clusters,
    R,
    ranks: np.ndarray,
    loops,
    *,
    compress: bool = False,
    like: CellularSheaf | None = None,
) -> CellularSheaf:
    """Return the coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a.

    The edge stalk of eps_ab is the direct sum of the fine edge stalks between a and b
    (``eq:coarse_crossing_edge_stalk``), or what compression leaves of it: min(rows, r_a + r_b) rows
    with the same Gram matrix.

    Parameters
    ----------
    loops : (ndarray, callable) or None
        Rows per cluster and what writes half the factors B_a; the loop at a gets the maps B_a / 2
        and -B_a / 2, so that its coboundary is B_a (``thm:Galerkin_realization``,
        ``eq:loop_coboundary``), beside the crossing rows (``eq:augmented_coboundary``). None leaves
        the loops out.
    like : CellularSheaf, optional
        An earlier result; its index arrays are shared where they are the same.
    """
    first, second = clusters.pairs[:, 0], clusters.pairs[:, 1]
    rows = read_only(np.diff(offsets(sheaf.edge_dims[clusters.crossing_edges])[clusters.pair_ptr]))
    edges, edge_dims = clusters.pairs, rows
    if compress:
        edge_dims = np.minimum(rows, ranks[first] + ranks[second])
    if loops is not None and loops[0].any():
        counts, write = loops
        at = np.flatnonzero(counts)
        edges = np.concatenate([edges, np.stack([at, at], axis=1)])
        edge_dims = np.concatenate([edge_dims, counts[at]])
    ranks, edge_dims, starts = read_only(ranks), read_only(edge_dims), {}
    if like is not None and np.array_equal(like.edges, edges):
        edges = like.edges
    if like is not None and edges is like.edges and _same(like, ranks, edge_dims):
        ranks, edge_dims = like.vertex_dims, like.edge_dims
        starts = {name: getattr(like, name) for name in OFFSETS}
    else:
        starts["tail_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 0]]))
        starts["head_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 1]]))
    tail_starts, head_starts = starts["tail_offsets"], starts["head_offsets"]
    dtype = np.result_type(sheaf.dtype, R.dtype)
    tail, head = np.empty(int(tail_starts[-1]), dtype), np.empty(int(head_starts[-1]), dtype)
    write_crossing_maps(
        sheaf, clusters, R, ranks, rows, edge_dims, tail_starts, head_starts, tail, head
    )
    n_pairs = len(clusters.pairs)
    if len(edges) > n_pairs:
        first_entry = np.zeros(len(ranks), np.int64)
        first_entry[at] = tail_starts[n_pairs:-1]
        halves = tail[tail_starts[n_pairs] :]
        halves[:] = 0
        write(first_entry, tail)
        np.negative(halves, out=head[head_starts[n_pairs] :])
    coarse = trusted_sheaf(edges, ranks, edge_dims, tail, head)
    coarse.__dict__.update(starts)
    return coarse


def _same(like: CellularSheaf, vertex_dims, edge_dims) -> bool:
    return np.array_equal(like.vertex_dims, vertex_dims) and np.array_equal(
        like.edge_dims, edge_dims
    )
