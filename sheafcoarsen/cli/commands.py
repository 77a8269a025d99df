"""The commands of ``sheafcoarsen``, and what they print."""

import argparse
import contextlib
import dataclasses
import logging
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import distributed as dist
from sheafcoarsen._support import files, tables
from sheafcoarsen.cli.compilation import SCALARS, compile_kernels
from sheafcoarsen.cli.input_output import (
    check_outputs,
    describe,
    facts,
    is_mesh,
    is_store,
    lines_of_losses,
    print_json,
    read,
    read_sheaf,
    refuse_options,
    show,
    show_result,
    standard_input,
    write_result,
)
from sheafcoarsen.cli.parser import command_parser
from sheafcoarsen.coarsening import growth_of
from sheafcoarsen.gallery import vertex_areas
from sheafcoarsen.html_report import smooth_cochain, stage, worst_edges, write_report
from sheafcoarsen.io import Level
from sheafcoarsen.modes import compute_modes, local_operator_of, warn_if_sections_lost
from sheafcoarsen.partition import Method, Weights
from sheafcoarsen.sheaf import component_count


def _make(args: argparse.Namespace) -> sc.Coarsening:
    with stage(args.times, "read"):
        sheaf = read_sheaf(args)
    method: Method = args.method or "auto"  # argparse admits no other names
    operator = local_operator_of(args.local_operator or "internal")
    shown: dict = {"progress": args.progress}
    with stage(args.times, "select"):
        weights: Weights = args.weights or "graph"
        P = sc.select(sheaf, args.clusters, method, weights, args.seed or 0, **shown)
    with stage(args.times, "local modes"):
        # compute modes here: `coarsen` would warn about ties, whose number is printed instead
        modes = compute_modes(sheaf, P, args.rank, operator, **shown)
    warn_if_sections_lost(modes._discards_zero.sum(), len(modes.ranks), args.rank)
    with stage(args.times, "coarse maps"):
        return sc.coarsen(sheaf, P, modes)


def _coarsen(args: argparse.Namespace) -> int:
    if args.store is not None:
        return _coarsen_store(args)
    refuse_options(args, ("shards", "scheduler"), "requires --store")
    check_outputs(args, (".npz",))
    C = _make(args)
    n_loops = C.sheaf.n_edges - C.n_crossing_edges
    lines = [
        f"fine    {describe(C.fine)}",
        f"coarse  {describe(C.sheaf)} ({C.n_crossing_edges} crossing, {n_loops} loops)",
    ]
    if note := growth_of(C):
        lines.append(f"note    {note}")
    if C.modes is not None and (tied := C.modes.tied).any():
        note = (
            f"the cut splits a multiple eigenvalue in {int(tied.sum())} of {len(C.ranks)} "
            f"clusters, where the coarse space is not unique"
        )
        if (tied & C.modes._discards_zero).any():
            note += "; global sections may be lost: take --rank kernel, or more modes"
        lines.append(f"note    {note}")
    known = {}
    if args.verbose:
        x = smooth_cochain(C.fine)
        ledger = sc.energy_ledger(C, x)
        lines += lines_of_losses(C, x, ledger)
        known["ledger"] = ledger.lines
    return write_result(args, C, lines, **known)


def _store(args: argparse.Namespace) -> int:
    print(dist.to_store(args.folder, read_sheaf(args)))
    return 0


def _vertices_in(path: str, F: sc.CellularSheaf) -> list[int]:
    """Return the vertices whose names, or else indices, a text file with # comments lists."""
    try:
        with open(path, encoding="utf-8") as stream:
            words = [word for line in stream for word in line.partition("#")[0].split()]
    except FileNotFoundError:
        raise ValueError(
            f"--keep: there is no file {path!r}; it must be a text file of vertices, "
            f"names or indices separated by white space"
        ) from None
    known = {str(name): v for v, name in enumerate(F.vertex_labels or range(F.n_vertices))}
    if not F.vertex_labels:  # indices may have leading zeros
        words = [str(int(word)) if word.isdecimal() else word for word in words]
    for word in words:
        if word not in known:
            what = "names" if F.vertex_labels else f"indices from 0 to {F.n_vertices - 1}"
            raise ValueError(f"--keep {path}: {word!r} is not a vertex; vertices have {what}")
    return [known[word] for word in words]


