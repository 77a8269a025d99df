"""Positions in a picture: the view of a surface, layouts of graphs, both graphs of a coarsening."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree
from scipy.spatial import ConvexHull, cKDTree
from scipy.spatial.distance import cdist

from sheafcoarsen._support import checks, surfaces
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.plot.draw import LINES, MARKERS, NUMBERED

UpAxis: TypeAlias = Literal["x", "y", "z", "-x", "-y", "-z"]
"""The coordinate axis that points up in a picture, or down with a minus sign."""


class View(NamedTuple):
    """Unit vectors of the view: to the right, up, and towards the viewer."""

    right: np.ndarray
    up: np.ndarray
    toward: np.ndarray
    options: dict  # arguments of matplotlib's view_init for the same view

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates of points in the picture, shape (..., 2)."""
        return points @ np.stack([self.right, self.up], axis=1)


def view_from(view: Any, up: Any) -> View:
    """Check elevation and azimuth in degrees and the axis that points up; return their view."""
    checks.choice("up", up, get_args(UpAxis))
    what = "be two angles in degrees, elevation and azimuth"
    elevation, azimuth = checks.real_array("view", view, [(2,)], what).tolist()
    # with a minus sign, the view from below, rotated by half a turn
    sign, axis = (-1 if up.startswith("-") else 1), up[-1]
    e, a = np.radians([sign * elevation, azimuth])
    toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    turn = "xyz".index(axis) + 1  # maps the third axis to ``up``
    toward, right = np.roll(toward, turn), np.roll(right, turn)
    options = {"elev": sign * elevation, "azim": azimuth, "vertical_axis": axis}
    options["roll"] = 0 if sign > 0 else 180
    return View(sign * right, sign * np.cross(toward, right), toward, options)


class Scene(NamedTuple):
    """A surface and its view."""

    given: np.ndarray  # (n, 3); rounding after scaling might change the frames at some vertices
    points: np.ndarray  # (n, 3), scaled by a power of two to about 1
    faces: np.ndarray  # (f, k)
    view: View
    flat: np.ndarray  # (n, 2), positions in the picture
    order: np.ndarray  # faces, farthest from the viewer first
    light: np.ndarray  # (f,), in [0, 1]

    def visible(self, at: np.ndarray) -> np.ndarray:
        """Return a mask (k,) of the vertices ``at`` that no face closer to the viewer hides."""
        flat, faces, depth = self.flat, self.faces, self.points @ self.view.toward
        visible = np.ones(len(at), dtype=bool)
        low, high = flat[faces].min(axis=1), flat[faces].max(axis=1)
        reach = np.linalg.norm(high - low, axis=1) / 2
        near = cKDTree(flat[at]).query_ball_point(low / 2 + high / 2, 1.01 * reach)
        f = np.repeat(np.arange(len(faces)), list(map(len, near)))
        i = np.fromiter(chain.from_iterable(near), np.int64, len(f))
        foreign = (faces[f] != at[i, None]).all(axis=1)
        i, f = i[foreign], f[foreign]
        z = flat @ [1, 1j]  # the imaginary part of conj(a) b is the cross product of a and b
        first, q = faces[f, 0], z[at[i]] - z[faces[f, 0]]
        for j in range(1, faces.shape[1] - 1):  # triangles at the first corner
            second, third = faces[f, j], faces[f, j + 1]
            a, b = z[second] - z[first], z[third] - z[first]
            area = (a.conj() * b).imag
            area = np.where(area == 0, np.inf, area)
            s, t = (q.conj() * b).imag / area, (a.conj() * q).imag / area
            inside = (s >= 0) & (t >= 0) & (s + t <= 1) & np.isfinite(area)
            plane = (1 - s - t) * depth[first] + s * depth[second] + t * depth[third]
            visible[i[inside & (plane > depth[at[i]])]] = False
        return visible


