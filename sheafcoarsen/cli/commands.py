"""The commands of ``sheafcoarsen``, their options, and what they print."""

import argparse
import contextlib
import importlib.metadata
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn

import networkx as nx
import numpy as np

from sheafcoarsen._support import counted, tables
from sheafcoarsen.cli.answers import answer_options, show_levels, show_modes, typed_rank
from sheafcoarsen.cli.compilation import SCALARS, compile_kernels
from sheafcoarsen.cli.outputs import check_outputs, show_files, show_times
from sheafcoarsen.cli.poses import pose_options, synchronize_file
from sheafcoarsen.cli.stores import (
    about_store,
    coarsen_store,
    is_store,
    print_checks,
    store_options,
    write_sheaf,
)
from sheafcoarsen.coarsening import Coarsening, coarsen, energy_ledger, growth_of
from sheafcoarsen.elimination import Elimination, eliminate
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.html_report import SMOOTHING_STEPS, smooth_cochain, stage, write_report
from sheafcoarsen.io import load, read_g2o, read_graph, save
from sheafcoarsen.modes import OPERATORS, compute_modes, local_operator_of
from sheafcoarsen.partition import METHODS, Method, Partition, select
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, component_count
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification import verify

REMARKS = {
    "retained internal": "   in the loops; without them this is the realization loss",
    "discarded internal": "  the truncation loss",
    "internal coupling": "   between the two, zero for internal modes",
    "retained crossing": "   in the crossing edges",
    "crossing coupling": "   between kept and discarded, either sign",
    "discarded crossing": "  lost with the discarded part",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)".replace("\n", " "))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sheafcoarsen",
        description="Coarsen cellular sheaves and check the theory on the result.",
        epilog="The first run compiles numerical kernels, which takes up to a minute.",
    )
    parser.add_argument(
        "--version", action="version", version=importlib.metadata.version("sheafcoarsen")
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    inputs = (
        "an .npz of this library (of a hierarchy: its coarsest sheaf), a pose graph .g2o, or a "
        "graph: .mtx, .graph, edge list, .graphml, .gml; each also .gz"
    )

    graph = _Parser(add_help=False)
    _graph_options(graph)
    given = _Parser(add_help=False, parents=[graph])
    given.add_argument("input", metavar="INPUT", help=inputs)
    outputs = _Parser(add_help=False)
    outputs.add_argument("-o", "--out", metavar="FILE.npz", help="save the result here")
    outputs.add_argument(
        "--report", metavar="FILE.html", help="write an HTML report here; needs matplotlib"
    )

    coarse = commands.add_parser(
        "coarsen", parents=[given, outputs], help="coarsen a sheaf or a graph"
    )
    _coarsening_options(coarse, required=True)
    store_options(coarse)
    coarse.set_defaults(run=_coarsen)

    stored = commands.add_parser(
        "store", parents=[given], help="write a sheaf into a store, for coarsen --store"
    )
    stored.add_argument("folder", metavar="FOLDER", help="a new folder, or a URL for fsspec")
    stored.set_defaults(run=lambda args: write_sheaf(_read_sheaf(args), args.folder))

    remove = commands.add_parser(
        "eliminate",
        parents=[given, outputs],
        help="eliminate leaves and chains exactly, which gives a smaller equivalent sheaf",
    )
    remove.add_argument("--keep", metavar="FILE", help="a text file of vertices to retain")
    remove.add_argument(
        "--max-neighbors",
        type=int,
        default=2,
        metavar="N",
        help="largest degree of an eliminated vertex (default 2; more for connections only)",
    )
    remove.set_defaults(run=_eliminate)

    poses = commands.add_parser("synchronize", help="find and certify the poses of a pose graph")
    pose_options(poses)
    poses.set_defaults(run=synchronize_file)

    modes = commands.add_parser("modes", parents=[given], help="find the lowest modes of a sheaf")
    modes.set_defaults(run=lambda args: show_modes(_read_sheaf(args), args))
    levels = commands.add_parser("levels", parents=[given], help="coarsen into several levels")
    levels.set_defaults(run=lambda args: show_levels(_read_sheaf(args), args))
    answer_options(modes, levels)

    info = commands.add_parser("info", parents=[given], help="describe a file or a store")
    info.set_defaults(run=_info)

    check = commands.add_parser(
        "verify", parents=[graph], help="check every statement of the theory on a coarsening"
    )
    check.add_argument(
        "input",
        metavar="INPUT",
        help="an .npz or a store that holds a coarsening; or any file with coarsen's options",
    )
    _coarsening_options(check, required=False)
    check.set_defaults(run=_verify)

    ahead = commands.add_parser(
        "compile",
        help="compile numerical kernels ahead of their first use, for images and clusters",
    )
    ahead.add_argument(
        "--all", action="store_true", help="all kernels, for single precision and complex maps too"
    )
    ahead.set_defaults(run=_compile)

    demo = commands.add_parser(
        "demo", help="coarsen a real graph that ships with networkx, and verify the result"
    )
    demo.set_defaults(run=_demo)
    return parser


def _coarsening_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "-k", "--clusters", type=int, metavar="K", required=required, help="number of clusters"
    )
    parser.add_argument(
        "-r",
        "--rank",
        type=typed_rank,
        metavar="R",
        required=required,
        help="modes kept per cluster: a number, kernel or budget:N",
    )
    parser.add_argument("--method", choices=METHODS, help="how to choose clusters (default auto)")
    parser.add_argument(
        "--local-operator", choices=tuple(OPERATORS), help="default internal; see local_modes"
    )
    parser.add_argument("--seed", type=int, help="for the choice of clusters (default 0)")