def _eliminate(args: argparse.Namespace) -> int:
    check_outputs(args, (".npz",))
    with stage(args.times, "read"):
        sheaf = read_sheaf(args)
    keep = None if args.keep is None else _vertices_in(args.keep, sheaf)
    with stage(args.times, "eliminate"):
        K = sc.eliminate(sheaf, keep, args.max_neighbors)
    lines = [f"fine    {describe(K.fine)}", f"left    {describe(K.sheaf)}"]
    names = [str(name) for name in K.sheaf.vertex_labels or K.kept.tolist()]
    if 0 < len(names) <= 20:
        lines.append(f"        vertices {', '.join(names)}")
    for name, fine, left in [("", "fine", "left"), *K.sizes.rows]:
        lines.append(f"        {name:<30}  {fine:>12}  {left:>12}".rstrip())
    if not K.is_determined:
        lines.append("note    values on the vertices left do not determine those on the others")
    return write_result(args, K, lines)


def _modes(args: argparse.Namespace) -> int:
    """Print the lowest eigenvalues of L or the normalized L, and save them with eigenvectors.

    For a triangle mesh without normalization, they are those of L x = t M x, with areas in M.
    """
    check_outputs(args, (".npz",))
    sheaf = read_sheaf(args)
    mass: np.ndarray | None = None
    if args.normalize:
        sheaf = sc.normalize(sheaf)
    elif is_mesh(args.input):
        points, faces = sc.read_mesh(args.input)
        if faces.shape[1] == 3:  # areas suit only cotan weights, which triangles have
            mass = vertex_areas(points, faces)
    E = sc.eigenmodes(sheaf, args.k, mass=mass, seed=args.seed, progress=args.progress)
    if args.out is not None:
        with files.replacing(files.output_path(args.out)) as stream:
            names = ("values", "vectors", "residuals")
            arrays: dict[str, Any] = {name: getattr(E, name) for name in names}
            if sheaf.vertex_labels is not None:
                arrays["vertex_labels"] = np.array([str(label) for label in sheaf.vertex_labels])
            np.savez(stream, **arrays)
    lines = [str(E)]
    if mass is not None:
        areas = "the areas of the vertices in M"
        lines.append(f"modes of L x = t M x, with cotan weights in L and {areas}")
    for value, residual in zip(E.values.tolist(), E.residuals.tolist(), strict=True):
        lines.append(f"{value:>16.8g}  residual {residual:.1e}")
    show_result(args, facts(E), lines)
    return 0


def _levels(args: argparse.Namespace) -> int:
    """Coarsen into several levels, print their sizes, and save the hierarchy."""
    check_outputs(args, (".npz",))
    sheaf = read_sheaf(args)
    rank = int(sheaf.vertex_dims.max(initial=1)) if args.rank is None else args.rank
    H = sc.coarsen_levels(sheaf, rank=rank, seed=args.seed, progress=args.progress)
    return write_result(args, H, [str(H)])


def _synchronize(args: argparse.Namespace) -> int:
    """Compute, certify and write the poses of a pose graph file; print cost, bound, worst edges."""
    check_outputs(args, (".g2o", ".g2o.gz"))
    with stage(args.times, "read"):
        G = sc.read_g2o(args.input, poses=True)
    with stage(args.times, "synchronize"):
        S = sc.synchronize(G, refine=True, robust="tls" if args.robust else None)
    with stage(args.times, "certify"):
        Z = S.certify()
    if args.out is not None:
        with stage(args.times, "write"):
            sc.write_g2o(args.out, G if S.weights is None else G.subset(S.weights > 0.5), S)
    if args.report is not None:
        name, before = os.path.basename(args.input), dict(args.times)
        with stage(args.times, "report"):
            write_report(S, args.report, name, args.typed, before)
    stopped = "" if S.converged else ", not converged"
    steps = f"{len(S.costs) - 1} steps{stopped}"
    cost = f"cost    {S.costs[0]:.6g} at the start, {S.cost:.9g} after {steps}"
    verdict = "no poses cost less"
    if not Z.is_optimal:
        verdict = "NOT certified: perhaps a local minimum"
        if not args.robust:
            verdict += ", or measurements contradict each other: try --robust"
    lines = [str(G), cost, f"bound   {Z.lower_bound:.9g}: {verdict}"]
    if S.weights is not None:
        unsaved = "" if args.out is None else f", also of {tables.printable(args.out)}"
        lines.append(f"left    {S._n_left_out:,} of {S.n_edges:,} measurements out{unsaved}")
        if S.landmarks is not None:
            lines.append("        sightings of landmarks are never left out")
    fit = " by suspicion, the residual in a second, robust fit; sd: standard deviations"
    lines.append(f"worst edges{fit if S.weights is None and S.landmarks is None else ''}")
    lines += [f"  {tables.printable(row)}" for row in tables.aligned(worst_edges(S), str.rjust)]
    show_result(args, {}, lines)
    if args.quiet and not Z.is_optimal:
        print(f"sheafcoarsen: the map is {verdict}", file=sys.stderr)
    return 0


