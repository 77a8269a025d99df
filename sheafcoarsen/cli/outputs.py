"""Output of the commands as text or JSON, and checks of their output paths."""

import argparse
import json
import os
from typing import Any

import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import distributed as dist
from sheafcoarsen._support import checks, files, linalg, tables
from sheafcoarsen.cli.inputs import is_mesh
from sheafcoarsen.html_report import SMOOTHING_STEPS, Positions, stage, write_report
from sheafcoarsen.io import Level
from sheafcoarsen.sheaf import component_count


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


def show(obj: Any) -> None:
    """Print what an object or a store holds."""
    if isinstance(obj, sc.CellularSheaf):
        known = facts(obj)
        print(f"sheaf   {describe(obj)}")
        print(
            f"graph   {tables.counted(known['components'], 'component')}, "
            f"{tables.counted(known['loops'], 'loop')}, {known['empty_stalks']} empty stalks"
        )
        return
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
        return kind | {"levels": [facts(obj[i]) for i in range(len(obj))]}
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
