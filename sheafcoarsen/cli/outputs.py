"""Output of the commands as text or JSON, and checks of their output paths."""

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from sheafcoarsen import distributed as dist
from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    check_matplotlib,
    counted,
    eps_of,
    output_path,
    tables,
)
from sheafcoarsen.cli.inputs import is_mesh
from sheafcoarsen.coarsening import Coarsening, energy_ledger
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.html_report import SMOOTHING_STEPS, Positions, smooth_cochain, stage, write_report
from sheafcoarsen.io import Level, read_mesh, save
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, component_count
from sheafcoarsen.solve import Eigenmodes


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
            output_path(path)
        except OSError as error:
            raise type(error)(f"{option} {error}") from None
    if args.report is not None:
        check_matplotlib()


def write_result(
    args: argparse.Namespace,
    result: Coarsening | Elimination | Hierarchy,
    times: dict[str, float],
    show_result: Callable[[], None],
    **more: Any,
) -> int:
    """Save a result, write its report, print its description, and return the exit status.

    ``more`` is printed with the result as JSON.
    """
    if args.out is not None:
        with stage(times, "save"):
            save(args.out, result)
    failed = False
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(times)
        with stage(times, "report"):
            at = Positions(*read_mesh(args.input)) if is_mesh(args.input) else None
            passed = bool(write_report(result, args.report, name, args.typed, before, at))
        more["passed"], failed = passed, not passed
    if args.json:
        print_json(facts(result) | more | {"out": args.out, "report": args.report})
    else:
        show_result()
        show_files(args, ": a check FAILED" if failed else "")
    return int(failed)


def show_times(times: dict[str, float]) -> None:
    """Print the time of each stage in seconds."""
    print("time    " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in times.items()))


def show_files(args: argparse.Namespace, remark: str = "") -> None:
    """Print the paths of written files, with a remark after the path of the report."""
    if args.out is not None:
        print(f"saved   {tables.printable(args.out)}")
    if args.report is not None:
        print(f"report  {tables.printable(args.report)}{remark}")


# ---------------------------------------------------------------- as text


def describe(sheaf: CellularSheaf) -> str:
    """Return the sizes of a sheaf as one line."""
    dims = f"{sheaf.vertex_dims.min()} .. {sheaf.vertex_dims.max()}" if sheaf.n_vertices else "none"
    return (
        f"{sheaf.n_vertices} vertices (stalks {dims}), {sheaf.n_edges} edges, dim C^0 "
        f"{sheaf.dim_c0}, dim C^1 {sheaf.dim_c1}, {sheaf.dtype}"
    )


def show_losses(C: Coarsening) -> None:
    """Print the energy of a smoothed random cochain, line by line, and discarded eigenvalues."""
    remarks = {
        "retained internal": "   in the loops; without them this is the realization loss",
        "discarded internal": "  the truncation loss",
        "internal coupling": "   between the two, zero for internal modes",
        "retained crossing": "   in the crossing edges",
        "crossing coupling": "   between kept and discarded, either sign",
        "discarded crossing": "  lost with the discarded part",
    }
    x = smooth_cochain(C.fine)
    E = energy_ledger(C, x)
    norm2 = max(float(np.vdot(x, x).real), np.finfo(float).tiny)
    print(
        f"lost    of a random cochain, smoothed in {SMOOTHING_STEPS} steps x - L x / "
        f"(row sums of abs(L)): {100 * float(E.discarded_norm2.sum()) / norm2:.2f} % of its"
    )
    print(
        f"        squared norm; its energy was {E.fine_energy:.4g}, what is kept has "
        f"{E.galerkin_energy:.4g}. The account:"
    )
    lines = {name: float(value) for name, value in E.lines.items()}
    scale = int(C.clusters.dims.max(initial=1)) * sum(map(abs, lines.values()))
    noise = RESIDUAL_LIMIT * eps_of(C.fine.dtype) * scale
    for name, value in lines.items():
        shown = "0" if abs(value) <= noise else f"{value:.4g}"
        print(f"        {shown:>12}  {name}{remarks[name]}")
    if C.modes is not None:
        gaps = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
        if len(gaps):
            print(
                f"        first discarded eigenvalue {gaps.min():.4g} at least, "
                f"{np.median(gaps):.4g} in the median cluster"
            )


def show(obj: Any) -> None:
    """Print what an object or a store holds."""
    if isinstance(obj, CellularSheaf):
        known = facts(obj)
        print(f"sheaf   {describe(obj)}")
        print(
            f"graph   {counted(known['components'], 'component')}, "
            f"{counted(known['loops'], 'loop')}, {known['empty_stalks']} empty stalks"
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
    if isinstance(obj, Partition):
        return kind | {"vertices": obj.n_vertices, "clusters": obj.n_clusters}
    if isinstance(obj, Hierarchy):
        return kind | {"sheaves": [facts(F) for F in obj.sheaves]}
    if isinstance(obj, dist.StoredHierarchy):
        return kind | {"levels": [facts(obj[i]) for i in range(len(obj))]}
    if isinstance(obj, Level | dist.StoredCoarsening):
        sheaves: dict[str, Any] = {"fine": facts(obj.fine), "coarse": facts(obj.sheaf)}
        if isinstance(obj, Coarsening) and obj.modes is not None:
            sheaves["tied_clusters"] = int(obj.modes.tied.sum())
        return kind | sheaves
    if isinstance(obj, Eigenmodes):
        return kind | {"values": obj.values.tolist(), "residuals": obj.residuals.tolist()}
    sizes: dict[str, Any] = {"vertices": int(obj.n_vertices), "edges": int(obj.n_edges)}
    sizes |= {"dim_c0": int(obj.dim_c0), "dim_c1": int(obj.dim_c1), "dtype": str(obj.dtype)}
    if isinstance(obj, CellularSheaf):
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
