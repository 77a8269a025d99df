"""Input files and standard input; output as text or JSON, and checks of output paths."""

import argparse
import gzip
import json
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import distributed as dist
from sheafcoarsen._support import checks, files, linalg, tables
from sheafcoarsen.gallery import tangent_bundle
from sheafcoarsen.html_report import SMOOTHING_STEPS, Positions, stage, write_report
from sheafcoarsen.io import Level, Saved
from sheafcoarsen.sheaf import component_count

# ---------------------------------------------------------------- input

FORMATS = {
    ".npz": rb"\APK\x03\x04",
    ".mtx": rb"\A%%MatrixMarket",
    ".g2o": rb"^(?:EDGE|VERTEX)(?:_SE|[23]\b)",
    ".graphml": rb"\A\s*<",
    ".gml": rb"^\s*graph\s*\[",
    ".off": rb"\A\w*OFF\b",
    ".ply": rb"\Aply\s",
    ".obj": rb"^v(?:\s+[-+.\deE]+){3}",
    ".txt": b"",
}
"""Pattern of the first bytes of a file, by extension. Any other content is an edge list."""


def refuse_options(args: argparse.Namespace, options: Iterable[str], message: str) -> None:
    """Raise an error with a message for the first of some options that was passed."""
    for option in options:
        value = getattr(args, option)
        if value is not None and value is not False:
            raise ValueError(f"--{option.replace('_', '-')} {message}")


def is_store(path: str) -> bool:
    """Return whether a path is a URL or a folder, and therefore denotes a store."""
    return "://" in path or os.path.isdir(path)


def read(args: argparse.Namespace, poses: bool = False) -> Saved | sc.PoseGraph:
    """Return the object that a file holds; for a pose graph, its sheaf unless ``poses`` is set."""
    path, dim = args.input, args.dim
    if is_store(path):
        raise ValueError(f"{path} is not a file: for a store, use coarsen --store, info or verify")
    plain = path.lower().removesuffix(".gz")
    try:
        with (open if plain == path.lower() else gzip.open)(path, "rb") as stream:
            head = bytes(stream.read(64))
    except (OSError, EOFError, zlib.error):
        head = b""  # the reader reports the error
    ours = plain.endswith(".npz") or head.startswith(b"PK\x03\x04")
    toro = plain.endswith(".graph") and re.match(FORMATS[".g2o"], head)
    is_g2o = toro or plain.endswith(".g2o")
    if ours or is_g2o or is_mesh(path):
        owned = {"dim": "stalk dimension", "vertices": "number of vertices", "signed": "maps"}
        for option, own in owned.items():
            message = f"is for graphs, but {path} has its own {own}: omit it"
            refuse_options(args, (option,), message)
    if ours:
        return sc.load(path)
    if is_g2o:
        try:
            G = sc.read_g2o(path, poses=True)
        except ValueError:
            return sc.read_g2o(path)  # raises again, unless only translations or poses are invalid
        if not poses and G.sightings is not None:
            warnings.warn(
                f"{path}: only the rotations between poses are used; `synchronize` takes landmarks",
                stacklevel=2,
            )
        return G if poses else G.sheaf
    if is_mesh(path):
        points, faces = sc.read_mesh(path)
        return tangent_bundle(points, faces, weights="cotan" if faces.shape[1] == 3 else "uniform")
    return sc.read_graph(path, 1 if dim is None else dim, args.signed, args.vertices)


def read_sheaf(args: argparse.Namespace) -> sc.CellularSheaf:
    """Return the sheaf that a file holds.

    Of a coarsening, elimination or sparsification it is the result, of a hierarchy the coarsest.
    """
    obj = read(args)
    if isinstance(obj, Level):
        return obj.sheaf
    if isinstance(obj, sc.Hierarchy):
        return obj.sheaves[-1]
    if not isinstance(obj, sc.CellularSheaf):
        raise ValueError(f"{args.input} holds a partition, not a sheaf")
    return obj


