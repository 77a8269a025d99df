"""The graph of clusters: what is joined by an edge, and by how much."""

import networkx as nx
import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import real_array
from sheafcoarsen.partition import Clusters, edge_strengths
from sheafcoarsen.sheaf import CellularSheaf


def quotient_graph(
    sheaf: CellularSheaf,
    clusters: Clusters,
    dims: np.ndarray,
    weight: npt.ArrayLike | str | None,
) -> nx.Graph:
    """Return the graph of clusters; ``dims`` are those of the coarse stalks."""
    weights = _edge_weights(sheaf, weight)
    graph = nx.Graph()
    names = range(sheaf.n_vertices) if sheaf.vertex_labels is None else sheaf.vertex_labels
    inside = _sums(weights[clusters.internal_edges], clusters.internal_ptr)
    for a, (lo, hi) in enumerate(zip(clusters.member_ptr, clusters.member_ptr[1:], strict=False)):
        members = tuple(names[v] for v in clusters.members[lo:hi].tolist())
        graph.add_node(
            a, members=members, size=len(members), dim=int(dims[a]), inside=float(inside[a])
        )
    sums = _sums(weights[clusters.crossing_edges], clusters.pair_ptr)
    counts = np.diff(clusters.pair_ptr)
    rows = zip(clusters.pairs.tolist(), sums.tolist(), counts.tolist(), strict=True)
    graph.add_edges_from((a, b, {"weight": w, "count": count}) for (a, b), w, count in rows)
    return graph


def _edge_weights(sheaf: CellularSheaf, weight: npt.ArrayLike | str | None) -> np.ndarray:
    if weight is None:
        return np.ones(sheaf.n_edges)
    if isinstance(weight, str):
        if weight != "sheaf":
            raise ValueError(
                f'`weight` must be None, "sheaf" or an array of {sheaf.n_edges} numbers, got '
                f"{weight!r}: a sheaf holds no attributes of edges"
            )
        return edge_strengths(sheaf)
    what = f"hold one number for each of the {sheaf.n_edges} fine edges"
    return real_array("weight", weight, [(sheaf.n_edges,)], what).astype(np.float64)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sum of each range of values, 0 of an empty one."""
    which = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(which, weights=values, minlength=len(starts) - 1)
