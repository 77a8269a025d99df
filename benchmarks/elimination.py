"""Time eliminations, and solves with and without elimination, in the same process.

    python -m benchmarks.elimination [--size smoke|small|medium] [--data FOLDER] [--cpu]

On trees: `eliminate`, `refresh` with new maps, and `global_sections` with random 2 x 2 maps, whose
products grow and decay along paths. On networks from the data folder, with one vertex of each
component grounded: the set-up of `Solver` and one solve to 1e-8, with and without elimination.
Answers are checked first: h0, and norm(L x - b). Figures are medians of interleaved rounds;
``--cpu`` measures processor seconds, for shared machines. A low ratio is not an error.
"""

import os
import time
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc
from benchmarks import checks, report, timing

SIZES = {"smoke": 3000, "small": 100_000, "medium": 1_000_000}

NETWORKS = (
    "graph_minnesota.mtx.gz",
    "g2o_csail.g2o.gz",
    "g2o_intel.g2o.gz",
    "graph_power.graph.gz",
    "graph_pgp.graph.gz",
)


def tree(kind, n):
    """Return the edges of a path, a random tree or a star."""
    rng = np.random.default_rng(7)
    ends = {
        "path": np.arange(n - 1),
        "random tree": (rng.random(n - 1) * np.arange(1, n)).astype(int),
        "star": np.zeros(n - 1, int),
    }[kind]
    return np.stack([ends, np.arange(1, n)], axis=1)


def show_tree(kind, n, rounds, clock):
    """Time one tree and print the result."""
    edges = tree(kind, n)
    numbers = sc.CellularSheaf.constant(edges)
    general = sc.CellularSheaf(edges, *np.random.default_rng(7).standard_normal((2, n - 1, 2, 2)))
    K = sc.eliminate(numbers)
    asked = {
        "eliminate": lambda: sc.eliminate(numbers),
        "refresh": lambda: K.refresh(numbers),
        "sections": lambda: sc.global_sections(general),
    }
    times = timing.paired(asked, rounds, clock=clock)
    S = times.answers["sections"]
    if S.h0 != 2 or times.answers["eliminate"].kept.size:
        raise checks.WrongAnswerError(f"{kind}: {S}, {times.answers['eliminate']}")
    shown = ", ".join(f"{name} {times.median(name):.3f} s" for name in asked)
    print(f"{kind} of {n:,}: {shown}; h0 {S.h0}, residual {S.residual:.0e}", flush=True)


def show_network(file, rounds, clock):
    """Time one network and print the result."""
    F = sc.read_g2o(file) if ".g2o" in file else sc.read_graph(file)
    fixed = np.unique(sc.components(F), return_index=True)[1]
    without = mock.patch("sheafcoarsen.solve._solver.LEAST_REMOVED", 2.0)

    def set_up_without():
        with without:
            return sc.Solver(F, fixed=fixed)

    set_up = {"with": lambda: sc.Solver(F, fixed=fixed), "without": set_up_without}
    times = timing.paired(set_up, rounds, clock=clock)
    solvers = times.answers
    b = np.random.default_rng(7).standard_normal(F.dim_c0)
    free = ~np.isin(np.repeat(np.arange(F.n_vertices), F.vertex_dims), fixed)
    asked = {name: (lambda solve=solve: solve(b)) for name, solve in solvers.items()}
    solved = timing.paired(asked, 20 * rounds, clock=clock)
    L = sc.laplacian(F)
    for x in solved.answers.values():
        checks.require("residual", np.linalg.norm((L @ x - b)[free]) / np.linalg.norm(b), 1e8)
    figures = [
        f"{what} {1e3 * t.median('with'):.2f} ms with, {1e3 * t.median('without'):.2f} without"
        for what, t in (("set-up", times), ("solve", solved))
    ]
    name = os.path.basename(file).split(".")[0]
    print(
        f"{name}: unknowns {solvers['with'].levels}, {'; '.join(figures)}: "
        f"{solved.ratio('without', 'with'):.1f} x",
        flush=True,
    )


def main():
    """Run all cases of the given size."""
    parser = report.parser(__doc__, SIZES)
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("SHEAFCOARSEN_DATA"))
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    rounds = 1 if args.size == "smoke" else 3
    with threadpool_limits(1, user_api="blas"):
        for kind in ("path", "random tree", "star"):
            show_tree(kind, SIZES[args.size], rounds, clock)
        for name in NETWORKS if args.data else ():
            show_network(os.path.join(args.data, name), rounds, clock)


if __name__ == "__main__":
    main()