def _info(args: argparse.Namespace) -> int:
    if is_store(args.input):
        return _about_store(args)
    if is_mesh(args.input):
        sheaf, faces = read_sheaf(args), sc.read_mesh(args.input)[1]
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
    if isinstance(obj, sc.PoseGraph):
        if not args.json:
            print(obj)
        obj = obj.sheaf
    show(obj, args.json)
    return 0


def _verify(args: argparse.Namespace) -> int:
    if (args.clusters is None) != (args.rank is None):
        raise ValueError("--clusters and --rank must be passed together")
    if args.clusters is None:
        options = ("method", "weights", "local_operator", "seed")
        refuse_options(args, options, "requires --clusters and --rank")
        if is_store(args.input):
            return _about_store(args)
        obj = read(args)
        held = obj if isinstance(obj, sc.Hierarchy) else [obj]
        levels = [C for C in held if isinstance(C, Level)]
        if not levels:
            raise ValueError(
                f"{args.input} does not hold a coarsening: pass --clusters and --rank to make one"
            )
    else:
        if isinstance(read(args), sc.Hierarchy | Level):
            raise ValueError(f"{args.input} already holds a coarsening: omit --clusters and --rank")
        levels = [_make(args)]
    return _print_checks(levels, args)


def _compile(args: argparse.Namespace) -> int:
    begin = time.perf_counter()
    scalars = SCALARS if args.all else SCALARS[:1]
    compile_kernels(scalars, rare=args.all, progress=args.progress)
    print(f"compiled for {', '.join(scalars)} in {time.perf_counter() - begin:.0f} s")
    return 0


