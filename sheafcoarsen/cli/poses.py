"""``sheafcoarsen synchronize``: certified poses from a file of relative poses."""

import argparse
import os

from sheafcoarsen._support import tables
from sheafcoarsen.cli.outputs import check_outputs, show_files, show_times
from sheafcoarsen.html_report import EDGE_HEAD, stage, worst_edges, write_report
from sheafcoarsen.io import read_g2o, write_g2o
from sheafcoarsen.synchronization import synchronize


def pose_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``synchronize``."""
    parser.add_argument("input", metavar="INPUT", help="a pose graph .g2o, or .g2o.gz")
    parser.add_argument("-o", "--out", metavar="OUT.g2o", help="write the poses here, .gz too")
    parser.add_argument(
        "--robust", action="store_true", help="remove measurements that contradict the others"
    )
    parser.add_argument(
        "--report", metavar="FILE.html", help="write an HTML report here; needs matplotlib"
    )


def synchronize_file(args: argparse.Namespace) -> int:
    """Compute the poses of a file, certify, print and write them."""
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
            write_g2o(args.out, G, S)
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(times)
        with stage(times, "report"):
            write_report(S, args.report, name, args.typed, before)
    print(G)
    print(f"cost    {S.costs[0]:.6g} at the start, {S.cost:.9g} after {len(S.costs) - 1} steps")
    verdict = "no poses cost less" if Z.is_optimal else "NOT certified: perhaps a local minimum"
    print(f"bound   {Z.lower_bound:.9g}: {verdict}")
    if S.weights is not None:
        out = int((S.weights < 0.5).sum())
        print(f"left    {out:,} of {S.n_edges:,} measurements out")
    print("worst edges")
    rows = [EDGE_HEAD, *worst_edges(S)]
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(EDGE_HEAD))]
    for row in rows:
        cells = (str(cell).rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  " + tables.printable("  ".join(cells)).rstrip())
    show_times(times)
    show_files(args)
    return 0
