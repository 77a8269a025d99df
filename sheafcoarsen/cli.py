"""What a user types: ``sheafcoarsen coarsen | info | verify | demo``."""

import argparse
import contextlib
import importlib.metadata
import os
import sys
import time

import networkx as nx
import numpy as np

from sheafcoarsen.coarsening import Coarsening, coarsen
from sheafcoarsen.io import load, read_g2o, read_graph, save
from sheafcoarsen.ledger import energy_ledger
from sheafcoarsen.modes import LOCAL_OPERATORS, compute_modes
from sheafcoarsen.operators import laplacian_operator
from sheafcoarsen.partition import Partition
from sheafcoarsen.selection import METHODS, select
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.verification import verify

SMOOTHING_STEPS = 50
"""Damped steps that turn a random cochain into the smooth one whose losses are reported."""

REMARKS = {
    "retained internal": ", carried by the loops: without them the realization loss",
    "discarded internal": ": the truncation loss",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser that complains in one line."""

    def error(self, message):
        raise ValueError(f"{message} (sheafcoarsen {self.prog.split()[-1]} --help tells the usage)".replace("\n", " "))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="sheafcoarsen", description="Coarsen cellular sheaves and check the theory on the result.")
    parser.add_argument("--version", action="version", version=importlib.metadata.version("sheafcoarsen"))
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    inputs = "an .npz of this library, a pose graph .g2o, or a graph: .mtx, .graph, edge list, .graphml; each also .gz"

    coarse = commands.add_parser("coarsen", help="coarsen a sheaf or a graph")
    coarse.add_argument("input", metavar="INPUT", help=inputs)
    _coarsening_options(coarse, required=True)
    coarse.add_argument("--out", metavar="FILE.npz", help="save the coarsening here")
    coarse.set_defaults(run=_coarsen)

    info = commands.add_parser("info", help="say what a file holds")
    info.add_argument("input", metavar="INPUT", help=inputs)
    info.add_argument("--dim", type=int, default=1, help="stalk dimension for a graph (default 1)")
    info.set_defaults(run=_info)

    check = commands.add_parser("verify", help="check every statement of the theory on a coarsening")
    check.add_argument(
        "input", metavar="INPUT", help="an .npz that holds a coarsening; or any input with coarsen's options"
    )
    _coarsening_options(check, required=False)
    check.set_defaults(run=_verify)

    demo = commands.add_parser("demo", help="coarsen a real graph that ships with networkx, and verify the result")
    demo.set_defaults(run=_demo)
    return parser


def _coarsening_options(parser, *, required: bool) -> None:
    parser.add_argument("--clusters", type=int, metavar="K", required=required, help="number of clusters")
    parser.add_argument("--rank", type=int, metavar="R", required=required, help="modes kept per cluster")
    parser.add_argument("--method", choices=METHODS, default="auto", help="how to choose clusters (default auto)")
    parser.add_argument("--local-operator", choices=LOCAL_OPERATORS, default="internal", help="(default internal)")
    parser.add_argument("--dim", type=int, default=1, help="stalk dimension for a graph (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="for the choice of clusters (default 0)")


@contextlib.contextmanager
def _stage(times: dict, name: str):
    start = time.perf_counter()
    yield
    times[name] = time.perf_counter() - start


def _read(path: str, dim: int) -> CellularSheaf | Partition | Coarsening:
    plain = path.lower().removesuffix(".gz")
    if plain.endswith(".npz"):
        return load(path)
    if plain.endswith(".g2o"):
        return read_g2o(path)
    return read_graph(path, dim=dim)


def _read_sheaf(path: str, dim: int) -> CellularSheaf:
    obj = _read(path, dim)
    if isinstance(obj, Coarsening):
        return obj.sheaf
    if not isinstance(obj, CellularSheaf):
        raise ValueError(f"{path}: holds a partition, not a sheaf")
    return obj


def _make(args, times: dict) -> Coarsening:
    with _stage(times, "read"):
        sheaf = _read_sheaf(args.input, args.dim)
    return _coarsened(sheaf, args.clusters, args.rank, args.method, args.local_operator, args.seed, times)


def _coarsened(sheaf, clusters, rank, method, local_operator, seed, times) -> Coarsening:
    with _stage(times, "select"):
        P = select(sheaf, clusters, method=method, seed=seed)
    with _stage(times, "local modes"):
        modes = compute_modes(sheaf, P, rank, local_operator)  # the number of ties is printed, not warned of
    with _stage(times, "coarse maps"):
        return coarsen(sheaf, P, modes)


def _describe(sheaf: CellularSheaf) -> str:
    dims = f"{sheaf.vertex_dims.min()} .. {sheaf.vertex_dims.max()}" if sheaf.n_vertices else "none"
    return (
        f"{sheaf.n_vertices} vertices (stalks {dims}), {sheaf.n_edges} edges, dim C^0 {sheaf.dim_c0}, "
        f"dim C^1 {sheaf.dim_c1}, {sheaf.dtype}"
    )


def _show(C: Coarsening, times: dict) -> None:
    n_loops = C.sheaf.n_edges - C.n_crossing_edges
    print(f"fine    {_describe(C.fine)}")
    print(f"coarse  {_describe(C.sheaf)} ({C.n_crossing_edges} crossing, {n_loops} loops)")
    _show_losses(C)
    print("time    " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in times.items()))


def _show_losses(C: Coarsening) -> None:
    x = _smooth_cochain(C.fine)
    E = energy_ledger(C, x)
    kept = 1 - E.discarded_norm2.sum() / max(float(np.vdot(x, x).real), np.finfo(float).tiny)
    print(
        f"lost    of a random cochain after {SMOOTHING_STEPS} smoothing steps: {100 * (1 - kept):.2f} % of its squared norm;"
    )
    print(f"        its energy {E.fine_energy:.4g} is the sum of")
    for name, value in E.lines.items():
        print(f"        {value:12.4g}  {name}{REMARKS.get(name, '')}")
    if C.modes is not None and len(C.ranks):
        gaps = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
        if len(gaps):
            print(
                f"        first discarded eigenvalue {gaps.min():.4g} at least, {np.median(gaps):.4g} in the median cluster; "
                f"cut splits a multiplet in {int(C.modes.tied.sum())} of {len(C.ranks)} clusters"
            )


def _smooth_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a random cochain of norm 1 after damped steps x - L x / bound."""
    A = laplacian_operator(sheaf)
    x = np.random.default_rng(0).standard_normal(sheaf.dim_c0).astype(sheaf.dtype)
    size = float(np.linalg.norm(x)) or 1.0
    x /= x.dtype.type(size)
    top = x
    for _ in range(10):  # a few power steps; twice their estimate is a safe step for smoothing
        top = A @ top
        top /= top.dtype.type(float(np.abs(top).max(initial=0)) or 1.0)
    bound = 2 * float(np.abs(A @ top).max(initial=0)) or 1.0
    for _ in range(SMOOTHING_STEPS):
        x = x - (A @ x) / x.dtype.type(bound)
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)


