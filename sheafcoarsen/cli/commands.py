"""The commands of ``sheafcoarsen``, their options, and what they print."""

import argparse
import contextlib
import importlib.metadata
import logging
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import networkx as nx
import numpy as np

from sheafcoarsen import distributed as dist
from sheafcoarsen._support import counted, tables
from sheafcoarsen.cli.answers import (
    answer_options,
    pose_options,
    show_levels,
    show_modes,
    synchronize_file,
    typed_rank,
)
from sheafcoarsen.cli.compilation import SCALARS, compile_kernels
from sheafcoarsen.cli.inputs import (
    graph_options,
    is_mesh,
    is_store,
    read,
    read_sheaf,
    refuse_options,
    standard_input,
)
from sheafcoarsen.cli.outputs import (
    check_outputs,
    describe,
    facts,
    print_json,
    show,
    show_coarsening,
    show_losses,
    show_times,
    write_result,
)
from sheafcoarsen.cli.stores import (
    about_store,
    coarsen_store,
    print_checks,
    store_options,
)
from sheafcoarsen.coarsening import Coarsening, coarsen, energy_ledger
from sheafcoarsen.elimination import eliminate
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.html_report import smooth_cochain, stage
from sheafcoarsen.io import Level, read_mesh
from sheafcoarsen.modes import OPERATORS, compute_modes, local_operator_of, warn_if_sections_lost
from sheafcoarsen.partition import METHODS, Method, Weights, select
from sheafcoarsen.quality import spectral_quality
from sheafcoarsen.sheaf import CellularSheaf, component_count
from sheafcoarsen.synchronization import PoseGraph
from sheafcoarsen.verification import verify


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)".replace("\n", " "))

    # by default, a subparser leaves it to its parent to report unknown arguments
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sheafcoarsen",
        description="Coarsen cellular sheaves and check the theory on the result.",
        epilog="The first run compiles numerical kernels, for a quarter of a minute.",
    )
    parser.add_argument(
        "--version", action="version", version=importlib.metadata.version("sheafcoarsen")
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    inputs = (
        "an .npz of this library (of a hierarchy: its coarsest sheaf), a pose graph .g2o, a mesh "
        ".off, .obj, .ply (its tangent bundle), or a graph: .mtx, .graph, edge list, .graphml, "
        ".gml; each also .gz; - for standard input, whose format is seen from its content (not "
        ".graph)"
    )

    graph = _Parser(add_help=False)
    graph_options(graph)
    given = _Parser(add_help=False, parents=[graph])
    given.add_argument("input", metavar="INPUT", help=inputs)
    saved, reported = _Parser(add_help=False), _Parser(add_help=False)
    saved.add_argument("-o", "--out", metavar="FILE.npz", help="save the result here")
    reported.add_argument(
        "--report", metavar="FILE.html", help="write an HTML report here; needs matplotlib"
    )
    outputs = [given, saved, reported]

    coarse = commands.add_parser("coarsen", parents=outputs, help="coarsen a sheaf or a graph")
    _coarsening_options(coarse, required=True)
    store_options(coarse)
    coarse.set_defaults(run=_coarsen)

    stored = commands.add_parser(
        "store", parents=[given], help="write a sheaf into a store, for coarsen --store"
    )
    stored.add_argument("folder", metavar="FOLDER", help="a new folder, or a URL for fsspec")
    stored.set_defaults(run=_store)

    remove = commands.add_parser(
        "eliminate",
        parents=outputs,
        help="eliminate leaves and chains exactly, which gives a smaller equivalent sheaf",
    )
    remove.add_argument(
        "--keep",
        metavar="FILE",
        help="a text file of vertices to retain, names or indices separated by white space",
    )
    remove.add_argument(
        "--max-neighbors",
        type=int,
        default=2,
        metavar="N",
        help="largest degree of an eliminated vertex (default 2; more for connections only)",
    )
    remove.set_defaults(run=_eliminate)

    poses = commands.add_parser(
        "synchronize", parents=[reported], help="find and certify the poses of a pose graph"
    )
    pose_options(poses)
    poses.set_defaults(run=synchronize_file)

    modes = commands.add_parser(
        "modes", parents=[given, saved], help="find the lowest modes of a sheaf"
    )
    modes.set_defaults(run=show_modes)
    levels = commands.add_parser("levels", parents=outputs, help="coarsen into several levels")
    levels.set_defaults(run=show_levels)
    answer_options(modes, levels)

    info = commands.add_parser("info", parents=[given], help="describe a file, a mesh or a store")
    info.set_defaults(run=_info)

    check = commands.add_parser(
        "verify", parents=[graph], help="check every statement of the theory on a coarsening"
    )
    check.add_argument(
        "input",
        metavar="INPUT",
        help="an .npz or a store that holds a coarsening; or any file with coarsen's options; "
        "- for standard input",
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

    for command in (coarse, remove, modes, levels, info, check):
        command.add_argument("--json", action="store_true", help="print JSON instead of text")
    coarse.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also print what a random cochain loses, line by line",
    )
    for command in commands.choices.values():
        command.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
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
        "--weights",
        choices=("graph", "sheaf"),
        help="of edges, for choosing clusters: graph (default) counts every edge of a sheaf as 1, "
        "sheaf takes the norms of its maps, so that strong ties, or the weights of a graph file, "
        "stay in clusters",
    )
    parser.add_argument(
        "--local-operator", choices=tuple(OPERATORS), help="default internal; see local_modes"
    )
    parser.add_argument("--seed", type=int, help="for the choice of clusters (default 0)")


