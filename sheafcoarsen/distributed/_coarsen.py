"""Coarsen a stored sheaf into another store in steps: plan, split, shards, borders, seal."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, labels, linalg, ragged, threads
from sheafcoarsen.coarsening import coarse_labels
from sheafcoarsen.distributed import tasks
from sheafcoarsen.distributed._estimate import Estimate, Request, check_memory, planned
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, amount
from sheafcoarsen.distributed._write_store import new_group, seal
from sheafcoarsen.distributed.location import Place, fresh_name, place_of
from sheafcoarsen.distributed.schema import Root, find_header, write_array
from sheafcoarsen.distributed.write_lock import exclusive
from sheafcoarsen.modes import (
    LocalOperatorLike,
    Whole,
    check_dense,
    warn_if_empty,
    warn_if_sections_lost,
    warn_if_tied,
)
from sheafcoarsen.partition import Partition
from sheafcoarsen.ranks import RankLike, Spectra


def coarsen(  # noqa: PLR0913 (public, options by keyword)
    src: SheafStore,
    out: object,
    P: Partition | PartitionStore | npt.ArrayLike,
    rank: RankLike,
    *,
    local_operator: LocalOperatorLike = "internal",
    loops: bool = True,
    compress: bool = True,
    n_shards: int | None = None,
    client: Any = None,
    progress: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> StoredCoarsening:
    """Coarsen a stored sheaf into another store, bitwise identically to ``sc.coarsen``.

    If the same call left ``out`` unfinished, it is resumed without repeating finished tasks; if it
    is finished, it is returned. This process holds the topology in memory, and a task one shard.

    Parameters
    ----------
    src : SheafStore
    out : path or URL
        Location of the result. It must not exist, unless an identical call has written it.
    P : Partition, PartitionStore, or labels of shape (n,)
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        A rule that depends on spectra takes one more pass over the maps.
    local_operator : {"internal", "principal"}
        See :func:`sheafcoarsen.local_modes`.
    loops, compress : bool
        See :func:`sheafcoarsen.coarsen`; here edge stalks are compressed by default.
    n_shards : int, optional
        Number of groups of clusters, which does not affect the result. By default shards have
        64 MB of maps, or less if workers have little memory.
    client : dask.distributed.Client, optional
        Client of any cluster whose workers have this library and can access both stores. By
        default tasks run sequentially in this process, with the library's threads.
    progress : bool
        Print the estimated cost, a progress bar, and the actual cost.
    storage_options : dict, optional
        Options of the file system of ``out``; by default those of ``src``.

    Returns
    -------
    StoredCoarsening

    Raises
    ------
    FileExistsError
        If something else exists at ``out``.
    BlockingIOError
        If another run is writing to ``out``.
    MemoryError
        If a shard, a part or a cluster is too large for a worker. It is raised before any task
        runs, and the message names sizes that fit.
    StoreError
        If a chunk is missing or damaged, or the version of a store is not supported.
    RuntimeError
        If the client's workers lack the library, or cannot read the files of this process.
    ValueError, TypeError
        If labels do not match the store, modes are oversampled, or ``sc.coarsen`` would raise.

    Warns
    -----
    TiedModesWarning
        If the cut between retained and discarded modes splits a multiple eigenvalue.
    SingularProblemWarning
        If ``ranks.kernel()`` retains no mode: the coarse sheaf then has dimension 0. If
        ``ranks.budget(total)`` discards modes of eigenvalue zero.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 3, seed=3)
    >>> src, P = dist.to_store("memory://fine", F), sc.select(F, 9)
    >>> C = dist.coarsen(src, "memory://coarse", P, 3, n_shards=3)
    >>> C
    StoredCoarsening('memory://coarse': internal modes, 144 -> 9 vertices, dim C^0 288 -> 27)
    >>> same = sc.coarsen(F, P, 3, compress=True)
    >>> bool(np.array_equal(C.sheaf.load().tail_data, same.sheaf.tail_data))
    True
    """
    asked = Request(src, P, rank, local_operator, n_shards, loops=loops, compress=compress)
    progress = checks.flag("progress", progress)
    place = place_beside(src, out, storage_options)
    if C := finished(place, asked):
        (place / "work").remove()  # left by a run that was killed at its end
        return C
    engine = tasks.Engine(client)
    C = made_once(place, asked, lambda root: Run(asked, root, engine, progress).done())
    if C.report.get("tied"):
        zero = linalg.zero_energy(C._cluster_dims, C.sheaf.dtype, C.spectral("operator_norms"))
        warn_if_tied(C.spectral("tied", np.int8), C.spectral("next_eigenvalues") <= zero)
    warn_if_sections_lost(C.report.get("discards_zero", 0), len(C.ranks), asked.rule)
    if asked.rule.needs_kernels:
        warn_if_empty(src.dim_c0, C.ranks, C.spectral("next_eigenvalues"))
    return C


def place_beside(src: SheafStore, out: object, options: dict[str, Any] | None) -> Place:
    """Check the location of a result and return it, with the options of ``src`` by default."""
    place = place_of(out, {}, "out")
    if place.url == src.url:
        raise FileExistsError(f"`out` = {place.url} is the source: pass another path")
    if place.folder.startswith(src.place.folder):
        raise ValueError(
            f"`out` = {place.url} is inside the source {src.url} and would be removed with it: "
            f"pass another path"
        )
    if options is None and (place.local_path is None) == (src.place.local_path is None):
        options = src.place.options
    return place_of(out, options, "out")


def made_once(
    place: Place, asked: Request, make: Callable[[Root], StoredCoarsening]
) -> StoredCoarsening:
    """Return the requested coarsening; unless it is finished, make it under an exclusive lock."""
    work = place / "work"
    claim(place, asked)  # raise an error before the lock writes a file there
    with exclusive(work / "lock"):
        C = finished(place, asked)  # by a run that held the lock before
        if C is None:
            mine = claim(place, asked)
            (work / "claim.json").put_record(**mine)
            try:
                C = make(Root(place, mine["id"]))
            except (MemoryError, ValueError, TypeError):
                if (work / "plan.json").find_record() is None:  # it failed before any task ran
                    work.remove()
                raise
    work.remove()
    return C


def finished(place: Place, asked: Request) -> StoredCoarsening | None:
    """Return the finished coarsening at a location, or None; reject the result of another call."""
    header = find_header(place)
    if header is None:
        return None
    if header.run != asked.run:
        raise FileExistsError(
            f"{place.url} exists and is the result of another call: remove it, or pass another path"
        )
    return StoredCoarsening(SheafStore(place), asked.source)


def claim(place: Place, asked: Request) -> dict[str, str]:
    """Return this call's claim to a location, left by an unfinished run, or else a new claim.

    A claim has the id of the store to write. Raise an error if the location has other content.
    """
    work = place / "work"
    held = (work / "claim.json").find_record()
    mine = {"run": asked.run, "library": version("sheafcoarsen")}
    if held is not None and mine.items() <= held.items():
        return held
    if held is not None or place.names() - {"work"} or work.names() - {"lock"}:
        what = "holds an unfinished run of another call or version of the library"
        what = what if held else "exists and holds other files"
        raise FileExistsError(f"{place.url} {what}: remove it, or pass another path")
    return {**mine, "id": uuid.uuid4().hex}


class Run:
    """One run of `coarsen`, from the plan to the finished store."""

    def __init__(self, asked: Request, root: Root, engine: tasks.Engine, progress: bool) -> None:
        self.asked, self.root, self.engine, self.progress = asked, root, engine, progress
        self.place, self.work = root.place, root.place / "work"
        self.needs_spectra = asked.rule.needs_scores or asked.rule.needs_kernels
        self.start = time.perf_counter()

    def done(self) -> StoredCoarsening:
        """Run the remaining tasks and return the result."""
        asked, engine = self.asked, self.engine
        dims, providers, estimate = self.plan()
        plan_seconds = time.perf_counter() - self.start
        job = tasks.Job(
            source=asked.source.root,
            out=self.root,
            run=f"{asked.run}-{estimate.n_shards}",
            operator=asked.operator,
            rule=asked.rule if self.needs_spectra else None,
            singular=asked.rule.needs_kernels,
            loops=asked.loops,
            compress=asked.compress,
            whole=Whole.of(dims, None),
            threads=engine.threads,
        )
        engine.check_seen(self.work / "plan.json")
        parts, shards = range(estimate.n_parts), range(estimate.n_shards)
        borders = [s for s in shards if providers[s]]
        total = len(parts) + len(shards) * (1 + self.needs_spectra) + len(borders)
        with threads.bar(total, "coarsen", self.progress) as engine.shown:
            split = engine.results([engine.start(tasks.split_task, job, p) for p in parts])
            names = np.array([result["name"] for result in split], str)
            buckets = fresh_name("buckets")
            (self.work / buckets).put_record(names=names)
            job = replace(job, buckets=buckets)
            spectra = []
            if self.needs_spectra:
                spectra = engine.results([engine.start(tasks.spectra_task, job, s) for s in shards])
            ranks = self.choose_ranks(dims, spectra)
            chosen = fresh_name("ranks")
            (self.work / chosen).put_record(ranks=ranks)
            job = replace(job, ranks=chosen, whole=Whole.of(dims, ranks))
            started = [engine.start(tasks.shard_task, job, s) for s in shards]
            for s in borders:
                suppliers = [started[t] for t in providers[s]]
                started.append(engine.start(tasks.border_task, job, s, suppliers))
            coarse = engine.results(started)
        results, inner = [*split, *spectra, *coarse], coarse[: len(shards)]
        n_found = sum(result["found"] for result in results)
        report = {
            "plan_seconds": plan_seconds,
            "shards": len(shards),
            "tasks_done": len(results) - n_found,
            "tasks_found": n_found,
            "task_seconds": {
                "shard": sum(result["seconds"] for result in inner),
                "border": sum(result["seconds"] for result in coarse[len(shards) :]),
            },
            "halo_bytes": sum(result["halo"] for result in inner),
            "tied": sum(result["tied"] for result in inner),
            "discards_zero": sum(result["discards_zero"] for result in inner),
            "estimate": asdict(estimate),
        }
        return self.sealed(ranks, [(self.work / r["record"]).record() for r in coarse], report)

    def plan(self) -> tuple[np.ndarray, list[list[int]], Estimate]:
        """Plan the run, with the number of shards that a resumed run began with; write the plan.

        Return the dimension of C^0 on each cluster; for each border, the shards whose rows of R it
        needs; and the estimated cost.
        """
        asked, engine, note = self.asked, self.engine, self.work / "plan.json"
        known, wanted, shards = note.find_record(), asked.n_shards, None
        if known is not None:
            self.tell(f"resuming {self.place.url}")
            shards = known["shards"]
            if wanted is not None and min(wanted, max(asked.P.n_clusters, 1)) != shards:
                raise FileExistsError(
                    f"{self.place.url} holds an unfinished run of this call with {shards} "
                    f"shards: omit `n_shards` to resume it, or remove {self.place.url}"
                )
        plan, found = planned(asked, engine.memory, engine.at_once, shards)
        check_memory(found, engine.memory, engine.where, len(plan.dims))
        if self.needs_spectra:
            check_dense(plan.dims, "a rule that looks at whole spectra")
        self.tell(str(found))
        providers = plan.write(self.work / "plan")
        if known is None:  # written again, a crash could leave half of it
            note.put_record(shards=plan.n_shards)
        return plan.dims, providers, found

    def choose_ranks(self, dims: np.ndarray, results: list[tasks.Record]) -> np.ndarray:
        """Choose the ranks of all clusters from the spectra of all shards."""
        rule = self.asked.rule
        starts = ragged.offsets(dims if rule.needs_scores else np.zeros(len(dims), np.int64))
        (scores, ties), found = np.zeros((2, int(starts[-1]))), np.zeros(len(dims), np.int64)
        for result in results:
            shard = (self.work / result["record"]).record()
            found[shard["clusters"]] = shard["kernels"]
            entries = ragged.range_of_blocks(starts, shard["clusters"])
            scores[entries], ties[entries] = shard["scores"], shard["ties"]
        return rule.ranks(Spectra(dims, starts, scores, found, ties))

    def sealed(
        self, ranks: np.ndarray, coarse: list[tasks.Record], report: dict[str, Any]
    ) -> StoredCoarsening:
        """Merge the topologies of all parts in the library's edge order, and finish the store.

        ``coarse`` holds the records of the shards, and then those of the borders.
        """
        asked = self.asked
        parts = {r["name"]: len(r["edges"]) for r in coarse if len(r["edges"])}
        edges = np.concatenate([np.zeros((0, 2), np.int64), *(r["edges"] for r in coarse)])
        edge_dims = np.concatenate([np.zeros(0, np.int64), *(r["edge_dims"] for r in coarse)])
        # sort the edges as in memory: crossing edges by (a, b), then loops
        order = np.lexsort((edges[:, 1], edges[:, 0], edges[:, 0] == edges[:, 1]))
        numbers = np.empty_like(order)
        numbers[order] = np.arange(len(order))
        basis = [record["name"] for record in coarse[: report["shards"]]]
        for folder, used in (("parts", parts), ("basis", basis)):
            # remove files of tasks that ran twice or were killed
            for name in (self.place / folder).names() - {*used, "zarr.json"}:
                (self.place / f"{folder}/{name}").remove()
        new_group(self.place / "basis")
        write_array(self.root, "labels", asked.P.labels)
        names = coarse_labels(asked.source.vertex_labels, asked.P.members, asked.P.cluster_offsets)
        report = {"seconds": time.perf_counter() - self.start, **report}
        sheaf = seal(
            self.root,
            (edges[order], ranks, edge_dims[order]),
            parts,
            numbers,
            dtype=asked.source.dtype,
            names=None if names is None else labels.encode_labels(names),
            basis=basis,
            kind="coarsening",
            largest_entry=max((r["largest_entry"] for r in coarse), default=0.0),
            run=asked.run,
            source={"url": asked.source.url, "id": asked.source.header.id},
            local_operator=asked.operator.name,
            singular=asked.rule.needs_kernels,
            loops=asked.loops,
            compress=asked.compress,
            report=report,
        )
        self.tell(
            f"{report['tasks_done']} tasks run, {report['tasks_found']} reused, in "
            f"{report['seconds']:.1f} s; about {amount(report['estimate']['bytes_moved'])} moved\n"
            f"{sheaf}"
        )
        return StoredCoarsening(sheaf, asked.source)

    def tell(self, text: str) -> None:
        """Print a message if progress is shown."""
        if self.progress:
            print(text, file=sys.stderr)