def _demo(args: argparse.Namespace) -> int:
    graph = nx.karate_club_graph()
    F = sc.CellularSheaf.constant(graph)
    P = sc.select(F, 5, weights="sheaf")
    C = sc.coarsen(F, P, 2)
    n, m, k, d = F.n_vertices, F.n_edges, P.n_clusters, C.sheaf.dim_c0
    print(
        f"""Zachary's karate club: {n} members, and how often each of {m} pairs of them met.

Give each member a number, say an opinion. Its energy is the sum over all pairs of
(meetings) x (difference of the two numbers) squared: small where friends agree. A sheaf is
such a rule for comparing values along edges; the values may be vectors, and each edge may
rotate, scale or flip them before it compares.

Coarsening groups the members into {k} clusters and describes each by 2 numbers, how much of
the two smoothest patterns inside it there is. So {n} numbers become {d}, on a sheaf of
{k} vertices and {tables.counted(C.n_crossing_edges, "edge")} between them.

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
    Q = sc.spectral_quality(C, 4)
    print("\nEnergies of the smoothest patterns that are not constant, the lowest eigenvalues:\n")
    for name, values in (("club", Q.fine), (f"{k} clusters", Q.coarse)):
        print(f"  {name:<12}" + "".join(f"{abs(value):>8.3f}" for value in values))
    result = sc.verify(C)
    held, applied = result._counts()
    print(
        f"""
Coarse energies are never below the true ones, and for every pattern that the {d} numbers can
describe the two are equal. This was checked here: {held} of {applied} statements of the
theory hold.

Try it on a graph of your own: sheafcoarsen coarsen FILE -k 5 -r 2 --report page.html"""
    )
    return 0 if result.passed else 1


# ---------------------------------------------------------------- stores


def _coarsen_store(args: argparse.Namespace) -> int:
    """Coarsen a store into another store, and check the result."""
    options = ("out", "report", "dim", "vertices", "signed", "verbose")
    refuse_options(args, options, "cannot be combined with --store, which names the output")
    if args.weights == "sheaf":
        raise ValueError(
            "--weights sheaf needs all maps in memory and cannot be combined with --store: omit it"
        )
    source = dist.open_store(args.input)
    if not isinstance(source, dist.SheafStore):
        raise ValueError(f"{args.input} holds a partition, not a sheaf")
    edges, dims, _ = source.topology()
    method: Method = args.method or "auto"
    if method == "spectral":  # the modes of the graph, since maps may exceed the memory
        graph = sc.CellularSheaf.constant(edges, n_vertices=len(dims))
    else:  # edge stalks of dimension 0: only the graph and the vertex stalks determine the clusters
        graph = sc.CellularSheaf.from_flat(edges, [], [], dims, np.zeros(len(edges), np.int64))
    P = sc.select(graph, args.clusters, method, seed=args.seed or 0)
    operator = local_operator_of(args.local_operator or "internal")
    if not args.json:
        print(dist.estimate(source, P, args.rank, args.shards, operator))
    client = None if args.scheduler is None else dist.connect(args.scheduler)
    C = dist.coarsen(
        source,
        args.store,
        P,
        args.rank,
        local_operator=operator,
        n_shards=args.shards,
        client=client,
        progress=args.progress,
    )
    status = _print_checks([C], args)
    if not args.json:
        print(C.sheaf)
    if client is not None:
        client.close()
    return status


def _about_store(args: argparse.Namespace) -> int:
    """Describe a store, or check its coarsening or levels with random probes."""
    message = "applies to graphs, not to stores: omit it"
    refuse_options(args, ("dim", "vertices", "signed"), message)
    found: Any
    try:
        found = dist.open_store(args.input)
    except dist.StoreError:  # not one sheaf or partition
        found = dist.open_levels(args.input)
    else:
        try:
            found = dist.open_coarsening(args.input)
        except dist.StoreError:  # not a coarsening, or its source no longer exists
            if args.command == "verify":
                raise
    if args.command == "verify":
        return _print_checks([found] if isinstance(found, dist.StoredCoarsening) else found, args)
    show(found, args.json)
    return 0


def _print_checks(levels: Iterable[Any], args: argparse.Namespace) -> int:
    """Print the results of checking each coarsening, stored or not; return the exit status."""
    found = []
    for C in levels:
        result = C.verify() if isinstance(C, dist.StoredCoarsening) else sc.verify(C)
        checks = [dataclasses.asdict(check) for check in result]
        found.append({"passed": bool(result.passed), "checks": checks})
        if not args.json:
            print(C)
            print(result)
    passed = all(level["passed"] for level in found)
    if args.json:
        print_json({"passed": passed, "levels": found})
    return 0 if passed else 1


# ---------------------------------------------------------------- main


@contextlib.contextmanager
def _surroundings(args: argparse.Namespace) -> Iterator[None]:
    """Print each warning on one line, or nothing if quiet; copy standard input ``-`` to a file."""
    given = ""

    def warned(message: object, *_: object, **__: object) -> None:
        said = str(message).replace(given, "standard input") if given else message
        print(f"sheafcoarsen: {_line(said)}", file=sys.stderr)

    args.progress, args.times = sys.stderr.isatty() and not args.quiet, {}
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
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            raise ValueError(str(error).replace(given, "standard input")) from None


def _line(message: object) -> str:
    return tables.printable(" ".join(str(message).split()))


def main(argv: list[str] | None = None) -> int:
    """Run a command; return 0, 1 if a check failed, 2 for an error, 130 if interrupted."""
    try:
        words = sys.argv[1:] if argv is None else argv
        args = command_parser().parse_args(words)
        args.typed = shlex.join(["sheafcoarsen", *words])
        run = {
            "coarsen": _coarsen,
            "store": _store,
            "eliminate": _eliminate,
            "synchronize": _synchronize,
            "modes": _modes,
            "levels": _levels,
            "info": _info,
            "verify": _verify,
            "compile": _compile,
            "demo": _demo,
        }[args.command]
        with _surroundings(args):
            return run(args)
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