def _graph_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, help="stalk dimension for a graph (default 1)")
    parser.add_argument(
        "--vertices",
        type=int,
        metavar="N",
        help="for an edge list with isolated last vertices, or with gaps in its numbering",
    )
    parser.add_argument(
        "--signed",
        action="store_true",
        help="for a graph with negative weights: use the signed Laplacian",
    )


def _read(
    args: argparse.Namespace,
) -> CellularSheaf | Partition | Coarsening | Hierarchy | Elimination | Sparsification:
    path, dim = args.input, args.dim
    if is_store(path):
        raise ValueError(f"{path}: is not a file; for a store use coarsen --store, info or verify")
    plain = path.lower().removesuffix(".gz")
    ours = plain.endswith(".npz") or _is_zip(path)
    if dim is not None and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--dim is the stalk dimension for a graph; {path} has its own")
    if args.vertices is not None and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--vertices is for edge lists; {path} has a number of vertices")
    if args.signed and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--signed is for the weights of a graph; {path} has its own maps")
    if ours:
        return load(path)
    if plain.endswith(".g2o"):
        return read_g2o(path)
    with _warnings_as_lines():
        return read_graph(path, 1 if dim is None else dim, args.signed, args.vertices)


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each warning as one line, like errors."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for warning in said:
        print(f"sheafcoarsen: {tables.printable(warning.message)}", file=sys.stderr)


