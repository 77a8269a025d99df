"""Two-dimensional layout of a graph of any size.

From distances to a few pivots; for small graphs, by stress majorization.
"""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist


def graph_layout(edges: np.ndarray, n: int) -> np.ndarray:
    """Return a deterministic 2-D layout, shape (n, 2).

    Neighbours are close to each other; components are side by side, each upright: in the smallest
    rectangle, whose longer side is horizontal.

    Components of more than 600 vertices are laid out by PivotMDS (Brandes and Pich): the two
    leading singular vectors of the doubly centred squared distances to a few pivots, at the cost of
    one breadth-first search per pivot; flat layouts are stretched a little to fill the panel.
    Smaller components start from this layout with every vertex a pivot, and then reduce the stress
    sum ((|x_i - x_j| - d_ij) / d_ij)^2.
    """
    ends = edges.T.astype(np.int32)  # scipy 1.14 requires int32 for shortest paths
    graph = scipy.sparse.csr_array((np.ones(len(edges)), tuple(ends)), shape=(n, n))
    graph = scipy.sparse.csr_array(graph + graph.T)
    graph.data[:] = 1.0
    count, piece = connected_components(graph, directed=False)
    sizes = np.bincount(piece, minlength=count)
    members = np.argsort(piece, kind="stable")
    starts = np.cumsum(sizes) - sizes
    # begin with the vertices of every component on a circle
    rank = np.empty(n)
    rank[members] = np.arange(n) - starts[piece[members]]
    angle = 2 * np.pi * rank / sizes[piece]
    radius = np.where(sizes > 1, 0.4 * np.sqrt(sizes), 0.0)[piece]
    pos = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    boxes = np.stack([0.8 * np.sqrt(sizes)] * 2, axis=1)
    for c in np.argsort(-sizes, kind="stable")[:20].tolist():  # other components stay circles
        if sizes[c] > 2:
            own = members[starts[c] : starts[c] + sizes[c]]
            placed = _connected_layout(graph[own][:, own] if count > 1 else graph)
            low, high = placed.min(axis=0), placed.max(axis=0)
            side = max(float((high - low).max()), 1e-300)
            pos[own] = (placed - (low + high) / 2) * (np.sqrt(sizes[c]) / side)
            boxes[c] = np.ptp(pos[own], axis=0)
    return pos + _shelves(boxes + np.maximum(0.1 * np.sqrt(sizes), 1)[:, None])[piece]


def _shelves(boxes: np.ndarray) -> np.ndarray:
    """Return centres of boxes of given widths and heights, in rows of similar width.

    The highest are first, so that boxes of a row have similar heights.
    """
    order = np.lexsort((-boxes[:, 0], -boxes[:, 1]))
    wide, high = boxes[order].T
    ends = np.cumsum(wide)
    width = max(float(wide.max(initial=0)), 1.3 * np.sqrt((wide * high).sum()))
    row = ((ends - wide) // (width or 1.0)).astype(np.int64)
    first = np.searchsorted(row, row)  # first box of each row, as `row` ascends
    x = ends - wide / 2 - (ends - wide)[first]
    heights = np.zeros(row.max(initial=-1) + 1)
    np.maximum.at(heights, row, high)
    y = -(np.cumsum(heights) - heights / 2)[row] if len(row) else np.zeros(0)
    centres = np.empty((len(boxes), 2))
    centres[order] = np.stack([x, y], axis=1)
    return centres


def _connected_layout(graph: scipy.sparse.csr_array) -> np.ndarray:
    """Return the positions of the vertices of a connected graph."""
    n = graph.shape[0]
    small = n <= 600
    distances = dijkstra(graph, unweighted=True) if small else _distances_to_pivots(graph)
    centred = np.ascontiguousarray(distances.T) ** 2
    centred += centred.mean() - centred.mean(axis=0) - centred.mean(axis=1)[:, None]
    _, vectors = np.linalg.eigh(centred.T @ centred)
    pos = centred @ vectors[:, :-3:-1]
    if pos.shape[1] < 2 or n < 3:
        return np.pad(pos, ((0, 0), (0, 2 - pos.shape[1])))
    pos *= np.sign(np.where(vectors[0, :-3:-1] < 0, -1.0, 1.0))
    if small:
        return _upright(_least_stress(pos, distances))
    pos = _upright(pos)
    width, height = np.ptp(pos, axis=0)
    # stretch layouts with an aspect ratio above 1.6, at most twofold
    pos[:, 1] *= np.clip(width / (1.6 * max(height, 1e-300)), 1.0, 2.0)
    return pos


def _upright(pos: np.ndarray) -> np.ndarray:
    """Return positions rotated so that their smallest rectangle lies on its longer side."""
    hull = pos[ConvexHull(pos, qhull_options="QJ").vertices]  # QJ: allow points on a line
    sides = np.roll(hull, -1, axis=0) - hull
    lengths = np.linalg.norm(sides, axis=1)
    sides = sides[lengths > 0] / lengths[lengths > 0, None]  # skip coinciding points
    x, y = hull @ sides.T, hull @ np.stack([-sides[:, 1], sides[:, 0]])
    a, b = sides[int((np.ptp(x, axis=0) * np.ptp(y, axis=0)).argmin())]
    pos = pos @ np.array([[a, -b], [b, a]])
    width, height = np.ptp(pos, axis=0)
    return pos if width >= height else pos[:, ::-1] * [1.0, -1.0]


def _distances_to_pivots(graph: scipy.sparse.csr_array) -> np.ndarray:
    """Return the distances of all vertices to pivots chosen by farthest-point sampling."""
    start = int(dijkstra(graph, unweighted=True, indices=0).argmax())
    rows = [dijkstra(graph, unweighted=True, indices=start)]
    nearest = rows[0]
    while len(rows) < 24:
        rows.append(dijkstra(graph, unweighted=True, indices=int(nearest.argmax())))
        nearest = np.minimum(nearest, rows[-1])
    return np.array(rows)


def _least_stress(pos: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Reduce the stress with weights 1 / d^2 by majorization (Gansner, Koren and North)."""
    n = len(pos)
    weights = np.divide(1.0, distances**2, out=np.zeros((n, n)), where=distances > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1 / n)  # add 1 / n, since constants are in ker L
    scale = (distances * weights).sum() / max(float((cdist(pos, pos) * weights).sum()), 1e-300)
    # separate coinciding positions, such as those of the leaves of a star
    pos = scale * pos + 1e-3 * np.random.default_rng(0).standard_normal(pos.shape)
    for _ in range(60):
        lengths = cdist(pos, pos)
        pull = np.divide(weights * distances, lengths, out=np.zeros((n, n)), where=lengths > 0)
        pos = inverse @ (pull.sum(axis=1)[:, None] * pos - pull @ pos)
    return pos
