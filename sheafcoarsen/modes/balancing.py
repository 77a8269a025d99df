"""Maps scaled by powers of two, so that ranks and kernels do not depend on the sizes of maps."""

import numpy as np

from sheafcoarsen._kernels.modes import Balanced
from sheafcoarsen.operators import Factors, laplacian
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf, sheaf_like


def balance(sheaf: CellularSheaf, clusters: Clusters) -> tuple[CellularSheaf, Balanced]:
    """Return a sheaf whose internal maps have entries of about 1, and what relates it to F.

    Columns are multiplied by the sizes of local sections, so that those of the new sheaf have
    entries of about one size, and then the rows of every edge by one over its largest entry. The
    ends of crossing edges, of which a local operator contains one alone, are scaled separately.
    """
    labels, (u, v) = clusters.labels, sheaf.edges.T
    internal = (labels[u] == labels[v])[:, None]
    exponents = map_exponents(sheaf)
    sizes = _section_exponents(sheaf.edges, exponents, clusters)
    rows = exponents + sizes[sheaf.edges]
    rows = np.where(internal, np.maximum(*rows.T)[:, None], rows)
    low, high = np.full(clusters.n_clusters, np.inf), np.full(clusters.n_clusters, -np.inf)
    used = np.isfinite(rows)
    used[:, 1] &= ~internal[:, 0]
    if not len(clusters.half_edges):
        used[clusters.crossing_edges] = False
    for end in (0, 1):
        cluster, row = labels[sheaf.edges[used[:, end], end]], rows[used[:, end], end]
        np.minimum.at(low, cluster, row)
        np.maximum.at(high, cluster, row)
    uneven = high > low + 2  # up to a ratio of 4, singular vectors lose at most two bits
    uneven[labels[sizes < 0]] = True
    shifts = (sizes[sheaf.edges] - np.where(np.isfinite(rows), rows, 0)).astype(np.int32)
    maps = ((sheaf.tail_data, sheaf.tail_offsets), (sheaf.head_data, sheaf.head_offsets))
    data = []
    for end, (x, starts) in enumerate(maps):
        numbers = x.view(x.real.dtype)  # two for each complex entry
        exponent = np.repeat(shifts[:, end], np.diff(starts) * (1 + (x.dtype.kind == "c")))
        data.append(np.ldexp(numbers, exponent).view(x.dtype))
    scaled = sheaf_like(sheaf, *data)
    units = np.ldexp(1.0, np.repeat(sizes, sheaf.vertex_dims).astype(np.int32))
    return scaled, Balanced(scaled.arrays, units, uneven)


def map_exponents(sheaf: CellularSheaf) -> np.ndarray:
    """Return the exponent of the power of two just above the largest entry of each map, (m, 2).

    It is -inf for maps that are zero.
    """
    out = np.full((sheaf.n_edges, 2), -np.inf)
    maps = ((sheaf.tail_data, sheaf.tail_offsets), (sheaf.head_data, sheaf.head_offsets))
    for end, (data, starts) in enumerate(maps):
        full = np.flatnonzero(np.diff(starts))
        if full.size:
            largest = np.maximum.reduceat(np.abs(data), starts[full])
            out[full, end] = np.where(largest > 0, np.frexp(largest)[1], -np.inf)
    return out


def _section_exponents(edges: np.ndarray, exponents: np.ndarray, clusters: Clusters) -> np.ndarray:
    """Return exponents b of the sizes of local sections, shape (n,), at most 0 in every cluster.

    On a section both maps of an edge are equal, so that s + b_u = t + b_v for maps of sizes 2^s and
    2^t. Where s and t differ by more than 3 in some edge of a cluster, b solves these equations by
    least squares; elsewhere it is 0.
    """
    labels, (u, v) = clusters.labels, edges.T
    used = (labels[u] == labels[v]) & (u != v) & np.isfinite(np.add(*exponents.T))
    differences = np.subtract(*np.where(used[:, None], exponents, 0).T)
    skewed = np.zeros(clusters.n_clusters, bool)
    skewed[labels[u[np.abs(differences) > 3]]] = True
    used &= skewed[labels[u]]
    if not used.any():
        return np.zeros(len(labels))
    graph = CellularSheaf.constant(edges[used], n_vertices=len(labels))
    L, d, n = laplacian(graph), differences[used], len(labels)
    tails, heads = edges[used].T
    b = np.bincount(heads, d, minlength=n) - np.bincount(tails, d, minlength=n)
    b = Factors(L, 1e-10 * float(L.diagonal().max())).solve(b)
    largest = np.full(clusters.n_clusters, -np.inf)
    np.maximum.at(largest, labels, b)
    return np.where(skewed[labels], np.rint(b - largest[labels]), 0).clip(-1000, 0)