def standard_input(folder: str) -> str:
    """Write standard input to a file with the extension of its format, and return the path."""
    data = sys.stdin.buffer.read()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"standard input: a damaged gzip file: {error}") from None
    head = data[:65536]
    ending = next(end for end, begin in FORMATS.items() if re.search(begin, head, re.MULTILINE))
    path = os.path.join(folder, f"standard input{ending}")
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def is_mesh(path: str) -> bool:
    """Return whether a path has the file extension of a surface mesh."""
    return path.lower().removesuffix(".gz").endswith((".off", ".obj", ".ply"))


# ---------------------------------------------------------------- output


def check_outputs(args: argparse.Namespace, endings: tuple[str, ...]) -> None:
    """Check that the outputs can be written, before the computation."""
    for option, path, allowed in (
        ("--out", args.out, endings),
        ("--report", args.report, (".html",)),
    ):
        if path is None:
            continue
        if not path.endswith(allowed):
            raise ValueError(f"{option} must name an {' or '.join(allowed)} file, got {path!r}")
        try:
            files.output_path(path)
        except OSError as error:
            raise type(error)(f"{option} {error}") from None
    if args.report is not None:
        checks.check_matplotlib()


def write_result(
    args: argparse.Namespace,
    result: sc.Coarsening | sc.Elimination | sc.Hierarchy,
    lines: list[str],
    **known: Any,
) -> int:
    """Save a result, write its report, describe it as text or JSON, and return the exit status.

    The text is ``lines``, the JSON `facts` and ``known``.
    """
    if args.out is not None:
        with stage(args.times, "save"):
            sc.save(args.out, result)
    passed = True
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(args.times)
        with stage(args.times, "report"):
            at = Positions(*sc.read_mesh(args.input)) if is_mesh(args.input) else None
            passed = bool(write_report(result, args.report, name, args.typed, before, at))
        known["passed"] = passed
    show_result(args, facts(result) | known, lines, "" if passed else ": a check FAILED")
    return 0 if passed else 1


def show_result(
    args: argparse.Namespace, known: dict[str, Any], lines: list[str], remark: str = ""
) -> None:
    """Print a result as JSON or text, with the time of each stage in seconds and the written files.

    ``remark`` follows the path of the report.
    """
    if getattr(args, "json", False):
        print_json(known | {"seconds": args.times, "out": args.out, "report": args.report})
        return
    print("\n".join(lines))
    if args.times:
        spent = (f"{name} {seconds:.3f} s" for name, seconds in args.times.items())
        print("time    " + ", ".join(spent))
    if args.out is not None:
        print(f"saved   {tables.printable(args.out)}")
    if args.report is not None:
        print(f"report  {tables.printable(args.report)}{remark}")


# ---------------------------------------------------------------- as text


def describe(sheaf: sc.CellularSheaf) -> str:
    """Return the sizes of a sheaf as one line."""
    dims = f"{sheaf.vertex_dims.min()} .. {sheaf.vertex_dims.max()}" if sheaf.n_vertices else "none"
    return (
        f"{sheaf.n_vertices} vertices (stalks {dims}), {sheaf.n_edges} edges, dim C^0 "
        f"{sheaf.dim_c0}, dim C^1 {sheaf.dim_c1}, {sheaf.dtype}"
    )


