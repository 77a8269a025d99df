"""Time `sparsify` and `leverages` against one set-up of `Solver`, in one process.

    python -m benchmarks.sparsification [--vertices 5000] [--degree 200] [--eps 0.5]

The networks have the given number of vertices and mean degree: uniform, in clusters, with heavy
tails, and a connection with stalks of dimension 2. Times are medians of three, in processor seconds
of one thread, and include the bounds. For "uniform draws", as many edges are drawn independently
with equal probabilities, which is appropriate for the uniform network; the figure is the largest
distance of a generalized eigenvalue from 1. At the end, `fit_connection` and `fit_maps` are timed
on 100,000 candidate edges.
"""

import argparse
import time

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen.solve import Sparsification

ROUNDS = 3


def networks(n, degree):
    """Yield the name and the sheaf of each network."""
    rng = np.random.default_rng(0)
    uniform = np.array(nx.gnm_random_graph(n, n * degree // 2, seed=0).edges)
    yield "uniform", sc.CellularSheaf.constant(uniform, n_vertices=n)
    size = max(int(1.25 * degree), 2)
    clusters = nx.random_partition_graph([size] * max(n // size, 1), 0.8, 0.002, seed=0)
    yield "clusters", sc.CellularSheaf.constant(np.array(clusters.edges))
    weights = (1 / rng.random(n)) ** 0.6
    weights = np.minimum(weights / weights.mean() * degree, n / 2)
    heavy = nx.expected_degree_graph(weights, seed=0, selfloops=False)
    yield "heavy tails", sc.CellularSheaf.constant(np.array(heavy.edges), n_vertices=n)
    yield "connection", sc.gallery.bundle(uniform, 2, noise=0.3, seed=0)


def seconds(call):
    """Return the median processor seconds of a call, and its last result."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        result = call()
        times.append(time.process_time() - began)
    return float(np.median(times)), result


def drawn(F, count):
    """Return the distance of the eigenvalues from 1 if ``count`` edges are drawn independently."""
    share = count / F.n_edges
    edges = np.flatnonzero(np.random.default_rng(0).random(F.n_edges) < share)
    tail, head = (
        data.reshape(F.n_edges, -1)[edges].reshape(-1) / np.sqrt(share)
        for data in (F.tail_data, F.head_data)
    )
    G = sc.CellularSheaf.from_flat(F.edges[edges], tail, head, F.vertex_dims, F.edge_dims[edges])
    lo, hi = Sparsification(F, G, edges, np.full(len(edges), 1 / share)).bounds()
    return max(1 - lo, hi - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vertices", type=int, default=5000)
    parser.add_argument("--degree", type=int, default=200)
    parser.add_argument("--eps", type=float, default=0.5)
    options = parser.parse_args()
    print("network       edges    kept  share   lo     hi   set-ups  sketch  uniform draws")
    for name, F in networks(options.vertices, options.degree):
        sc.Solver(F)  # compile the kernels before timing
        set_up, _ = seconds(lambda F=F: sc.Solver(F))
        took, Z = seconds(lambda F=F: sc.sparsify(F, options.eps))
        sketch, _ = seconds(lambda F=F: sc.leverages(F, method="sketch", eps=0.3))
        lo, hi = Z.bounds()
        print(
            f"{name:12} {F.n_edges:7} {len(Z.edges):7} {len(Z.edges) / F.n_edges:6.1%} {lo:6.3f} "
            f"{hi:6.3f} {took / set_up:7.1f} {sketch / set_up:8.1f} {drawn(F, len(Z.edges)):9.3f}"
        )
    rng = np.random.default_rng(0)
    X, edges = rng.standard_normal((2000, 3, 100)), rng.integers(0, 2000, (100_000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    for name, call in (
        ("fit_connection", lambda: sc.fit_connection(X, edges)),
        ("fit_maps", lambda: sc.fit_maps(X, edges, 3, n_edges=50_000)),
    ):
        print(f"{name}: {seconds(call)[0]:.2f} s for {len(edges)} candidates, d = 3, 100 signals")


if __name__ == "__main__":
    main()
