"""Time the initial rotations of `synchronize` against those of gtsam.

    python -m benchmarks.synchronization [--rounds 9] [--docs] [--only TEXT]

``gtsam.fastSyncRot2`` and ``fastSyncRot3`` round the chordal relaxation with one frame held fixed,
as `synchronize` does with ``method="anchored"``; its default uses the lowest modes. Both libraries
get the same measurements in their own data structures, whose construction is not timed: gtsam a
factor graph with precisions kappa, we the sheaf, or the pose graph, for which positions are
computed too. Times are medians of interleaved rounds in processor seconds of one thread. gtsam is
in the extra ``bench``, except on Windows.

A ratio is gtsam's time over ours. A cost is that of the rotations in the convention of SE-Sync,
ours over gtsam's. "refined" is F / f* - 1 after ``refine=True``, where f* are the certified optima
of SE-Sync (Rosen et al., IJRR 2019, tables 1 and 2). Real pose graphs are read from the folder
``SHEAFCOARSEN_DATA``; a grid with loops is generated.

The line "certified" compares the times until rotations are certified as optimal, ours with
``refine=True`` and ``certify()``, theirs by the start above and ``RiemannianStaircaseOptimizer``,
and the relative difference of the costs. Both solve for rotations only, without translations.
"""

import dataclasses
import importlib.metadata
import os
import textwrap
import time
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from benchmarks import peers, report
from benchmarks.timing import paired

CERTIFIED = {"sphere2500": 1687, "torus3d": 24230, "parking_garage": 1.263, "city10000": 638.6}
REAL = (*CERTIFIED, "intel")
SIDE, NOISE = 14, 0.1
MARKER = "synchronization"


def made(side=SIDE):
    """Return random poses on a 3-D grid, with noisy measurements between neighbours."""
    rng = np.random.default_rng(0)
    grid = nx.convert_node_labels_to_integers(nx.grid_graph([side] * 3))
    edges = np.array(grid.edges)
    R = Rotation.from_rotvec(rng.standard_normal((len(grid), 3)))
    t = rng.standard_normal((len(grid), 3))
    i, j = edges.T
    turns = R[i].inv() * R[j] * Rotation.from_rotvec(NOISE * rng.standard_normal((len(i), 3)))
    steps = R[i].inv().apply(t[j] - t[i]) + NOISE * rng.standard_normal((len(i), 3))
    return sc.PoseGraph(edges, turns.as_matrix(), steps, 50.0, 100.0)


def problems(only):
    """Yield the name and the pose graph of each available problem."""
    folder = os.environ.get("SHEAFCOARSEN_DATA")
    for name in REAL:
        if only in name and folder:
            yield name, sc.read_g2o(Path(folder) / f"g2o_{name}.g2o.gz", poses=True)
        elif only in name:
            print(f"{name}: SHEAFCOARSEN_DATA is not set")
    name = f"cubes {SIDE}"
    if only in name:
        yield name, made()


def rotation_cost(G, R):
    """Return the sum of kappa norm(R_j - R_i R_ij)^2."""
    i, j = G.edges.T
    return float(G.kappa @ np.square(R[j] - R[i] @ G.rotations).sum(axis=(1, 2)))


def gtsam_start(gtsam, G):
    """Return two functions: one that runs gtsam, and one that converts its answer to rotations."""
    graph = gtsam.NonlinearFactorGraph()
    precise = gtsam.noiseModel.Isotropic.Precision
    for (i, j), turn, kappa in zip(G.edges.tolist(), G.rotations, G.kappa, strict=True):
        if G.dim == 3:
            seen, noise = gtsam.Rot3(turn), precise(3, 2 * kappa)
            graph.add(gtsam.BetweenFactorRot3(i, j, seen, noise))
        else:
            seen, noise = gtsam.Rot2(np.arctan2(turn[1, 0], turn[0, 0])), precise(1, 2 * kappa)
            graph.add(gtsam.BetweenFactorRot2(i, j, seen, noise))

    def rotations(values):
        at = values.atRot3 if G.dim == 3 else values.atRot2
        return np.array([at(i).matrix() for i in range(G.n_vertices)])

    start = gtsam.fastSyncRot3 if G.dim == 3 else gtsam.fastSyncRot2
    return lambda: start(graph), rotations


def measured(name, G, gtsam, rounds):
    """Time one problem, and return its figures by name."""
    F = G.sheaf
    candidates = {
        "modes": lambda: sc.synchronize(F),
        "with places": lambda: sc.synchronize(G),
        "anchored": lambda: sc.synchronize(F, "anchored"),
    }
    if gtsam is not None:
        candidates["gtsam"], rotations = gtsam_start(gtsam, G)
    times = paired(candidates, rounds, clock=time.process_time)
    row = {"problem": f"{name}, {G.n_vertices:,} poses, {G.n_edges:,} edges"}
    row |= {key: times.median(key) for key in candidates}
    if gtsam is not None:
        theirs = rotation_cost(G, rotations(times.answers["gtsam"]))
        for key in ("modes", "with places", "anchored"):
            row[f"{key}, ratio"] = times.ratio("gtsam", key)
            row[f"{key}, cost"] = rotation_cost(G, times.answers[key].rotations) / theirs
    if name in CERTIFIED:
        cost = sc.synchronize(G, refine=True).cost
        row |= {"refined": cost / CERTIFIED[name] - 1, "cost": cost}
    return row