def lines_of_losses(C: sc.Coarsening, x: np.ndarray, E: sc.EnergyLedger) -> list[str]:
    """Describe the energy of a smoothed random cochain, line by line, and discarded eigenvalues."""
    remarks = {
        "retained internal": "   in the loops; without them this is the realization loss",
        "discarded internal": "  the truncation loss",
        "internal coupling": "   between the two, zero for internal modes",
        "retained crossing": "   in the crossing edges",
        "crossing coupling": "   between kept and discarded, either sign",
        "discarded crossing": "  lost with the discarded part",
    }
    norm2 = max(float(np.vdot(x, x).real), np.finfo(float).tiny)
    lines = [
        f"lost    of a random cochain, smoothed in {SMOOTHING_STEPS} steps x - L x / "
        f"(row sums of abs(L)): {100 * float(E.discarded_norm2.sum()) / norm2:.2f} % of its",
        f"        squared norm; its energy was {E.fine_energy:.4g}, what is kept has "
        f"{E.galerkin_energy:.4g}. The account:",
    ]
    values = {name: float(value) for name, value in E.lines.items()}
    scale = int(C.clusters.dims.max(initial=1)) * sum(map(abs, values.values()))
    noise = linalg.RESIDUAL_LIMIT * linalg.eps_of(C.fine.dtype) * scale
    for name, value in values.items():
        shown = "0" if abs(value) <= noise else f"{value:.4g}"
        lines.append(f"        {shown:>12}  {name}{remarks[name]}")
    if C.modes is not None:
        gaps = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
        if len(gaps):
            lines.append(
                f"        first discarded eigenvalue {gaps.min():.4g} at least, "
                f"{np.median(gaps):.4g} in the median cluster"
            )
    return lines


def show(obj: Any, as_json: bool) -> None:
    """Print what an object or a store holds."""
    if as_json:
        print_json(facts(obj))
    elif isinstance(obj, sc.CellularSheaf):
        known = facts(obj)
        print(f"sheaf   {describe(obj)}")
        print(
            f"graph   {tables.counted(known['components'], 'component')}, "
            f"{tables.counted(known['loops'], 'loop')}, {known['empty_stalks']} empty stalks"
        )
    else:
        print(obj)
        if isinstance(obj, Level):
            print(f"fine    {describe(obj.fine)}\ncoarse  {describe(obj.sheaf)}")
        elif isinstance(obj, dist.StoredCoarsening):
            print(f"fine    {obj.fine}\ncoarse  {obj.sheaf}")


# ---------------------------------------------------------------- as JSON


def facts(obj: Any) -> dict[str, Any]:
    """Return a dictionary that describes an object, as printed with ``--json``."""
    kind: dict[str, Any] = {"kind": type(obj).__name__}
    if isinstance(obj, sc.Partition | dist.PartitionStore):
        return kind | {"vertices": obj.n_vertices, "clusters": obj.n_clusters}
    if isinstance(obj, sc.Hierarchy):
        return kind | {"sheaves": [facts(F) for F in obj.sheaves]}
    if isinstance(obj, dist.StoredHierarchy):
        return kind | {"levels": [facts(C) for C in obj.levels]}
    if isinstance(obj, Level | dist.StoredCoarsening):
        sheaves: dict[str, Any] = {"fine": facts(obj.fine), "coarse": facts(obj.sheaf)}
        if isinstance(obj, sc.Coarsening) and obj.modes is not None:
            sheaves["tied_clusters"] = int(obj.modes.tied.sum())
        return kind | sheaves
    if isinstance(obj, sc.Eigenmodes):
        return kind | {"values": obj.values.tolist(), "residuals": obj.residuals.tolist()}
    sizes: dict[str, Any] = {"vertices": int(obj.n_vertices), "edges": int(obj.n_edges)}
    sizes |= {"dim_c0": int(obj.dim_c0), "dim_c1": int(obj.dim_c1), "dtype": str(obj.dtype)}
    if isinstance(obj, sc.CellularSheaf):
        sizes["stalks"] = [int(d) for d in np.unique(obj.vertex_dims)]
        sizes["components"] = component_count(obj)
        sizes["loops"] = int((obj.edges[:, 0] == obj.edges[:, 1]).sum())
        sizes["empty_stalks"] = int((obj.vertex_dims == 0).sum())
    return kind | sizes


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, with null for infinite numbers and NaN."""
    print(json.dumps(_plain(value), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
