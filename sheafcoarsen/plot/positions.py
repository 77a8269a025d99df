"""Positions of both graphs of a coarsening: passed, or from distances or the quotient graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import cKDTree

from sheafcoarsen._support import real_array
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.plot._surface import Scene
from sheafcoarsen.plot.axes import MARKERS
from sheafcoarsen.plot.layout import graph_layout
from sheafcoarsen.plot.projection import View, visible_points

LINES = 50_000
"""Maximum number of edges that are drawn."""


class Places(NamedTuple):
    """Positions in the plot, and the objects to draw."""

    fine: np.ndarray  # (n, 2)
    coarse: np.ndarray  # (K, 2)
    order: np.ndarray  # vertices to draw, farthest from the viewer first
    seen: np.ndarray  # (K,) of bool, clusters to draw
    links: np.ndarray  # (P,) of bool, pairs of clusters to join by a line
    by_quotient: bool  # whether lines are links between clusters, not edges
    how: str  # where the positions come from, for the title


def vertex_places(F: Any, pos: Any) -> np.ndarray:
    """Return positions of the vertices of a sheaf or of poses as an array, (n, 2) or (n, 3)."""
    n = F.n_vertices
    if isinstance(pos, tuple) and any(getattr(part, "ndim", 1) == 2 for part in pos):
        raise ValueError(
            "`pos` must hold the points of a mesh only, got several arrays: pass `points` of "
            "`points, faces = read_mesh(path)`"
        )
    if isinstance(pos, Mapping):
        names = F.vertex_labels if F.vertex_labels is not None else range(n)
        for name in names:
            place = pos.get(name)
            if place is None or any(x != x for x in np.ravel(place)):  # NaN differs from itself
                known = f"`pos[{name!r}]` is {place}" if name in pos else f"lacks {name!r}"
                wanted = "`pos` must hold a position for every vertex"
                raise ValueError(f"{wanted}, but {known}: add one, or omit `pos`")
        pos = [pos[name] for name in names]
        if n == 0:
            return np.zeros((0, 2))
    what = f"hold two or three real coordinates for each of {n} vertices"
    return real_array("pos", pos, [(n, 2), (n, 3)], what).astype(np.float64)


def places_of(C: Coarsening, pos: Any, view: View) -> Places:
    """Return positions of both graphs.

    Without ``pos`` they are computed from distances in the graph, or in its quotient if edges would
    cover each other.
    """
    if pos is None and _is_hairball(C):
        return _quotient_places(C)
    how = "as given" if pos is not None else "computed from distances in the graph"
    n, K = C.fine.n_vertices, C.partition.n_clusters
    pos = graph_layout(C.fine.edges, n) if pos is None else vertex_places(C.fine, pos)
    order = np.arange(n)
    if pos.shape[1] == 3:
        order = np.argsort(pos @ view.toward, kind="stable")
        pos = view.project(pos)
    middle = _middle_points(pos, C.partition.labels, K)[1]
    seen, links = np.ones(K, bool), np.ones(len(C.clusters.pairs), bool)
    return Places(pos, pos[middle], order, seen, links, False, how)


def _middle_points(points: np.ndarray, labels: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters that have points, and for each its point nearest to their mean.

    Unlike means, the points of two clusters do not coincide.
    """
    sizes = np.maximum(np.bincount(labels, minlength=K), 1)
    means = np.stack([np.bincount(labels, p, minlength=K) / sizes for p in points.T], axis=1)
    order = np.lexsort((((points - means[labels]) ** 2).sum(axis=1), labels))
    clusters, first = np.unique(labels[order], return_index=True)
    return clusters, order[first]


def surface_places(C: Coarsening, scene: Scene) -> Places:
    """Place each cluster at the vertex nearest to the mean of its visible ones; omit others."""
    front = np.unique(scene.faces)
    front = front[visible_points(front, scene.points, scene.faces, scene.view)]
    K = C.partition.n_clusters
    clusters, middle = _middle_points(scene.points[front], C.partition.labels[front], K)
    flat, coarse, seen = scene.view.project(scene.points), np.zeros((K, 2)), np.zeros(K, bool)
    coarse[clusters], seen[clusters] = flat[front[middle]], True
    links = seen[C.clusters.pairs].all(axis=1)
    none = np.zeros(0, dtype=np.int64)  # faces are drawn instead of vertices
    return Places(flat, coarse, none, seen, links, False, "as given, in space")


