"""Sheaves of the benchmark `answers`, with names such as "3-D grid 37", the same on every run.

Maps of grids are rotations that are consistent up to noise (the standard deviation of the angle).
"poses" is a random walk with loop closures between near poses; "chain" is a walk whose closures
reach back at most 200 steps; "near consistent" has W1's graph and general maps near a consistent
sheaf; "mixed" is W3; "strip" is a sequence of cameras, each of which sees the next two. Real data
are read from the folder ``SHEAFCOARSEN_DATA``.
"""

import os
from pathlib import Path

import numpy as np

import sheafcoarsen as sc
from benchmarks import sets, workloads
from benchmarks.workloads import grid

NOISE = 0.03


def poses(n):
    """Return a pose graph: a random walk on a torus with loop closures at places seen before."""
    rng = np.random.default_rng(0)
    side = int(0.7 * np.sqrt(n))
    turns = rng.choice([1, 3], n) * (rng.random(n) < 0.3)
    heading = np.cumsum(turns) % 4
    steps = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[heading]
    places = np.cumsum(steps, axis=0) % side
    seen, edges = {}, [(i, i + 1) for i in range(n - 1)]
    for i, (x, y) in enumerate(places.tolist()):
        for dx, dy in ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)):
            j = seen.get(((x + dx) % side, (y + dy) % side))
            if j is not None and i - j > 1 and rng.random() < 0.35:
                edges.append((j, i))
        seen[x, y] = i
    return sc.gallery.bundle(np.array(sorted(set(edges))), 2, noise=NOISE, seed=0)


def chain(n):
    """Return a walk of n steps with n / 2 random closures, each over fewer than 200 steps."""
    rng = np.random.default_rng(1)
    steps, seen = np.arange(n - 1), rng.integers(0, n - 200, n // 2)
    back = np.stack([seen, seen + rng.integers(2, 200, n // 2)], axis=1)
    edges = np.unique(np.concatenate([np.stack([steps, steps + 1], axis=1), back]), axis=0)
    return sc.gallery.bundle(edges, 2, noise=0.02, seed=1)


def near_consistent(n):
    """Return a sheaf with general 3 x 3 maps M_e T_v, perturbed by 1 %."""
    F, rng = workloads.build("W1", n), np.random.default_rng(7)
    n, m, d = F.n_vertices, F.n_edges, 3
    frames = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    frames = frames * np.exp(0.6 * rng.standard_normal((n, 1, d)))
    maps = np.eye(d) + 0.3 * rng.standard_normal((m, d, d))
    tail, head = (
        maps @ frames[F.edges[:, end]] @ (np.eye(d) + 0.01 * rng.standard_normal((m, d, d)))
        for end in (0, 1)
    )
    return F.with_maps(tail, head)


def strip(n):
    """Return the constant sheaf of dimension 3 with the edges (i, i + 1) and (i, i + 2)."""
    edges = [(i, i + k) for i in range(n) for k in (1, 2) if i + k < n]
    return sc.CellularSheaf.constant(np.array(edges), 3, weight=None)


def bundle(*sides, dim, noise=NOISE):
    return sc.gallery.bundle(grid(*sides), dim, noise=noise, seed=0)


MADE = {
    "2-D grid": lambda n: bundle(n, n, dim=3),
    "2-D grid, six": lambda n: bundle(n, n, dim=6),
    "3-D grid": lambda n: bundle(n, n, n, dim=2),
    "3-D grid, consistent": lambda n: bundle(n, n, n, dim=2, noise=0.0),
    "3-D grid, scalar": lambda n: sc.CellularSheaf.constant(grid(n, n, n)),
    "3-D grid, space": lambda n: bundle(n, n, n, dim=3, noise=0.0),
    "poses": poses,
    "chain": chain,
    "near consistent": near_consistent,
    "mixed": lambda n: workloads.build("W3", n),
    "strip": strip,
}

READ = {
    "bunny": lambda folder: sets.surface(folder / "mesh_bunny.off.gz"),
    "wing": lambda folder: sc.read_graph(folder / "graph_wing.graph.gz"),
    "minnesota": sets.READ["minnesota"],
    "sphere2500": lambda folder: sc.read_g2o(folder / "g2o_sphere2500.g2o.gz"),
    "torus3d": lambda folder: sc.read_g2o(folder / "g2o_torus3d.g2o.gz"),
    "city10000": lambda folder: sc.read_g2o(folder / "g2o_city10000.g2o.gz"),
    "feeder": lambda folder: sets.feeder(folder / "feeder_ieee8500.json.gz"),
}


def at_hand(name):
    """Return whether a problem can be built: it is synthetic, or the data folder is set."""
    return name not in READ or bool(os.environ.get("SHEAFCOARSEN_DATA"))


def build(name):
    """Return the sheaf with a given name, whose last word is the size."""
    if name in READ:
        return READ[name](Path(os.environ["SHEAFCOARSEN_DATA"]))
    kind, _, size = name.rpartition(" ")
    return MADE[kind](int(size))
