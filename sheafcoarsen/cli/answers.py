"""The commands ``modes``, ``levels`` and ``synchronize``, and the parser of ``--rank``."""

import argparse
import os
import sys
from typing import Any

import numpy as np

from sheafcoarsen import ranks
from sheafcoarsen._support import output_path, replacing, tables
from sheafcoarsen.cli.inputs import is_mesh, read_sheaf
from sheafcoarsen.cli.outputs import (
    check_outputs,
    facts,
    print_json,
    show_files,
    show_times,
    write_result,
)
from sheafcoarsen.gallery import vertex_areas
from sheafcoarsen.hierarchy import coarsen_levels
from sheafcoarsen.html_report import stage, worst_edges, write_report
from sheafcoarsen.io import read_g2o, read_mesh, write_g2o
from sheafcoarsen.operators import normalize
from sheafcoarsen.solve import eigenmodes
from sheafcoarsen.synchronization import synchronize


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


def answer_options(modes: argparse.ArgumentParser, levels: argparse.ArgumentParser) -> None:
    """Add the options of ``modes`` and ``levels``."""
    modes.add_argument("-k", type=int, required=True, metavar="K", help="how many modes")
    modes.add_argument(
        "--normalize",
        action="store_true",
        help="find modes of D^{-1/2} L D^{-1/2}; areas of a mesh are ignored",
    )
    levels.add_argument(
        "-r",
        "--rank",
        type=typed_rank,
        metavar="R",
        help="modes kept per cluster: a number, kernel or budget:N (default: as many as the "
        "largest stalk has dimensions)",
    )
    modes.set_defaults(report=None)
    for parser in (modes, levels):
        parser.add_argument("--seed", type=int, default=0, help="of random starts (default 0)")


def show_modes(args: argparse.Namespace) -> int:
    """Print the lowest eigenvalues of L, normalized if asked, and save them with eigenvectors."""
    check_outputs(args, (".npz",))
    sheaf = read_sheaf(args)
    mass: np.ndarray | None = None
    if args.normalize:
        sheaf = normalize(sheaf)
    elif is_mesh(args.input):
        points, faces = read_mesh(args.input)
        if faces.shape[1] == 3:  # areas suit only cotan weights, which triangles have
            mass = vertex_areas(points, faces)
    E = eigenmodes(sheaf, args.k, mass=mass, seed=args.seed, progress=args.progress)
    if args.out is not None:
        with replacing(output_path(args.out)) as stream:
            arrays: dict[str, Any] = {
                "values": E.values,
                "vectors": E.vectors,
                "residuals": E.residuals,
            }
            if sheaf.vertex_labels is not None:
                arrays["vertex_labels"] = np.array([str(label) for label in sheaf.vertex_labels])
            np.savez(stream, **arrays)
    if args.json:
        print_json(facts(E) | {"out": args.out, "report": None})
        return 0
    print(E)
    if mass is not None:
        print("modes of L x = t M x, with cotan weights in L and the areas of the vertices in M")
    for value, residual in zip(E.values.tolist(), E.residuals.tolist(), strict=True):
        print(f"{value:>16.8g}  residual {residual:.1e}")
    show_files(args)
    return 0


def show_levels(args: argparse.Namespace) -> int:
    """Coarsen into several levels, print their sizes, and save the hierarchy."""
    check_outputs(args, (".npz",))
    sheaf = read_sheaf(args)
    rank = int(sheaf.vertex_dims.max(initial=1)) if args.rank is None else args.rank
    H = coarsen_levels(sheaf, rank=rank, seed=args.seed, progress=args.progress)
    return write_result(args, H, {}, lambda: print(H))


def pose_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``synchronize``."""
    parser.add_argument("input", metavar="INPUT", help="a pose graph .g2o, or .g2o.gz")
    parser.add_argument("-o", "--out", metavar="OUT.g2o", help="write the poses here, .gz too")
    parser.add_argument(
        "--robust", action="store_true", help="remove measurements that contradict the others"
    )


def synchronize_file(args: argparse.Namespace) -> int:
    """Compute the poses of a pose graph file, certify, print and write them."""
    check_outputs(args, (".g2o", ".g2o.gz"))
    times: dict[str, float] = {}
    with stage(times, "read"):
        G = read_g2o(args.input, poses=True)
    with stage(times, "synchronize"):
        S = synchronize(G, refine=True, robust="tls" if args.robust else None)
    with stage(times, "certify"):
        Z = S.certify()
    if args.out is not None:
        with stage(times, "write"):
            write_g2o(args.out, G if S.weights is None else G.subset(S.weights > 0.5), S)
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(times)
        with stage(times, "report"):
            write_report(S, args.report, name, args.typed, before)
    print(G)
    stopped = "" if S.converged else ", not converged"
    steps = f"{len(S.costs) - 1} steps{stopped}"
    print(f"cost    {S.costs[0]:.6g} at the start, {S.cost:.9g} after {steps}")
    verdict = "no poses cost less"
    if not Z.is_optimal:
        verdict = "NOT certified: perhaps a local minimum"
        if not args.robust:
            verdict += ", or measurements contradict each other: try --robust"
    print(f"bound   {Z.lower_bound:.9g}: {verdict}")
    if S.weights is not None:
        unsaved = "" if args.out is None else f", also of {tables.printable(args.out)}"
        print(f"left    {S._n_left_out:,} of {S.n_edges:,} measurements out{unsaved}")
        if S.landmarks is not None:
            print("        sightings of landmarks are never left out")
    fit = ": standard deviations of a second, robust fit"
    print(f"worst edges{fit if S.weights is None and S.landmarks is None else ''}")
    rows = worst_edges(S)
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = (str(cell).rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  " + tables.printable("  ".join(cells)).rstrip())
    show_times(times)
    show_files(args)
    if args.quiet and not Z.is_optimal:
        print(f"sheafcoarsen: the map is {verdict}", file=sys.stderr)
    return 0
