"""The sheaves of the fidelity study: synthetic, or read from the folder ``SHEAFCOARSEN_DATA``."""

import gzip
import json
import os
from pathlib import Path

import networkx as nx
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

import sheafcoarsen as sc


def induced(F, vertices):
    """Return the sheaf on given vertices, which ascend, and the edges between them."""
    place = np.full(F.n_vertices, -1)
    place[vertices] = np.arange(len(vertices))
    ends = place[F.edges]
    inside = np.flatnonzero((ends >= 0).all(axis=1))
    if F.n_edges == len(inside):
        return F
    tail, head = (
        np.concatenate([data[starts[e] : starts[e + 1]] for e in inside])
        for data, starts in ((F.tail_data, F.tail_offsets), (F.head_data, F.head_offsets))
    )
    return sc.CellularSheaf.from_flat(
        ends[inside], tail, head, F.vertex_dims[vertices], F.edge_dims[inside]
    )


def largest_component(F, limit=None):
    """Return the largest component of F, or of its first ``limit`` vertices."""
    F = F if limit is None else induced(F, np.arange(min(limit, F.n_vertices)))
    n = F.n_vertices
    links = scipy.sparse.coo_array((np.ones(F.n_edges), F.edges.T), shape=(n, n))
    _, labels = connected_components(links, directed=False)
    return induced(F, np.flatnonzero(labels == np.bincount(labels).argmax()))


def nearest(n, seed):
    """Return the edges of the 6-nearest-neighbour graph of random points in 3-D."""
    return sc.gallery.nearest_neighbors(np.random.default_rng(seed).random((n, 3)), 6)


def roads(n, seed=0):
    """Return a planar graph of mean degree 2.5, which is typical of road maps.

    Of a triangulation it keeps a spanning tree and n / 4 random edges.
    """
    rng = np.random.default_rng(seed)
    faces = Delaunay(rng.random((n, 2))).simplices
    sides = np.unique(
        np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [0, 2]]]), axis=1),
        axis=0,
    )
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(
        (int(u), int(v), float(w)) for (u, v), w in zip(sides, rng.random(len(sides)), strict=True)
    )
    kept = nx.minimum_spanning_tree(graph)
    others = [edge for edge in graph.edges if not kept.has_edge(*edge)]
    chosen = rng.choice(len(others), n // 4, replace=False)
    kept.add_edges_from(others[i] for i in chosen)
    return sc.CellularSheaf.constant(kept, weight=None)


def feeder(path):
    """Return the sheaf of a power feeder: edges are lines, and stalks the phases of a bus.

    A map selects the line's phases and multiplies by the square root of the line's conductance.
    """
    with gzip.open(path, "rt") as stream:
        data = json.load(stream)
    number = {name: i for i, name in enumerate(data["buses"])}
    phases = [bus["nodes"] for bus in data["buses"].values()]
    edges, tails, heads = [], [], []
    for line in data["lines"]:
        conductance = np.linalg.inv(np.array(line["r"]) + 1j * np.array(line["x"])).real
        values, vectors = np.linalg.eigh((conductance + conductance.T) / 2)
        root = (vectors * np.sqrt(values)) @ vectors.T
        edges.append((number[line["from"]], number[line["to"]]))
        for maps, end, nodes in (
            (tails, edges[-1][0], line["from_nodes"]),
            (heads, edges[-1][1], line["to_nodes"]),
        ):
            maps.append(
                root @ np.array([[float(node == phase) for phase in phases[end]] for node in nodes])
            )
    return sc.CellularSheaf(edges, tails, heads, vertex_dims=[len(p) for p in phases])


def surface(path):
    """Return the tangent bundle of a triangle mesh in an OFF file."""
    with gzip.open(path, "rt") as stream:
        words = stream.read().split()
    n, m = int(words[1]), int(words[2])
    points = np.array(words[4 : 4 + 3 * n], float).reshape(n, 3)
    faces = np.array(words[4 + 3 * n : 4 + 3 * n + 4 * m], int).reshape(m, 4)[:, 1:]
    return sc.gallery.tangent_bundle(points, faces)


MADE = {
    "roads": lambda size: roads(size),
    "general": lambda size: sc.CellularSheaf.random(nearest(size // 2, 1), 3, 3, seed=2),
    "bundle": lambda size: sc.gallery.bundle(nearest(size * 3 // 8, 3), 3, seed=4),
}
"""Synthetic sheaves, as functions of the number of vertices of the largest one."""

READ = {
    "minnesota": lambda folder: largest_component(sc.read_graph(folder / "graph_minnesota.mtx.gz")),
    "airfoil": lambda folder: largest_component(
        sc.read_graph(folder / "graph_airfoil.mtx.gz"), 4000
    ),
    "sphere": lambda folder: sc.read_g2o(folder / "g2o_sphere2500.g2o.gz", weights="unit"),
    "city": lambda folder: largest_component(
        sc.read_g2o(folder / "g2o_city10000.g2o.gz", weights="unit"), 4000
    ),
    "spot": lambda folder: surface(folder / "mesh_spot.off.gz"),
    "feeder": lambda folder: largest_component(feeder(folder / "feeder_ieee8500.json.gz")),
}


def build(size):
    """Yield (name, sheaf) for all available sets."""
    folder = os.environ.get("SHEAFCOARSEN_DATA")
    if folder and size >= 2000:
        for name, read in READ.items():
            yield name, read(Path(folder))
    for name, make in MADE.items():
        yield name, make(size)
