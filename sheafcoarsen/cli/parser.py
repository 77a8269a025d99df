"""Options of the commands of ``sheafcoarsen``."""

import argparse
import importlib.metadata
from typing import Any, NoReturn

from sheafcoarsen import ranks
from sheafcoarsen.modes import OPERATORS
from sheafcoarsen.partition import METHODS


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises a ValueError with a one-line message instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)".replace("\n", " "))

    # by default, a subparser leaves it to its parent to report unknown arguments
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    parser = _Parser(
        prog="sheafcoarsen",
        description="Coarsen cellular sheaves and check the theory on the result.",
        epilog=(
            "Kernels are compiled once on a machine: the first coarsening takes a quarter of a "
            "minute, other first calls up to half a minute."
        ),
    )
    parser.add_argument(
        "--version", action="version", version=importlib.metadata.version("sheafcoarsen")
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    given, saved, reported = (_Parser(add_help=False) for _ in range(3))
    given.add_argument(
        "input",
        metavar="INPUT",
        help="an .npz of this library (of a hierarchy: its coarsest sheaf), a pose graph .g2o (its "
        "rotations), a mesh .off, .obj, .ply (its tangent bundle), or a graph: .mtx, .graph, edge "
        "list, .graphml, .gml; each also .gz; - for standard input, whose format is seen from its "
        "content (not .graph)",
    )
    given.add_argument("--dim", type=int, help="stalk dimension for a graph (default 1)")
    given.add_argument(
        "--vertices",
        type=int,
        metavar="N",
        help="for an edge list with isolated last vertices, or with gaps in its numbering",
    )
    _flag(given, "--signed", "for a graph with negative weights: use the signed Laplacian")
    saved.add_argument("-o", "--out", metavar="FILE.npz", help="save the result here")
    reported.add_argument(
        "--report", metavar="FILE.html", help="write an HTML report here; needs matplotlib"
    )
    outputs = [given, saved, reported]

    coarse = commands.add_parser("coarsen", parents=outputs, help="coarsen a sheaf or a graph")
    _coarsening_options(coarse, required=True)
    coarse.add_argument(
        "--store",
        metavar="OUT",
        help="INPUT is a store (sheafcoarsen store makes one): coarsen it shard by shard into OUT; "
        "the same command resumes an unfinished run",
    )
    coarse.add_argument("--shards", type=int, metavar="S", help="with --store: number of shards")
    coarse.add_argument(
        "--scheduler", metavar="ADDRESS", help="with --store: a Dask scheduler, tcp://host:8786"
    )

    stored = commands.add_parser(
        "store", parents=[given], help="write a sheaf into a store, for coarsen --store"
    )
    stored.add_argument("folder", metavar="FOLDER", help="a new folder, or a URL for fsspec")

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

    poses = commands.add_parser(
        "synchronize", parents=[reported], help="find and certify the poses of a pose graph"
    )
    poses.add_argument("input", metavar="INPUT", help="a pose graph .g2o, or .g2o.gz")
    poses.add_argument("-o", "--out", metavar="OUT.g2o", help="write the poses here, .gz too")
    _flag(poses, "--robust", "remove measurements that contradict the others")

    modes = commands.add_parser(
        "modes", parents=[given, saved], help="find the lowest modes of a sheaf"
    )
    modes.add_argument("-k", type=int, required=True, metavar="K", help="how many modes")
    _flag(modes, "--normalize", "find modes of D^{-1/2} L D^{-1/2}; areas of a mesh are ignored")
    modes.set_defaults(report=None)
    levels = commands.add_parser("levels", parents=outputs, help="coarsen into several levels")
    levels.add_argument(
        "-r",
        "--rank",
        type=typed_rank,
        metavar="R",
        help="modes kept per cluster: a number, kernel or budget:N (default: as many as the "
        "largest stalk has dimensions)",
    )
    for command in (modes, levels):
        command.add_argument("--seed", type=int, default=0, help="of random starts (default 0)")

    info = commands.add_parser("info", parents=[given], help="describe a file, a mesh or a store")

    check = commands.add_parser(
        "verify",
        parents=[given],
        help="check every statement of the theory on the coarsening that an .npz or a store holds, "
        "or on one made of any file with coarsen's options",
    )
    _coarsening_options(check, required=False)

    ahead = commands.add_parser(
        "compile",
        help="compile numerical kernels ahead of their first use, for images and clusters",
    )
    _flag(ahead, "--all", "all kernels, for single precision and complex maps too")

    commands.add_parser(
        "demo", help="coarsen a real graph that ships with networkx, and verify the result"
    )

    for command in (coarse, remove, modes, levels, info, check):
        _flag(command, "--json", "print JSON instead of text")
    _flag(coarse, "-v", "--verbose", "also print what a random cochain loses, line by line")
    for command in commands.choices.values():
        _flag(command, "-q", "--quiet", "print nothing but errors")
    return parser


def _flag(parser: argparse.ArgumentParser, *given: str) -> None:
    *names, text = given
    parser.add_argument(*names, action="store_true", help=text)


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


def typed_rank(word: str) -> int | ranks.Rule:
    """Return the rank or rule that a word denotes: an integer, ``kernel`` or ``budget:N``."""
    rule, _, total = word.partition(":")
    try:
        if word == "kernel":
            return ranks.kernel()
        return ranks.budget(int(total)) if rule == "budget" else int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{word!r} is not a rank: use an integer, kernel or budget:N"
        ) from None