def _is_zip(path: str) -> bool:
    """Return whether a file is an .npz, by its first bytes."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False  # the reader reports the error


def _read_sheaf(args: argparse.Namespace) -> CellularSheaf:
    obj = _read(args)
    if isinstance(obj, Coarsening | Elimination | Sparsification):
        return obj.sheaf
    if isinstance(obj, Hierarchy):
        return obj.sheaves[-1]
    if not isinstance(obj, CellularSheaf):
        raise ValueError(f"{args.input}: holds a partition, not a sheaf")
    return obj


def _make(args: argparse.Namespace, times: dict) -> Coarsening:
    with stage(times, "read"):
        sheaf = _read_sheaf(args)
    method: Method = args.method or "auto"  # one of the choices
    operator = args.local_operator or "internal"
    return _coarsened(sheaf, args.clusters, args.rank, method, operator, args.seed or 0, times)


def _coarsened(
    sheaf: CellularSheaf,
    clusters: int,
    rank: int | Rule,
    method: Method,
    local_operator: str,
    seed: int,
    times: dict[str, float],
) -> Coarsening:
    with stage(times, "select"), _warnings_as_lines():
        # the sheaf contains the file's weights
        P = select(sheaf, clusters, method=method, weights="sheaf", seed=seed)
    with stage(times, "local modes"):
        # the number of ties is printed instead of the warning
        modes = compute_modes(sheaf, P, rank, local_operator_of(local_operator))
    with stage(times, "coarse maps"):
        return coarsen(sheaf, P, modes)


def _describe(sheaf: CellularSheaf) -> str:
    dims = f"{sheaf.vertex_dims.min()} .. {sheaf.vertex_dims.max()}" if sheaf.n_vertices else "none"
    return (
        f"{sheaf.n_vertices} vertices (stalks {dims}), {sheaf.n_edges} edges, dim C^0 "
        f"{sheaf.dim_c0}, "
        f"dim C^1 {sheaf.dim_c1}, {sheaf.dtype}"
    )


def _show(C: Coarsening) -> None:
    n_loops = C.sheaf.n_edges - C.n_crossing_edges
    print(f"fine    {_describe(C.fine)}")
    print(f"coarse  {_describe(C.sheaf)} ({C.n_crossing_edges} crossing, {n_loops} loops)")
    if note := growth_of(C):
        print(f"note    {note}")
    _show_losses(C)


def _show_losses(C: Coarsening) -> None:
    x = smooth_cochain(C.fine)
    E = energy_ledger(C, x)
    norm2 = max(float(np.vdot(x, x).real), np.finfo(float).tiny)
    kept = 1 - float(E.discarded_norm2.sum()) / norm2
    print(
        f"lost    of a random cochain, smoothed in {SMOOTHING_STEPS} steps x - L x / (2 norm(L)): "
        f"{100 * (1 - kept):.2f} % of its"
    )
    print(
        f"        squared norm; its energy was {E.fine_energy:.4g}, what is kept has "
        f"{E.galerkin_energy:.4g}. The account:"
    )
    lines = {name: float(value) for name, value in E.lines.items()}
    noise = (
        30
        * np.finfo(C.fine.dtype).eps
        * int(C.clusters.dims.max(initial=1))
        * sum(map(abs, lines.values()))
    )
    for name, value in lines.items():
        shown = "0" if abs(value) <= noise else f"{value:.4g}"
        print(f"        {shown:>12}  {name}{REMARKS[name]}")
    if C.modes is not None and len(C.ranks):
        gaps = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
        if len(gaps):
            print(
                f"        first discarded eigenvalue {gaps.min():.4g} at least, "
                f"{np.median(gaps):.4g} in the median cluster"
            )
        print(
            f"        the cut splits a multiple eigenvalue in {int(C.modes.tied.sum())} of "
            f"{len(C.ranks)} clusters"
        )


def _coarsen(args: argparse.Namespace) -> int:
    if args.store is not None:
        return coarsen_store(args, args.seed or 0)
    for option in ("shards", "scheduler"):
        if getattr(args, option) is not None:
            raise ValueError(f"--{option} requires --store")
    times: dict[str, float] = {}
    check_outputs(args, (".npz",))
    C = _make(args, times)
    return _written(args, C, times, lambda: _show(C))


def _written(
    args: argparse.Namespace,
    result: Coarsening | Elimination,
    times: dict[str, float],
    show: Callable[[], None],
) -> int:
    """Save a result, write the report, describe it, and return the exit status."""
    if args.out is not None:
        with stage(times, "save"):
            save(args.out, result)
    passed = True
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(times)
        with stage(times, "report"):
            passed = bool(write_report(result, args.report, name, args.typed, before))
    show()
    show_times(times)
    show_files(args, "" if passed else ": a check FAILED")
    return 0 if passed else 1


def _vertices_in(path: str, F: CellularSheaf) -> np.ndarray:
    """Return a mask of the vertices listed in a text file, by number or name; # is a comment."""
    with open(path, encoding="utf-8") as stream:
        words = [word for line in stream for word in line.partition("#")[0].split()]
    names = {str(label): v for v, label in enumerate(F.vertex_labels or ())}
    found = []
    for word in words:
        if word in names:
            found.append(names[word])
        elif not names and word.isdecimal() and int(word) < F.n_vertices:
            found.append(int(word))
        else:
            what = "name" if names else f"number from 0 to {F.n_vertices - 1}"
            raise ValueError(f"--keep {path}: {word!r} is no vertex; one is given by its {what}")
    return np.isin(np.arange(F.n_vertices), found)