def cells(row):
    """Yield the cells of a row: times with their ratios and costs, and the refined cost."""
    yield row["problem"]
    yield report.amount(row["gtsam"], "s") if "gtsam" in row else "-"
    for key in ("modes", "with places", "anchored"):
        text = report.amount(row[key], "s")
        if "gtsam" in row:
            text = f"**{row[f'{key}, ratio']:.2f}** ({text}; cost {row[f'{key}, cost']:.6f})"
        yield text
    yield f"{row['refined']:.1g}" if "refined" in row else ""


def planted(G, draws=10, count=50, first=40):
    """Return how many of ``count`` planted outliers are among the ``first`` edges, in each draw.

    Edges are ordered by `outliers`, and by the residual angles of least squares. The outliers are
    loop closures whose measurements are replaced by random ones.
    """
    closures = np.flatnonzero(abs(G.edges[:, 0] - G.edges[:, 1]) > 1)
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        bad = rng.choice(closures, count, replace=False)
        angle = rng.uniform(-np.pi, np.pi, count)
        c, s = np.cos(angle), np.sin(angle)
        R, t = G.rotations.copy(), G.translations.copy()
        R[bad] = np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2)
        t[bad] = 5 * rng.standard_normal((count, 2))
        S = sc.synchronize(dataclasses.replace(G, rotations=R, translations=t))
        orders = S.outliers(), np.argsort(-S.angles)
        found.append([int(np.isin(order[:first], bad).sum()) for order in orders])
    return np.array(found).T


def certified(G, gtsam, rounds):
    """Return a text that compares certified rotations; those of gtsam may fail or be missing."""
    if not hasattr(gtsam, "RiemannianStaircaseOptimizer"):
        return "certified: gtsam has no certified optimizer here"
    F, d = G.sheaf, G.dim
    precise = gtsam.noiseModel.Isotropic.Precision
    graph, start = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for (i, j), turn, kappa in zip(G.edges.tolist(), G.rotations, G.kappa, strict=True):
        noise = precise(d * d, 2 * kappa)
        if d == 3:
            graph.add(gtsam.FrobeniusBetweenFactorRot3(i, j, gtsam.Rot3(turn), noise))
        else:
            seen = gtsam.Rot2(np.arctan2(turn[1, 0], turn[0, 0]))
            graph.add(gtsam.FrobeniusBetweenFactorRot2(i, j, seen, noise))
    begin, rotations = gtsam_start(gtsam, G)
    for i, R in enumerate(rotations(begin())):
        start.insert(i, np.asfortranarray(R.T))
    options = gtsam.RiemannianStaircaseParams()
    options.pMin = d

    def ours():
        S = sc.synchronize(F, refine=True)
        return S, S.certify()

    def theirs():
        begin()
        return gtsam.RiemannianStaircaseOptimizer(graph, start, options).optimize()

    times = paired({"ours": ours, "gtsam": theirs}, rounds, clock=time.process_time)
    (S, Z), found = times.answers["ours"], times.answers["gtsam"]
    seconds = f"{report.amount(times.median('ours'), 's')}, optimal: {Z.is_optimal}; gtsam "
    seconds += f"{report.amount(times.median('gtsam'), 's')}, optimal: {found.certified}"
    if not found.hasRoundedSolution():
        return f"certified: ours {seconds}, without rotations"
    values = found.roundedValues()
    R = np.array([values.atMatrix(i)[:, :d].T for i in range(G.n_vertices)])
    left, _, right = np.linalg.svd(R)  # matrices of gtsam are orthogonal to a few digits only
    R = left @ right
    off = rotation_cost(G, R) / S.cost - 1
    return f"certified: ours {seconds}; {times.ratio('gtsam', 'ours'):.1f} times; cost {off:+.1g}"


HEADS = ("problem", "gtsam", "by modes", "with places", "anchored", "refined")


def main():
    """Run all problems, print the rows, and write its table in the docs on request."""
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--docs", action="store_true", help="write the table into docs/benchmarks.md"
    )
    parser.add_argument("--only", default="", help="run problems whose names contain this text")
    args = parser.parse_args()
    gtsam = peers.installed("gtsam")
    if not hasattr(gtsam, "fastSyncRot3"):
        gtsam = None
        print("gtsam 4.3 is not installed: no ratios")
    rows = []
    with peers.one_thread():
        for name, G in problems(args.only):
            row = measured(name, G, gtsam, args.rounds)
            rows.append(tuple(cells(row)))
            cost = f" | refined cost {row['cost']:.7g}" if "cost" in row else ""
            print(" | ".join(rows[-1]).replace("**", "") + cost, flush=True)
            if gtsam is not None:
                print(f"  {certified(G, gtsam, args.rounds)}", flush=True)
            if name == "intel" and args.rounds > 1:
                robust, plain = (f"{one.min()} to {one.max()}" for one in planted(G))
                print(f"  planted outliers: {robust} of 40; {plain} by least squares", flush=True)
    if args.docs:
        lines = [" | ".join(HEADS), "---|" * len(HEADS), *(" | ".join(row) for row in rows)]
        table = "\n".join(f"| {line} |" if "---|" not in line else f"|{line}" for line in lines)
        data = report.machine()
        data["numba threads"] = data["BLAS threads"] = 1
        version = "" if gtsam is None else f", gtsam {importlib.metadata.version('gtsam')}"
        where = textwrap.fill(f"Measured on {report.machine_line(data)}{version}.", 100)
        report.put_table(MARKER, f"{table}\n\n{where}")


if __name__ == "__main__":
    main()
