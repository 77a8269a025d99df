"""Times coarsening on large sparse sheaves, stage by stage, as ratios to named yardsticks in the same process.

    python benchmarks/large_sparse.py [--size smoke|small|medium|large] [--json FILE]

Workloads: W1, a 3-D nearest-neighbour graph with general 3 x 3 maps; W2, a 3-D grid with plane rotations; W3, a 2-D
nearest-neighbour graph with stalks of dimension 1 .. 6. Yardsticks are what a user of scipy would write: ``scipy.linalg.eigh`` for
the lowest modes, one cluster after the other with BLAS at one thread (on a sample of clusters, scaled up), and the sparse triple
product R* L R for the coarse operator. Every answer is checked before its time is shown; compilation is outside the clock; medians of
interleaved rounds.
"""

import argparse
import json
import statistics
import time
import warnings

import numpy as np
import scipy.linalg
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc

SIZES = {"smoke": 600, "small": 10_000, "medium": 100_000, "large": 1_000_000}
SAMPLE = 60


def neighbours(n, k, dim, rng):
    """Return the k-nearest-neighbour graph of random points in Morton order, edges u < v sorted."""
    points = rng.random((n, dim))
    cells = np.minimum((points * 1024).astype(np.int64), 1023)
    code = np.zeros(n, np.int64)
    for bit in range(10):
        for axis in range(dim):
            code |= ((cells[:, axis] >> bit) & 1) << (dim * bit + axis)
    points = points[np.argsort(code, kind="stable")]
    _, nearest = cKDTree(points).query(points, k=k + 1)
    pairs = np.stack([np.repeat(np.arange(n), k), nearest[:, 1:].ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def w1(n, rng):
    """General 3 x 3 maps near the identity on a 3-D nearest-neighbour graph."""
    edges = neighbours(n, 6, 3, rng)
    tail, head = (np.eye(3) + 0.3 * rng.standard_normal((len(edges), 3, 3)) for _ in range(2))
    return sc.CellularSheaf(edges, tail, head, vertex_dims=np.full(n, 3))


def w2(n, rng):
    """Plane rotations on a 3-D grid: a smooth gauge and noise in the angles."""
    side = max(round(n ** (1 / 3)), 2)
    index = np.arange(side**3).reshape(side, side, side)
    ends = [
        np.stack([np.delete(index, -1, axis).ravel(), np.delete(index, 0, axis).ravel()], axis=1) for axis in range(3)
    ]
    edges = np.concatenate(ends)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    gauge = 2 * np.pi * rng.random(side**3)
    angle = gauge[edges[:, 1]] - gauge[edges[:, 0]] + 0.3 * rng.standard_normal(len(edges))
    c, s = np.cos(angle), np.sin(angle)
    return sc.CellularSheaf.connection(edges, np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2))


def w3(n, rng):
    """Stalks of dimension 1 .. 6 on a 2-D nearest-neighbour graph, half as many vertices."""
    n //= 2
    edges = neighbours(n, 5, 2, rng)
    vertex_dims, edge_dims = rng.integers(1, 7, n), rng.integers(1, 7, len(edges))
    flat = [rng.standard_normal(int((edge_dims * vertex_dims[edges[:, end]]).sum())) for end in (0, 1)]
    return sc.CellularSheaf.from_flat(edges, *flat, vertex_dims, edge_dims)


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def scipy_modes(F, P, rank):
    """Lowest modes of a sample of clusters as a scipy user would get them; returns (seconds scaled up, worst difference)."""
    delta = sc.coboundary(F)
    labels = np.repeat(P.labels, F.vertex_dims)
    chosen = np.linspace(0, P.n_clusters - 1, min(SAMPLE, P.n_clusters)).astype(int)
    ends = P.labels[F.edges]
    inner = np.repeat(np.where(ends[:, 0] == ends[:, 1], ends[:, 0], -1), F.edge_dims)
    blocks = []
    for a in chosen:
        part = delta[np.flatnonzero(inner == a)][:, np.flatnonzero(labels == a)].toarray()
        blocks.append(part.T @ part)
    with threadpool_limits(1, "blas"):
        values, seconds = timed(
            lambda: [scipy.linalg.eigh(A, subset_by_index=[0, min(rank, len(A)) - 1])[0] for A in blocks]
        )
    return dict(zip(chosen.tolist(), values, strict=True)), seconds * P.n_clusters / len(chosen)


def run(name, F, rank, rounds):
    """Time one workload; returns a row of medians and ratios."""
    clusters = max(F.n_vertices // 40, 2)
    stages = {key: [] for key in ("select", "modes", "coarse sheaf", "coarse L", "eigh loop", "triple product")}
    for round_ in range(rounds + 1):  # the first one compiles
        P, t_select = timed(lambda: sc.select(F, clusters))
        M, t_modes = timed(lambda P=P: sc.local_modes(F, P, rank))
        C, t_coarse = timed(lambda P=P, M=M: sc.coarsen(F, P, M))
        L, t_laplacian = timed(lambda C=C: sc.laplacian(C.sheaf))
        values, t_eigh = scipy_modes(F, P, rank)
        fine = sc.laplacian(F)
        R = C.prolongation
        galerkin, t_triple = timed(lambda R=R, fine=fine: R.T @ (fine @ R))
        if round_:
            times = (t_select, t_modes, t_coarse, t_laplacian, t_eigh, t_triple)
            for key, seconds in zip(stages, times, strict=True):
                stages[key].append(seconds)
    eps, scale = np.finfo(float).eps, abs(fine).max()
    worst = max(np.abs(values[a] - M.eigenvalues(a)).max() for a in values) / (eps * scale * M.clusters.dims.max())
    assert worst < 30, f"local modes differ from scipy's by {worst:.3g} n eps norm(L)"
    worst = abs(L - galerkin).max() / (eps * scale * M.clusters.dims.max())
    assert worst < 30, f"the coarse Laplacian differs from R* L R by {worst:.3g} n eps norm(L)"
    row = {key: statistics.median(seconds) for key, seconds in stages.items()}
    row["whole"] = row["select"] + row["modes"] + row["coarse sheaf"]
    row["eigh loop / modes"] = row["eigh loop"] / row["modes"]
    row["triple product / (coarse sheaf + L)"] = row["triple product"] / (row["coarse sheaf"] + row["coarse L"])
    row["us per vertex"] = 1e6 * row["whole"] / F.n_vertices
    return {"name": name, "vertices": F.n_vertices, "edges": F.n_edges, "clusters": clusters, **row}


def main():
    """Run all workloads and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    warnings.simplefilter("ignore", sc.TiedModesWarning)
    n = SIZES[args.size]
    rows = []
    for name, build in (("W1", w1), ("W2", w2), ("W3", w3)):
        F = build(n, np.random.default_rng(7))
        rows.append(run(name, F, rank=6, rounds=1 if args.size in ("smoke", "large") else 3))
    keys = [key for key in rows[0] if key != "name"]
    print("| seconds (medians) | " + " | ".join(row["name"] for row in rows) + " |")
    print("|---|" + "---:|" * len(rows))
    for key in keys:
        cells = (f"{row[key]:,}" if isinstance(row[key], int) else f"{row[key]:.3g}" for row in rows)
        print(f"| {key} | " + " | ".join(cells) + " |")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump(rows, stream, indent=1)


if __name__ == "__main__":
    main()