def _make(args: argparse.Namespace, times: dict[str, float]) -> Coarsening:
    with stage(times, "read"):
        sheaf = read_sheaf(args)
    method: Method = args.method or "auto"  # argparse admits no other names
    operator = local_operator_of(args.local_operator or "internal")
    shown: dict = {"progress": args.progress}
    with stage(times, "select"):
        weights: Weights = args.weights or "graph"
        P = select(sheaf, args.clusters, method, weights, args.seed or 0, **shown)
    with stage(times, "local modes"):
        # compute modes here: `coarsen` would warn about ties, whose number is printed instead
        modes = compute_modes(sheaf, P, args.rank, operator, **shown)
    warn_if_sections_lost(modes._discards_zero.sum(), len(modes.ranks), args.rank, stacklevel=2)
    with stage(times, "coarse maps"):
        return coarsen(sheaf, P, modes)


def _coarsen(args: argparse.Namespace) -> int:
    if args.store is not None:
        return coarsen_store(args, args.seed or 0)
    refuse_options(args, ("shards", "scheduler"), "requires --store")
    times: dict[str, float] = {}
    check_outputs(args, (".npz",))
    C = _make(args, times)

    def show_result() -> None:
        show_coarsening(C)
        if args.verbose:
            show_losses(C)
        show_times(times)

    more: dict = {"seconds": times}
    if args.json and args.verbose:
        more["ledger"] = energy_ledger(C, smooth_cochain(C.fine)).lines
    return write_result(args, C, times, show_result, **more)


def _store(args: argparse.Namespace) -> int:
    print(dist.to_store(args.folder, read_sheaf(args)))
    return 0


def _vertices_in(path: str, F: CellularSheaf) -> np.ndarray:
    """Return a mask of the vertices listed by index or name in a text file with # comments."""
    try:
        with open(path, encoding="utf-8") as stream:
            words = [word for line in stream for word in line.partition("#")[0].split()]
    except FileNotFoundError:
        raise ValueError(
            f"--keep: there is no file {path!r}; it must be a text file of vertices, "
            f"names or indices separated by white space"
        ) from None
    names = {str(label): v for v, label in enumerate(F.vertex_labels or ())}
    found = []
    for word in words:
        if word in names:
            found.append(names[word])
        elif not names and word.isdecimal() and int(word) < F.n_vertices:
            found.append(int(word))
        else:
            what = "names" if names else f"indices from 0 to {F.n_vertices - 1}"
            raise ValueError(f"--keep {path}: {word!r} is not a vertex; vertices have {what}")
    return np.isin(np.arange(F.n_vertices), found)


def _eliminate(args: argparse.Namespace) -> int:
    times: dict[str, float] = {}
    check_outputs(args, (".npz",))
    with stage(times, "read"):
        sheaf = read_sheaf(args)
    keep = None if args.keep is None else _vertices_in(args.keep, sheaf)
    with stage(times, "eliminate"):
        K = eliminate(sheaf, keep, args.max_neighbors)

    def show_result() -> None:
        print(f"fine    {describe(K.fine)}")
        print(f"left    {describe(K.sheaf)}")
        for name, fine, left in [("", "fine", "left"), *K.sizes.rows]:
            print(f"        {name:<30}  {fine:>12}  {left:>12}".rstrip())
        show_times(times)

    return write_result(args, K, times, show_result, seconds=times)


def _info(args: argparse.Namespace) -> int:
    if is_store(args.input):
        return about_store(args)
    if is_mesh(args.input):
        sheaf, faces = read_sheaf(args), read_mesh(args.input)[1]
        n, m, f = sheaf.n_vertices, sheaf.n_edges, len(faces)
        sizes = {"vertices": n, "edges": m, "faces": f, "corners": faces.shape[1]}
        known: dict[str, Any] = {"kind": "mesh", **sizes}
        known["components"] = component_count(sheaf)
        known["boundary_edges"] = 2 * m - faces.size  # boundary edges have one face, others two
        known["euler_characteristic"] = n - m + f
        lines = [f"{name.replace('_', ' '):<22}{value}" for name, value in known.items()]
        print_json(known) if args.json else print("\n".join(lines))
        return 0
    obj = read(args, poses=True)
    if isinstance(obj, PoseGraph):
        if not args.json:
            print(obj)
        obj = obj.sheaf
    print_json(facts(obj)) if args.json else show(obj)
    return 0


