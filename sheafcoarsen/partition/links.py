"""Weighted adjacency lists for `select`, from a graph or from the maps of a sheaf."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.sheaf import CellularSheaf, edge_weights, graph_arrays

LIGHTEST, HEAVIEST = 1 / 3, 1.35
"""Preferred minimum and maximum weight of a cluster, relative to the mean."""


TOO_HEAVY = 2.0
"""Weight of a cluster, relative to the mean, above which it is split."""


class Links(NamedTuple):
    """A weighted graph as adjacency lists: v has neighbours ``ends[starts[v]:starts[v + 1]]``.

    Each neighbour occurs once, and v itself does not occur.
    """

    starts: np.ndarray  # (n + 1,) int64
    ends: np.ndarray  # (2m,) int32
    weights: np.ndarray  # (2m,) >= 0, sums over parallel edges of weights scaled to at most 1
    sizes: np.ndarray  # (n,) int64, >= 1, weight of each vertex, which clusters balance

    def vertices(self) -> np.ndarray:
        """Return the vertex at which each link begins, shape (2m,); ``ends`` are the other ends."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), np.diff(self.starts))

    def matrix(self, weights: np.ndarray) -> scipy.sparse.csr_array:
        """Return the adjacency matrix with given weights of the links."""
        n = len(self.sizes)
        return scipy.sparse.csr_array((weights, self.ends, self.starts), shape=(n, n))

    def components(self, kept: np.ndarray | bool = True) -> np.ndarray:
        """Return each vertex's component label in the graph of all links, or of those ``kept``."""
        vertices, labels = self.vertices(), np.empty(len(self.sizes), np.int64)
        once = (vertices < self.ends) & kept  # each link is stored twice
        kernels.label_components(vertices, self.ends, once, labels)
        return labels


def links_of(F_or_graph: Any, weights: str) -> Links:
    """Convert a sheaf or a graph to adjacency lists."""
    if isinstance(F_or_graph, CellularSheaf):
        edges = F_or_graph.edges
        sizes = np.maximum(F_or_graph.vertex_dims, 1)
        if weights == "sheaf":
            values = relative_strengths(F_or_graph)
        else:
            values = np.ones(len(edges))
    else:
        if weights == "sheaf":
            raise ValueError(
                '`weights` = "sheaf" takes the weights from a sheaf\'s maps, but `F_or_graph` is a '
                f'{type(F_or_graph).__name__}: pass a CellularSheaf, or use weights="graph"'
            )
        arrays = graph_arrays(F_or_graph)
        edges = arrays.edges
        sizes = np.ones(arrays.n_vertices, dtype=np.int64)
        values = edge_weights(arrays, "weight").astype(np.float64)
    tails, heads = edges.T.astype(np.int32, order="C")
    return neighbour_lists(tails, heads, values, sizes)


def relative_strengths(sheaf: CellularSheaf) -> np.ndarray:
    """Return norm(F_u* F_v)_F of every edge, 0 for loops, after scaling the largest entry to 1."""
    values = np.empty(sheaf.n_edges)
    largest = max(sheaf.largest_entry, np.finfo(float).tiny)
    kernels.strengths(sheaf.arrays, 1 / largest, values)
    return values


def is_plain(sheaf: CellularSheaf) -> bool:
    """Return whether both maps of every edge are the same multiple of the identity."""
    shape = sheaf.map_shape
    if shape is None or shape[0] != shape[1]:
        return not sheaf.n_edges
    maps = sheaf.tail_data.reshape(sheaf.n_edges, *shape)
    multiples = maps[:, :1, :1] * np.eye(shape[0])
    return np.array_equal(maps, multiples) and np.array_equal(sheaf.tail_data, sheaf.head_data)


def neighbour_lists(
    tails: np.ndarray, heads: np.ndarray, values: np.ndarray, sizes: np.ndarray
) -> Links:
    """Return adjacency lists with parallel edges summed and without loops.

    Weights are scaled so that their sums neither overflow nor underflow.
    """
    starts = np.empty(len(sizes) + 1, dtype=np.int64)
    ends = np.empty(2 * len(tails), dtype=np.int32)
    weights = np.empty(2 * len(tails))
    unit, place = values.max(initial=0) or 1.0, np.empty(len(sizes), np.int64)
    count = kernels.neighbours(tails, heads, values, unit, starts, ends, weights, place)
    return Links(starts, ends[:count], weights[:count], sizes)


def grouped_sums(labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the total size of each cluster."""
    return np.bincount(labels, weights=sizes).astype(np.int64)