def _coarsen(args) -> int:
    times: dict[str, float] = {}
    C = _make(args, times)
    if args.out:
        with _stage(times, "save"):
            save(args.out, C)
    _show(C, times)
    if args.out:
        print(f"saved   {args.out}")
    return 0


def _info(args) -> int:
    obj = _read(args.input, args.dim)
    if isinstance(obj, Coarsening):
        print(obj)
        print(f"fine    {_describe(obj.fine)}")
        print(f"coarse  {_describe(obj.sheaf)}")
    elif isinstance(obj, Partition):
        print(obj)
    else:
        loops = int((obj.edges[:, 0] == obj.edges[:, 1]).sum())
        components = nx.number_connected_components(_graph(obj))
        print(f"sheaf   {_describe(obj)}")
        print(f"graph   {components} components, {loops} loops, {int((obj.vertex_dims == 0).sum())} empty stalks")
    return 0


def _graph(sheaf: CellularSheaf) -> nx.Graph:
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(sheaf.n_vertices))
    graph.add_edges_from(sheaf.edges.tolist())
    return graph


def _verify(args) -> int:
    times: dict[str, float] = {}
    if (args.clusters is None) != (args.rank is None):
        raise ValueError("--clusters and --rank go together")
    if args.clusters is None:
        obj = _read(args.input, args.dim)
        if not isinstance(obj, Coarsening):
            raise ValueError(f"{args.input}: does not hold a coarsening: give --clusters and --rank to make one")
        C = obj
    else:
        C = _make(args, times)
    result = verify(C)
    print(C)
    print(result)
    return 0 if result.passed else 1


def _demo(args) -> int:
    graph = nx.karate_club_graph()
    print(
        "Zachary's karate club: 34 members, how often they met; the constant sheaf on it is its weighted Laplacian.\n"
    )
    times: dict[str, float] = {}
    C = _coarsened(CellularSheaf.constant(graph), 5, 2, "auto", "internal", 0, times)
    _show(C, times)
    print("\nThe clusters, and which of the two clubs their members joined later:")
    for a in range(C.partition.n_clusters):
        members = C.partition.cluster(a).tolist()
        officers = sum(graph.nodes[v]["club"] == "Officer" for v in members)
        print(
            f"  cluster {a}: {len(members)} members, {len(members) - officers} with Mr. Hi, {officers} with the Officer"
        )
    print(
        "\nThe coarse sheaf's Laplacian is R* L R exactly; every statement of the theory, checked on this coarsening:\n"
    )
    result = verify(C)
    print(result)
    return 0 if result.passed else 1


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 1 a check failed, 2 bad input or usage."""
    try:
        args = _parser().parse_args(argv)
        return args.run(args)
    except BrokenPipeError:  # the reader of our output went away
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return 0
    except KeyboardInterrupt:
        print("sheafcoarsen: interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        print(f"sheafcoarsen: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 2
