"""What ``modes`` and ``levels`` compute, print and save; ranks as they are typed."""

import argparse

import numpy as np

from sheafcoarsen import ranks
from sheafcoarsen._support import output_path, replacing
from sheafcoarsen.cli.outputs import check_outputs, show_files
from sheafcoarsen.hierarchy import coarsen_levels
from sheafcoarsen.io import save
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import eigenmodes


def typed_rank(word: str) -> int | ranks.Rule:
    """Return the rank that is typed: a number, ``kernel`` or ``budget:N``."""
    rule, _, total = word.partition(":")
    try:
        if word == "kernel":
            return ranks.kernel()
        return ranks.budget(int(total)) if rule == "budget" else int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{word!r} is no rank: give a number, kernel or budget:N"
        ) from None


def answer_options(modes: argparse.ArgumentParser, levels: argparse.ArgumentParser) -> None:
    """Add the options of both commands."""
    modes.add_argument("-k", type=int, required=True, metavar="K", help="how many modes")
    levels.add_argument(
        "-r",
        "--rank",
        type=typed_rank,
        metavar="R",
        help="modes kept per cluster: a number, kernel or budget:N (default: as many as the "
        "largest stalk has dimensions)",
    )
    for parser in (modes, levels):
        parser.add_argument("-o", "--out", metavar="FILE.npz", help="save the result here")
        parser.add_argument("--seed", type=int, default=0, help="of random starts (default 0)")
        parser.set_defaults(report=None)


def show_modes(sheaf: CellularSheaf, args: argparse.Namespace) -> int:
    """Print the lowest eigenvalues of L, and save them with their vectors."""
    check_outputs(args, (".npz",))
    E = eigenmodes(sheaf, args.k, seed=args.seed)
    print(E)
    for value, residual in zip(E.values.tolist(), E.residuals.tolist(), strict=True):
        print(f"{value:>16.8g}  residual {residual:.1e}")
    if args.out is not None:
        with replacing(output_path(args.out)) as stream:
            np.savez(stream, values=E.values, vectors=E.vectors, residuals=E.residuals)
    show_files(args)
    return 0


def show_levels(sheaf: CellularSheaf, args: argparse.Namespace) -> int:
    """Print the levels of a hierarchy, and save it."""
    check_outputs(args, (".npz",))
    rank = args.rank
    if rank is None:
        rank = max(1, int(sheaf.vertex_dims.max(initial=1)))
    H = coarsen_levels(sheaf, rank=rank, seed=args.seed)
    print(H)
    if args.out is not None:
        save(args.out, H)
    show_files(args)
    return 0