def scene_of(points: Any, faces: Any, view: Any, up: Any) -> Scene:
    """Check a surface and its view; return them with the drawing order and brightness of faces."""
    points, faces = surfaces.surface_arrays(points, faces)
    scaled, _ = surfaces.scaled_points(points)
    if len(scaled):
        scaled = scaled - (scaled.min(axis=0) / 2 + scaled.max(axis=0) / 2)
    seen = view_from(view, up)
    order = np.argsort(scaled[faces].mean(axis=1) @ seen.toward, kind="stable")
    normals, _ = surfaces.area_vectors(scaled, faces)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    source = seen.toward + 0.55 * seen.up - 0.45 * seen.right  # at the upper left
    facing = np.where(normals @ seen.toward < 0, -1.0, 1.0)  # both sides of a face are lit
    light = np.maximum(facing * (normals @ (source / np.linalg.norm(source))), 0.0)
    return Scene(points, scaled, faces, seen, seen.project(scaled), order, light)


def spread_out(points: np.ndarray, count: int) -> np.ndarray:
    """Return indices of up to ``count`` points by farthest-point sampling.

    The first is farthest from the mean. Coinciding points are chosen once.
    """
    if not len(points):
        return np.zeros(0, np.int64)
    distances = np.full(len(points), np.inf)
    chosen = [((points - points.mean(axis=0)) ** 2).sum(axis=1).argmax()]
    while len(chosen) < count:
        own = ((points - points[chosen[-1]]) ** 2).sum(axis=1)
        distances = np.minimum(distances, own)
        if not distances.any():
            break
        chosen.append(distances.argmax())
    return np.array(chosen)


def usual_gap(points: np.ndarray) -> float:
    """Return the median nearest-neighbour distance of points, or 1 if it is 0 or undefined."""
    if len(points) < 2:
        return 1.0
    return float(np.median(cKDTree(points).query(points, k=2)[0][:, 1])) or 1.0


# ---------------------------------------------------------------- layouts of graphs


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
    remedy = ": give this vertex a position, such as that of a neighbour, or omit `pos`"
    return checks.real_array("pos", pos, [(n, 2), (n, 3)], what, remedy).astype(np.float64)


def flat_places(
    F: Any, pos: Any, faces: Any, view: Any, up: Any
) -> tuple[np.ndarray, np.ndarray, Scene | None]:
    """Return positions in the picture, (n, 2), the vertices to draw, farthest first, and a surface.

    The surface, which is drawn instead of vertices, is None without ``faces``.
    """
    seen = view_from(view, up)
    places = None if pos is None else vertex_places(F, pos)
    if faces is not None:
        if places is None or places.shape[1] != 3:
            got = None if places is None else places.shape
            wanted = "`pos` must have shape (n, 3)"
            raise ValueError(f"`faces` require positions in space: {wanted}, got {got}")
        scene = scene_of(places, faces, view, up)
        return scene.flat, np.arange(0), scene
    if places is None:
        places = graph_layout(F.edges, F.n_vertices)
    if places.shape[1] == 2:
        return places, np.arange(len(places)), None
    return seen.project(places), np.argsort(places @ seen.toward, kind="stable"), None


def graph_layout(edges: np.ndarray, n: int) -> np.ndarray:
    """Return a deterministic 2-D layout, shape (n, 2), with components side by side.

    All but the 20 largest components are circles.
    """
    ends = edges.T.astype(np.int32)  # scipy 1.14 requires int32 for shortest paths
    graph = csr_array((np.ones(len(edges)), tuple(ends)), shape=(n, n))
    graph = csr_array(graph + graph.T)
    count, piece = connected_components(graph, directed=False)
    sizes = np.bincount(piece, minlength=count)
    # begin with the vertices of every component on a circle
    angle = 2 * np.pi * _ranks(piece) / sizes[piece]
    radius = np.where(sizes > 1, 0.4 * np.sqrt(sizes), 0.0)[piece]
    pos = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    boxes = np.stack([0.8 * np.sqrt(sizes)] * 2, axis=1)
    for c in np.argsort(-sizes, kind="stable")[:20].tolist():  # other components stay circles
        if sizes[c] > 2:
            own = np.flatnonzero(piece == c)
            placed = _connected_layout(graph[own][:, own] if count > 1 else graph)
            low, high = placed.min(axis=0), placed.max(axis=0)
            side = max(float((high - low).max()), 1e-300)
            pos[own] = (placed - (low + high) / 2) * (np.sqrt(sizes[c]) / side)
            boxes[c] = np.ptp(pos[own], axis=0)
    return pos + _shelves(boxes + np.maximum(0.18 * np.sqrt(sizes), 1)[:, None])[piece]


