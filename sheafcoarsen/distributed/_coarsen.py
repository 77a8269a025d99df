"""Coarsens a store into a store: plan, split, shards, borders, seal."""

import os
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm

from sheafcoarsen._kernels import distributed as kernels
from sheafcoarsen._support import bar, flag, offsets, range_of_blocks
from sheafcoarsen.distributed import tasks
from sheafcoarsen.distributed._estimate import (
    Estimate,
    Request,
    check_memory,
    checked,
    planned,
)
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, amount
from sheafcoarsen.distributed._write_store import new_group, seal
from sheafcoarsen.distributed.arrays import (
    VERSION,
    Root,
    get_arrays,
    put_arrays,
    read_array,
    write_array,
)
from sheafcoarsen.distributed.executors import Engine
from sheafcoarsen.distributed.header import FORMAT, found_attributes, header_of
from sheafcoarsen.distributed.location import Place, fresh_name, place_of
from sheafcoarsen.distributed.streaming_operators import cluster_values
from sheafcoarsen.distributed.write_lock import exclusive
from sheafcoarsen.modes import (
    LocalOperatorLike,
    Whole,
    check_dense,
    warn_if_empty_in,
    warn_if_tied_in,
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
    """Coarsen a stored sheaf into another store, shard by shard: the bits of ``sc.coarsen``.

    The same call goes on with an ``out`` that it left unfinished, whatever ended it, and does no
    finished task again; it returns one that is finished. Only the topology is in memory here, and
    one shard in a task.

    Parameters
    ----------
    src : SheafStore
    out : path or address
        Location of the result, which must not exist, unless left by an unfinished identical call.
    P : Partition, PartitionStore, or labels of shape (n,)
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        A rule that looks at all clusters takes one more pass over the maps.
    local_operator : {"internal", "principal"}
        See :func:`sheafcoarsen.local_modes`.
    loops, compress : bool
        See :func:`sheafcoarsen.coarsen`; here edge stalks are compressed by default.
    n_shards : int, optional
        How many shards the clusters are grouped into, which changes no result; by default as many
        as make 64 MB of maps each, or fewer bytes where workers have little memory.
    client : dask.distributed.Client, optional
        Where tasks run, on any cluster whose workers have this library and reach both stores. By
        default here, one after the other, with the library's threads.
    progress : bool
        Tell what it will take, show a bar, and tell what it took.
    storage_options : dict, optional
        What the file system of ``out`` must be told; by default what that of ``src`` was.

    Returns
    -------
    StoredCoarsening

    Raises
    ------
    FileExistsError
        Where something else stands at ``out``.
    BlockingIOError
        Where another run is writing there.
    MemoryError
        Before it starts: a shard, a part or a cluster that is too large for a worker, with what
        would fit.
    StoreError
        A chunk that is missing or damaged, or a store of another version.
    RuntimeError
        A client whose workers lack the library, or do not see the files that this process sees.
    ValueError, TypeError
        Labels that do not match the store, oversampled modes, and what ``sc.coarsen`` refuses.

    Warns
    -----
    TiedModesWarning
        Where the cut between kept and discarded modes splits a multiple eigenvalue.
    SingularProblemWarning
        Where ``ranks.kernel()`` finds no local section: the coarse sheaf then has dimension 0.

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
    asked = checked(src, P, rank, local_operator, n_shards, loops=loops, compress=compress)
    progress = flag("progress", progress)
    place = place_beside(src, out, storage_options)
    if C := finished(place, asked):
        return C
    engine = Engine(client, asked.run)
    C = made_once(place, asked, lambda root: Run(asked, root, engine, progress).done())
    stacklevel = 3
    warn_if_tied_in(int(C.report.get("tied", 0)), stacklevel)
    if asked.rule.needs_kernels:
        real = np.zeros(0, src.dtype).real.dtype
        following = cluster_values(C.sheaf, "next_eigenvalues", real)
        warn_if_empty_in(src.dim_c0, C.ranks, following, stacklevel)
    return C


def place_beside(src: SheafStore, out: object, options: dict[str, Any] | None) -> Place:
    """Return the location of a result, by default with the storage options of ``src``."""
    place = place_of(out, {}, "out")
    if options is None:
        same = (place.local_path is None) == (src.place.local_path is None)
        options = src.place.options if same else {}
    if place.url == src.url:
        raise FileExistsError(f"`out` = {place.url} is the source: give another path")
    if folder_of(place).startswith(folder_of(src.place)):
        raise ValueError(
            f"`out` = {place.url} is inside the source {src.url} and would be removed with it: "
            f"give another path"
        )
    return place_of(out, options, "out")


def folder_of(place: Place) -> str:
    """Return the resolved address of a folder, which is a prefix of all addresses in it."""
    path = place.local_path
    return (place.url if path is None else os.path.realpath(path)).rstrip("/") + "/"


def made_once(
    place: Place, asked: Request, make: Callable[[Root], StoredCoarsening]
) -> StoredCoarsening:
    """Return the requested coarsening, made under an exclusive lock."""
    claim(place, asked, check_only=True)
    with exclusive(place / "work/lock"):
        if C := finished(place, asked):  # by a run that this one has waited for
            return C
        root = Root(place, claim(place, asked))
        try:
            C = make(root)
        except (MemoryError, ValueError, TypeError):
            if (place / "work/plan.json").read_note() is None:  # refused before it began
                (place / "work").remove()
            raise
    (place / "work").remove()
    return C


def finished(place: Place, asked: Request) -> StoredCoarsening | None:
    """Return the coarsening stored at a location, if it is the requested one."""
    attributes = found_attributes(place)
    if attributes is None or attributes.get("format") != FORMAT:
        return None
    if header_of(place).run != asked.run:
        raise FileExistsError(
            f"{place.url} exists and is the result of another call: remove it, or give another path"
        )
    return StoredCoarsening(SheafStore(place), asked.source)


def claim(place: Place, asked: Request, *, check_only: bool = False) -> str:
    """Mark a place as this call's, or refuse one that holds anything else.

    Returns the id of the store that is written there.
    """
    note = place / "work/claim.json"
    held = note.read_note()
    if held is not None and (held.get("run"), held.get("version")) == (asked.run, VERSION):
        return str(held.get("id"))
    names = set(place.names())
    work = [name for name in (place / "work").names() if not name.startswith("lock")]
    if held is not None or names - {"work"} or work:
        what = "holds an unfinished run of another call" if held else "exists and is another's"
        raise FileExistsError(f"{place.url} {what}: remove it, or give another path")
    found = uuid.uuid4().hex
    if not check_only:
        note.note({"run": asked.run, "version": VERSION, "id": found})
    return found


@dataclass(frozen=True)
class RunPlan:
    """Part of a plan that the driver needs, also when a run is resumed."""

    shards: int
    providers: list[list[int]]  # the shards whose rows of R each border needs
    reducing: bool
    tallest: int
    ranks: str | None  # the blob that holds them; None: the rule must see spectra
    estimate: Estimate


class Run:
    """One run, from the plan to the seal."""

    def __init__(self, asked: Request, root: Root, engine: Engine, progress: bool) -> None:
        self.asked, self.root, self.engine, self.progress = asked, root, engine, progress
        self.place, self.work = root.place, root.place / "work"
        self.start = time.perf_counter()
        self.plan_seconds = 0.0
        self.counts = {"done": 0, "found": 0}

    def done(self) -> StoredCoarsening:
        """Run the remaining tasks and return the result."""
        plan = self.plan()
        self.plan_seconds = time.perf_counter() - self.start
        S, P = plan.shards, len(self.asked.source.parts)
        job = tasks.Job(
            source=self.asked.source.root,
            out=self.root,
            run=self.asked.run,
            operator=self.asked.operator,
            rule=self.asked.rule if plan.ranks is None else None,
            singular=self.asked.rule.needs_kernels,
            loops=self.asked.loops,
            compress=self.asked.compress,
            whole=Whole(plan.reducing, False, plan.tallest),
            threads=self.engine.threads,
        )
        self.engine.check_seen(self.work / "plan.json")
        borders = [s for s in range(S) if plan.providers[s]]
        total = P + S * (1 + (plan.ranks is None)) + len(borders)
        with bar(total, "coarsen", self.progress) as shown:
            split = self.all_of("split", tasks.split_task, job, [(p,) for p in range(P)], shown)
            buckets = tasks.write_buckets(job, split)
            ranks = plan.ranks
            if ranks is None:
                arguments = [(s, buckets) for s in range(S)]
                spectra = self.all_of("spectra", tasks.spectra_task, job, arguments, shown)
                ranks = self.chosen(spectra)
            starting = self.engine.start
            shards = [
                starting("shard", s, tasks.shard_task, job, s, buckets, ranks) for s in range(S)
            ]
            at_borders = [
                starting(
                    "border",
                    s,
                    tasks.border_task,
                    job,
                    s,
                    buckets,
                    ranks,
                    [shards[t] for t in plan.providers[s]],
                )
                for s in borders
            ]
            results = self.counted(self.engine.results([*shards, *at_borders], shown))
        return self.sealed(plan, ranks, results[:S], results[S:])

    def all_of(
        self, kind: str, task: tasks.Task, job: tasks.Job, arguments: list, shown: tqdm.tqdm
    ) -> list[dict[str, Any]]:
        """Run tasks that depend on no other."""
        started = [self.engine.start(kind, inputs[0], task, job, *inputs) for inputs in arguments]
        return self.counted(self.engine.results(started, shown))

    def counted(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Count which tasks were done now and which had been done before."""
        found = sum(result.get("found", False) for result in results)
        self.counts["found"] += found
        self.counts["done"] += len(results) - found
        return results

    # ------------------------------------------------------------ the plan

    def plan(self) -> RunPlan:
        """Return the plan of an earlier run, or make one."""
        note = self.work / "plan.json"
        known = note.read_note()
        if known is None:
            plan = self.new_plan()
            note.note(asdict(plan))
            return plan
        plan = RunPlan(**{**known, "estimate": Estimate(**known["estimate"])})
        wanted = self.asked.n_shards
        if wanted is not None and min(wanted, max(self.asked.P.n_clusters, 1)) != plan.shards:
            raise FileExistsError(
                f"{self.place.url} holds an unfinished run of this call with {plan.shards} "
                f"shards: leave `n_shards` out to go on with it, or remove it"
            )
        check_memory(plan.estimate, self.engine.memory, self.engine.where)
        self.tell(f"going on with {self.place.url}\n{plan.estimate}")
        return plan

    def new_plan(self) -> RunPlan:
        """Decide where everything goes, and write it for the tasks."""
        asked = self.asked
        plan, found = planned(asked, self.engine.memory, self.engine.at_once)
        check_memory(found, self.engine.memory, self.engine.where)
        needs_spectra = asked.rule.needs_scores or asked.rule.needs_kernels
        if needs_spectra:
            check_dense(plan.dims, "a rule that looks at whole spectra")
        self.tell(str(found))
        providers = plan.write(self.work / "plan")
        tallest = kernels.tallest_crossing(plan.edges, plan.labels, plan.edge_dims)
        whole = Whole.of(plan.dims, None, int(tallest))
        put_arrays(self.work / "plan/dims", {"dims": plan.dims})
        ranks = None
        if not needs_spectra:
            nothing = np.zeros(0)
            K = len(plan.dims)
            spectra = Spectra(
                plan.dims, np.zeros(K + 1, np.int64), nothing, np.zeros(K, np.int64), nothing
            )
            ranks = self.write_ranks(plan.dims, asked.rule.ranks(spectra))
        return RunPlan(
            shards=plan.n_shards,
            providers=providers,
            reducing=whole.spectra,
            tallest=whole.tallest,
            ranks=ranks,
            estimate=found,
        )

    def write_ranks(self, dims: np.ndarray, ranks: np.ndarray) -> str:
        """Write the ranks of all clusters; return the name of the blob."""
        name = fresh_name("ranks")
        reducing = Whole.of(dims, ranks, 0).modes
        put_arrays(self.work / name, {"ranks": ranks, "reducing": np.array([reducing])})
        return name

    def chosen(self, results: list[dict[str, Any]]) -> str:
        """Let the rule choose from the spectra of all shards, put together."""
        dims = get_arrays(self.work / "plan/dims")["dims"]
        K, starts = len(dims), offsets(dims)
        count = int(starts[-1]) if self.asked.rule.needs_scores else 0
        real = np.zeros(0, self.asked.source.dtype).real.dtype
        scores, ties, found = np.zeros(count, real), np.zeros(count), np.zeros(K, np.int64)
        for result in results:
            arrays = get_arrays(self.work / result["name"])
            clusters = arrays["clusters"]
            found[clusters] = arrays["kernels"]
            if count:
                places = range_of_blocks(starts, clusters)
                scores[places], ties[places] = arrays["scores"], arrays["ties"]
        ranks = self.asked.rule.ranks(Spectra(dims, starts, scores, found, ties))
        return self.write_ranks(dims, ranks)

    # ------------------------------------------------------------ the result

    def sealed(
        self,
        plan: RunPlan,
        ranks_name: str,
        shards: list[dict[str, Any]],
        borders: list[dict[str, Any]],
    ) -> StoredCoarsening:
        """Put the parts' topology together, in the order of the library, and write it last."""
        ranks = get_arrays(self.work / ranks_name)["ranks"]
        parts = [result for result in [*shards, *borders] if result["n_edges"]]
        edges_, dims_ = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)]
        for part in parts:
            folder, count = f"parts/{part['name']}", part["n_edges"]
            edges_.append(read_array(self.root, f"{folder}/edges", None, (count, 2)))
            dims_.append(read_array(self.root, f"{folder}/edge_dims", None, (count,)))
        edges, edge_dims = np.concatenate(edges_), np.concatenate(dims_)
        order = np.lexsort((edges[:, 1], edges[:, 0], edges[:, 0] == edges[:, 1]))
        numbers = np.empty_like(order)
        numbers[order] = np.arange(len(order))
        part_ptr = offsets([part["n_edges"] for part in parts])
        new_group(self.place / "basis")
        write_array(self.root, "labels", self.asked.P.labels)
        seconds = time.perf_counter() - self.start
        report = {
            "seconds": seconds,
            "plan_seconds": self.plan_seconds,
            "shards": plan.shards,
            "tasks_done": self.counts["done"],
            "tasks_found": self.counts["found"],
            "task_seconds": {
                "shard": sum(result["seconds"] for result in shards),
                "border": sum(result["seconds"] for result in borders),
            },
            "halo_bytes": sum(result["halo"] for result in shards),
            "tied": sum(result["tied"] for result in shards),
            "estimate": asdict(plan.estimate),
        }
        asked = self.asked
        dtype = np.dtype(next((part["dtype"] for part in parts), asked.source.dtype.str))
        names = {
            "parts": [part["name"] for part in parts],
            "basis": [result["name"] for result in shards],
        }
        self.remove_orphans(names)
        sheaf = seal(
            self.root,
            (edges[order], ranks, edge_dims[order]),
            part_ptr,
            numbers,
            **names,
            kind="coarsening",
            dtype=dtype.str,
            n_bytes=sum(part["bytes"] for part in parts),
            largest_entry=max((part["largest_entry"] for part in parts), default=0.0),
            run=asked.run,
            source={"url": asked.source.url, "id": asked.source.header.id},
            local_operator=asked.operator.name,
            singular=asked.rule.needs_kernels,
            loops=asked.loops,
            compress=asked.compress,
            report=report,
        )
        moved = plan.estimate.bytes_moved
        self.tell(
            f"{self.counts['done']} tasks done, {self.counts['found']} found done, in "
            f"{seconds:.1f} s; about {amount(moved)} moved\n{sheaf}"
        )
        return StoredCoarsening(sheaf, asked.source)

    def remove_orphans(self, used: dict[str, list[str]]) -> None:
        """Remove files of tasks that ran twice or were killed."""
        for folder, names in used.items():
            for name in set((self.place / folder).names()) - {*names, "zarr.json"}:
                (self.place / f"{folder}/{name}").remove()

    def tell(self, text: str) -> None:
        """Print a message, if progress is shown."""
        if self.progress:
            print(text, file=sys.stderr)