def _is_hairball(C: Coarsening) -> bool:
    """Return whether edges would cover each other: too many, between most vertices, or at hubs."""
    n, edges = C.fine.n_vertices, C.fine.edges[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    if len(edges) > min(LINES, max(n * n / 8, 1000)):  # or most distances are 1 or 2
        return True
    return n > MARKERS and np.bincount(edges.ravel()).max(initial=0) > 20 * len(edges) / n


def _quotient_places(C: Coarsening) -> Places:
    """Return a disc of vertices for each cluster, and the strongest links between clusters."""
    K, pairs, labels = C.partition.n_clusters, C.clusters.pairs, C.partition.labels
    links = _strongest(pairs, np.diff(C.clusters.pair_ptr).astype(np.float64), K)
    centres = _apart(graph_layout(pairs[links], K), np.sqrt(C.partition.sizes), pairs[links])
    degrees = np.bincount(C.fine.edges.ravel(), minlength=len(labels))
    order = np.lexsort((-degrees, labels))
    rank = np.empty(len(labels))
    rank[order] = np.arange(len(labels)) - C.clusters.member_ptr[labels[order]]
    # arrange vertices in a sunflower pattern, with those of large degree in the middle
    angle = rank * np.pi * (3 - np.sqrt(5))
    reach = 0.9 * np.sqrt(rank + 0.5)
    places = centres[labels] + reach[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    how = "of clusters computed from the links between them"
    return Places(places, centres, np.arange(len(labels)), np.ones(K, bool), links, True, how)


def _strongest(pairs: np.ndarray, strength: np.ndarray, n: int) -> np.ndarray:
    """Return which links to draw: a few for each cluster, and a spanning forest."""
    kept = np.zeros(len(pairs), dtype=bool)
    ends = np.concatenate([pairs[:, 0], pairs[:, 1]])
    both = np.tile(np.arange(len(pairs)), 2)
    # divide by the geometric mean of both clusters' total strengths: hubs must not dominate
    total = np.bincount(ends, np.tile(strength, 2), minlength=n)
    relative = strength / np.sqrt(total[pairs[:, 0]] * total[pairs[:, 1]])
    order = np.lexsort((-relative[both], ends))
    place = np.arange(len(ends)) - np.searchsorted(ends[order], ends[order])
    kept[both[order[place < 3]]] = True  # the three strongest links of each cluster
    narrow = tuple(pairs.T.astype(np.int32))  # scipy 1.14 requires int32 indices
    tree = minimum_spanning_tree(csr_array((2 - relative, narrow), shape=(n, n))).tocoo()
    kept[np.searchsorted(pairs @ [n, 1], tree.row.astype(np.int64) * n + tree.col)] = True
    return kept


def _apart(centres: np.ndarray, radii: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return positions of discs that hardly overlap, each near those that it is linked to."""
    if len(pairs):
        between = np.linalg.norm(centres[pairs[:, 0]] - centres[pairs[:, 1]], axis=1)
        wanted = 1.3 * radii[pairs].sum(axis=1)
        centres = centres * float(np.median(wanted / np.maximum(between, 1e-9)))
    # ignore the largest 2 % of the discs: within their reach, all discs would be neighbours
    reach = 2.3 * float(np.quantile(radii, 0.98)) if len(radii) else 0.0
    for _ in range(200 if len(radii) <= 2000 else 40):
        tree = cKDTree(centres)
        if tree.count_neighbors(tree, reach) > 12 * max(len(radii), 100):
            centres = 1.5 * centres
            continue
        near = tree.query_pairs(reach, output_type="ndarray")
        apart = centres[near[:, 0]] - centres[near[:, 1]]
        distance = np.linalg.norm(apart, axis=1)
        push = 1.15 * radii[near].sum(axis=1) - distance
        over = push > 0
        if not over.any():
            break
        near, push = near[over], push[over]
        steps = (apart[over] / np.maximum(distance[over], 1e-9)[:, None]) * (push / 2)[:, None]
        centres = centres.copy()
        np.add.at(centres, near[:, 0], steps / 2)
        np.add.at(centres, near[:, 1], -steps / 2)
    return centres