def _ranks(groups: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """Return the rank of each item among those of its group, sorted by keys, then by index."""
    order = np.lexsort((*keys, groups))
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(groups[order], groups[order])
    return ranks


def _shelves(boxes: np.ndarray) -> np.ndarray:
    """Return centres of boxes of given widths and heights, in rows of similar width.

    The highest are first, so that boxes of a row have similar heights.
    """
    order = np.lexsort((-boxes[:, 0], -boxes[:, 1]))
    wide, high = boxes[order].T
    ends = np.cumsum(wide)
    width = max(float(wide.max(initial=0)), 1.3 * np.sqrt((wide * high).sum()))
    row = ((ends - wide) // width).astype(np.int64)
    first = np.searchsorted(row, row)  # first box of each row, as `row` ascends
    x = ends - wide / 2 - (ends - wide)[first]
    heights = np.zeros(row.max(initial=-1) + 1)
    np.maximum.at(heights, row, high)
    y = -(np.cumsum(heights) - heights / 2)[row]
    centres = np.empty((len(boxes), 2))
    centres[order] = np.stack([x, y], axis=1)
    return centres


def _connected_layout(graph: csr_array) -> np.ndarray:
    """Return the positions of the vertices of a connected graph of at least three vertices.

    PivotMDS (Brandes and Pich): the two leading singular vectors of the doubly centred squared
    distances to pivots. In graphs of up to 600 vertices every vertex is a pivot, and then the
    stress sum ((|x_i - x_j| - d_ij) / d_ij)^2 is reduced.
    """
    small = graph.shape[0] <= 600
    if small:
        distances = dijkstra(graph, unweighted=True)
    else:  # to pivots chosen by farthest-point sampling
        rows: list = []
        pivot = int(dijkstra(graph, unweighted=True, indices=0).argmax())
        while len(rows) < 24:
            rows.append(dijkstra(graph, unweighted=True, indices=pivot))
            pivot = int(np.min(rows, axis=0).argmax())
        distances = np.array(rows)
    centred = np.ascontiguousarray(distances.T) ** 2
    centred += centred.mean() - centred.mean(axis=0) - centred.mean(axis=1)[:, None]
    _, vectors = np.linalg.eigh(centred.T @ centred)
    pos = centred @ vectors[:, :-3:-1]
    pos *= np.sign(np.where(vectors[0, :-3:-1] < 0, -1.0, 1.0))
    if small:
        return _upright(_least_stress(pos, distances))
    pos = _upright(pos)
    width, height = np.ptp(pos, axis=0)
    # stretch layouts with an aspect ratio above 1.6, at most twofold
    pos[:, 1] *= np.clip(width / (1.6 * max(height, 1e-300)), 1.0, 2.0)
    return pos


def _upright(pos: np.ndarray) -> np.ndarray:
    """Return positions rotated so that their smallest bounding box is at least as wide as high."""
    hull = pos[ConvexHull(pos, qhull_options="QJ").vertices]  # QJ: allow points on a line
    sides = np.roll(hull, -1, axis=0) - hull
    lengths = np.linalg.norm(sides, axis=1)
    sides = sides[lengths > 0] / lengths[lengths > 0, None]  # skip coinciding points
    x, y = hull @ sides.T, hull @ np.stack([-sides[:, 1], sides[:, 0]])
    a, b = sides[int((np.ptp(x, axis=0) * np.ptp(y, axis=0)).argmin())]
    pos = pos @ np.array([[a, -b], [b, a]])
    width, height = np.ptp(pos, axis=0)
    return pos if width >= height else pos[:, ::-1] * [1.0, -1.0]


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


# ---------------------------------------------------------------- the graphs of a coarsening


class Places(NamedTuple):
    """Positions in the plot, and the objects to draw."""

    fine: np.ndarray  # (n, 2)
    coarse: np.ndarray  # (K, 2)
    order: np.ndarray  # vertices to draw, farthest from the viewer first
    seen: np.ndarray  # (K,) of bool, clusters to draw
    links: np.ndarray  # (P,) of bool, pairs of clusters to join by a line
    scene: Scene | None  # a surface, whose faces are drawn instead of vertices and edges
    by_quotient: bool  # whether lines are links between clusters, not edges
    how: str  # where the positions come from, for the title


def places_of(C: Coarsening, pos: Any, faces: Any, view: Any, up: Any) -> Places:
    """Return positions of both graphs, and what to draw of them.

    A cluster is at the one of its visible vertices nearest to their mean, since unlike means these
    coincide only where vertices do. Without ``pos``, clusters that overlap are moved apart, and, if
    there are up to 20, also off the edges of others; if edges would cover each other, positions are
    computed in the quotient instead.
    """
    F, labels, K = C.fine, C.partition.labels, C.partition.n_clusters
    view_from(view, up)  # checks both
    how = "as given" if faces is None else "as given, in space"
    if pos is None and faces is None:
        how, n = "computed from distances in the graph", F.n_vertices
        edges = F.edges[F.edges[:, 0] != F.edges[:, 1]]
        many = len(edges) > min(LINES, max(n * n / 8, 1000))  # or most distances are 1 or 2
        hubs = n > MARKERS and np.bincount(edges.ravel()).max(initial=0) > 20 * len(edges) / n
        if many or hubs:
            # a disc of vertices for each cluster, and the strongest links between clusters
            pairs, counts = C.clusters.pairs, np.diff(C.clusters.pair_ptr)
            links = _strongest(pairs, counts.astype(np.float64), K)
            layout = graph_layout(pairs[links], K)
            centres = _apart(layout, np.sqrt(C.partition.sizes), pairs[links])
            # a sunflower pattern, with the vertices of large degree in the middle
            rank = _ranks(labels, -np.bincount(F.edges.ravel(), minlength=n))
            places = centres[labels] + _sunflower(rank, 0.9 * np.sqrt(rank + 0.5))
            how = "of clusters computed from the links between them"
            return Places(places, centres, np.arange(n), np.ones(K, bool), links, None, True, how)
    flat, order, scene = flat_places(F, pos, faces, view, up)
    points, front = flat, np.arange(len(flat))
    if scene is not None:
        points, front = scene.points, np.unique(scene.faces)
        front = front[scene.visible(front)]
    points, own = points[front], labels[front]
    sizes = np.maximum(np.bincount(own, minlength=K), 1)
    means = np.stack([np.bincount(own, p, minlength=K) / sizes for p in points.T], axis=1)
    nearest = np.lexsort((((points - means[own]) ** 2).sum(axis=1), own))
    clusters, first = np.unique(own[nearest], return_index=True)
    coarse, seen = np.zeros((K, 2)), np.zeros(K, bool)
    coarse[clusters], seen[clusters] = flat[front[nearest[first]]], True
    if pos is None and K:  # so that a heavy link between close clusters is seen
        radius = 0.15 * float(np.ptp(flat, axis=0).max()) / np.sqrt(K)
        coarse = _apart(coarse, np.full(K, radius), np.zeros((0, 2), int))
        if K <= NUMBERED:
            coarse = _off_lines(coarse, C.clusters.pairs, 0.7 * radius)
    links = seen[C.clusters.pairs].all(axis=1)
    return Places(flat, coarse, order, seen, links, scene, False, how)


def _sunflower(rank: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return offsets at given distances from the middle of a sunflower pattern."""
    angle = rank * np.pi * (3 - np.sqrt(5))
    return distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _strongest(pairs: np.ndarray, strength: np.ndarray, n: int) -> np.ndarray:
    """Return a mask of the links to draw: a few for each cluster, and a spanning forest."""
    kept = np.zeros(len(pairs), dtype=bool)
    ends, both = pairs.T.reshape(-1), np.tile(np.arange(len(pairs)), 2)
    # divide by the geometric mean of both clusters' total strengths: hubs must not dominate
    total = np.bincount(ends, strength[both], minlength=n)
    relative = strength / np.sqrt(total[pairs].prod(axis=1))
    kept[both[_ranks(ends, -relative[both]) < 3]] = True  # the three strongest of each cluster
    narrow = tuple(pairs.T.astype(np.int32))  # scipy 1.14 requires int32 indices
    tree = minimum_spanning_tree(csr_array((2 - relative, narrow), shape=(n, n))).tocoo()
    kept[np.searchsorted(pairs @ [n, 1], tree.row.astype(np.int64) * n + tree.col)] = True
    return kept


def _apart(centres: np.ndarray, radii: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return positions of discs that hardly overlap, each near those that it is linked to."""
    if len(pairs):
        between = np.linalg.norm(centres[pairs[:, 0]] - centres[pairs[:, 1]], axis=1)
        ratios = 1.3 * radii[pairs].sum(axis=1)[between > 0] / between[between > 0]
        centres = centres * (float(np.median(ratios)) if len(ratios) else 1.0)
    # ignore the largest 2 % of the discs: within their reach, all discs would be neighbours
    reach = 2.3 * float(np.quantile(radii, 0.98)) if len(radii) else 0.0
    # pushes separate distinct discs only: arrange nearly coinciding ones in a pattern
    cells = np.rint(1e3 / (reach or 1.0) * centres)
    rank = _ranks(np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1))
    centres = centres + _sunflower(rank, reach / 2 * np.sqrt(rank))
    for _ in range(200 if len(radii) <= 2000 else 40):
        tree = cKDTree(centres)
        if tree.count_neighbors(tree, reach) > 12 * max(len(radii), 100):
            centres = 1.5 * centres
            continue
        near = tree.query_pairs(reach, output_type="ndarray")
        apart = centres[near[:, 0]] - centres[near[:, 1]]
        distance = np.linalg.norm(apart, axis=1)
        push = (1.15 * radii[near].sum(axis=1) - distance).clip(0)
        if not push.any():
            break
        steps = apart * (push / np.maximum(distance, 1e-9) / 4)[:, None]
        np.add.at(centres, near[:, 0], steps)
        np.add.at(centres, near[:, 1], -steps)
    return centres


def _off_lines(centres: np.ndarray, pairs: np.ndarray, gap: float) -> np.ndarray:
    """Return positions moved to about ``gap`` from lines that would seem to end at them."""
    own = (np.arange(len(centres))[:, None, None] == pairs).any(axis=2)
    for _ in range(50):
        start, line = centres[pairs[:, 0]], centres[pairs[:, 1]] - centres[pairs[:, 0]]
        length = np.maximum(np.linalg.norm(line, axis=1), 1e-300)
        unit = line / length[:, None]
        normal = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
        from_start = centres[:, None] - start
        along, off = (from_start * unit).sum(axis=2), (from_start * normal).sum(axis=2)
        near = (along > 0) & (along < length) & (np.abs(off) < gap) & ~own
        if not near.any():
            break
        push = np.where(near, np.where(off < 0, -gap, gap) - off, 0) / 2
        centres = centres + push @ normal / np.maximum(near.sum(axis=1), 1)[:, None]
    return centres