def _eliminate(args: argparse.Namespace) -> int:
    times: dict[str, float] = {}
    check_outputs(args, (".npz",))
    with stage(times, "read"):
        sheaf = _read_sheaf(args)
    keep = None if args.keep is None else _vertices_in(args.keep, sheaf)
    with stage(times, "eliminate"):
        K = eliminate(sheaf, keep, args.max_neighbors)

    def show() -> None:
        print(f"fine    {_describe(K.fine)}")
        print(f"left    {_describe(K.sheaf)}")
        for name, fine, left in [("", "fine", "left"), *K.sizes.rows]:
            print(f"        {name:<30}  {fine:>12}  {left:>12}".rstrip())

    return _written(args, K, times, show)


def _info(args: argparse.Namespace) -> int:
    if is_store(args.input):
        return about_store(args)
    obj = _read(args)
    if isinstance(obj, Coarsening | Elimination | Sparsification):
        print(obj)
        print(f"fine    {_describe(obj.fine)}")
        print(f"coarse  {_describe(obj.sheaf)}")
    elif isinstance(obj, Partition | Hierarchy):
        print(obj)
    else:
        loops = int((obj.edges[:, 0] == obj.edges[:, 1]).sum())
        components = component_count(obj)
        print(f"sheaf   {_describe(obj)}")
        print(
            f"graph   {counted(components, 'component')}, {counted(loops, 'loop')}, "
            f"{int((obj.vertex_dims == 0).sum())} empty stalks"
        )
    return 0


def _verify(args: argparse.Namespace) -> int:
    times: dict[str, float] = {}
    if (args.clusters is None) != (args.rank is None):
        raise ValueError("--clusters and --rank go together")
    if args.clusters is None:
        for option in ("method", "local_operator", "seed"):
            if getattr(args, option) is not None:
                raise ValueError(f"--{option.replace('_', '-')} requires --clusters and --rank")
        if is_store(args.input):
            return about_store(args, verify=True)
        obj = _read(args)
        held = obj if isinstance(obj, Hierarchy) else [obj]
        levels = [C for C in held if isinstance(C, Coarsening | Elimination | Sparsification)]
        if not levels:
            raise ValueError(
                f"{args.input}: does not hold a coarsening: give --clusters and --rank to make one"
            )
    else:
        if isinstance(_read(args), Coarsening | Hierarchy | Elimination):
            raise ValueError(
                f"{args.input}: holds a coarsening already: leave --clusters and --rank out to "
                "verify it"
            )
        levels = [_make(args, times)]
    return print_checks(levels, verify)


def _compile(args: argparse.Namespace) -> int:
    begin = time.perf_counter()
    scalars = SCALARS if args.all else SCALARS[:1]
    compile_kernels(scalars, rare=args.all, progress=sys.stderr.isatty())
    print(f"compiled for {', '.join(scalars)} in {time.perf_counter() - begin:.0f} s")
    return 0


def _demo(args: argparse.Namespace) -> int:
    graph = nx.karate_club_graph()
    print(
        "Zachary's karate club: 34 members, how often they met; the constant sheaf on it is its "
        "weighted Laplacian.\n"
    )
    times: dict[str, float] = {}
    C = _coarsened(CellularSheaf.constant(graph), 5, 2, "auto", "internal", 0, times)
    _show(C)
    show_times(times)
    print("\nThe clusters, and which of the two clubs their members joined later:")
    for a in range(C.partition.n_clusters):
        members = C.partition.cluster(a).tolist()
        officers = sum(graph.nodes[v]["club"] == "Officer" for v in members)
        print(
            f"  cluster {a}: {len(members)} members, {len(members) - officers} with Mr. Hi, "
            f"{officers} with the Officer"
        )
    print(
        "\nThe coarse sheaf's Laplacian is R* L R exactly; every statement of the theory, "
        "checked on this coarsening:\n"
    )
    result = verify(C)
    print(result)
    return 0 if result.passed else 1


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 0, 1 if a check failed, 2 for bad input."""
    try:
        words = sys.argv[1:] if argv is None else argv
        args = _parser().parse_args(words)
        args.typed = shlex.join(["sheafcoarsen", *words])
        return args.run(args)
    except BrokenPipeError:  # the reader of our output has exited
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return 0
    except (KeyboardInterrupt, SystemError) as error:
        # Ctrl-C while numba converts the arguments of a kernel raises a SystemError
        if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        print("sheafcoarsen: interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, MemoryError, ImportError, OverflowError) as error:
        message = tables.printable(" ".join(str(error).split())) or type(error).__name__
        print(f"sheafcoarsen: {message}", file=sys.stderr)
        return 2