def _verify(args: argparse.Namespace) -> int:
    times: dict[str, float] = {}
    if (args.clusters is None) != (args.rank is None):
        raise ValueError("--clusters and --rank must be passed together")
    if args.clusters is None:
        options = ("method", "weights", "local_operator", "seed")
        refuse_options(args, options, "requires --clusters and --rank")
        if is_store(args.input):
            return about_store(args, verify=True)
        obj = read(args)
        held = obj if isinstance(obj, Hierarchy) else [obj]
        levels = [C for C in held if isinstance(C, Level)]
        if not levels:
            raise ValueError(
                f"{args.input} does not hold a coarsening: pass --clusters and --rank to make one"
            )
    else:
        if isinstance(read(args), Hierarchy | Level):
            raise ValueError(f"{args.input} already holds a coarsening: omit --clusters and --rank")
        levels = [_make(args, times)]
    return print_checks(levels, args, verify)


def _compile(args: argparse.Namespace) -> int:
    begin = time.perf_counter()
    scalars = SCALARS if args.all else SCALARS[:1]
    compile_kernels(scalars, rare=args.all, progress=args.progress)
    print(f"compiled for {', '.join(scalars)} in {time.perf_counter() - begin:.0f} s")
    return 0


def _demo(args: argparse.Namespace) -> int:
    graph = nx.karate_club_graph()
    F = CellularSheaf.constant(graph)
    P = select(F, 5, weights="sheaf")
    C = coarsen(F, P, 2)
    n, m, k, d = F.n_vertices, F.n_edges, P.n_clusters, C.sheaf.dim_c0
    print(
        f"""Zachary's karate club: {n} members, and how often each of {m} pairs of them met.

Give each member a number, say an opinion. Its energy is the sum over all pairs of
(meetings) x (difference of the two numbers) squared: small where friends agree. A sheaf is
such a rule for comparing values along edges; the values may be vectors, and each edge may
rotate, scale or flip them before it compares.

Coarsening groups the members into {k} clusters and describes each by 2 numbers, how much of
the two smoothest patterns inside it there is. So {n} numbers become {d}, on a sheaf of
{k} vertices and {counted(C.n_crossing_edges, "edge")} between them.

The clusters, and which of the two clubs their members joined when the club split:
"""
    )
    for a in range(k):
        members = P.cluster(a).tolist()
        officers = sum(graph.nodes[v]["club"] == "Officer" for v in members)
        print(
            f"  cluster {a}: {len(members):>2} members, {len(members) - officers:>2} with Mr. Hi, "
            f"{officers:>2} with the Officer"
        )
    Q = spectral_quality(C, 4)
    print("\nEnergies of the smoothest patterns that are not constant, the lowest eigenvalues:\n")
    for name, values in (("club", Q.fine), (f"{k} clusters", Q.coarse)):
        print(f"  {name:<12}" + "".join(f"{abs(value):>8.3f}" for value in values))
    result = verify(C)
    held, applied = result._counts()
    print(
        f"""
Coarse energies are never below the true ones, and for every pattern that the {d} numbers can
describe the two are equal. This was checked here: {held} of {applied} statements of the
theory hold.

Try it on a graph of your own: sheafcoarsen coarsen FILE -k 5 -r 2 --report page.html"""
    )
    return 0 if result.passed else 1


@contextlib.contextmanager
def _surroundings(args: argparse.Namespace) -> Iterator[None]:
    """Print each warning on one line, or nothing if quiet; save standard input for ``-``."""
    given = ""

    def warned(message: object, *_: object, **__: object) -> None:
        said = str(message).replace(given, "standard input") if given else message
        print(f"sheafcoarsen: {_line(said)}", file=sys.stderr)

    args.progress = sys.stderr.isatty() and not args.quiet
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore" if args.quiet else "default", UserWarning)
        warnings.showwarning = warned
        if args.quiet:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            log = logging.getLogger("sheafcoarsen")  # this logger announces compilations
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.ERROR)
        if getattr(args, "input", None) != "-":
            yield
            return
        given = standard_input(stack.enter_context(tempfile.TemporaryDirectory()))
        args.input = given
        try:
            yield
        except (ValueError, OSError) as error:
            raise ValueError(str(error).replace(given, "standard input")) from None


def _line(message: object) -> str:
    return tables.printable(" ".join(str(message).split()))


def main(argv: list[str] | None = None) -> int:
    """Run a command; return its exit status: 0, 1 if a check failed, 2 for invalid input."""
    try:
        words = sys.argv[1:] if argv is None else argv
        args = _parser().parse_args(words)
        args.typed = shlex.join(["sheafcoarsen", *words])
        with _surroundings(args):
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
        print(f"sheafcoarsen: {_line(error) or type(error).__name__}", file=sys.stderr)
        return 2
