"""The kinds of task: split a part of the source, compute spectra, coarsen a shard or a border.

Each task reads one record of the plan, writes files with unique names, and then its own record. A
task whose record exists does nothing, so a task may be run again after a crash, or twice at the
same time. A shard is a sheaf, and is processed like a sheaf in memory. An `Engine` runs tasks on
the workers of a Dask client, or one by one in this process.
"""

import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from sheafcoarsen._kernels.arrays import copy_blocks
from sheafcoarsen._support import checks, ragged, threads, warned
from sheafcoarsen.coarsening import realize, realized, rounding_noise
from sheafcoarsen.distributed._open_store import ENDS, SheafStore
from sheafcoarsen.distributed._write_store import write_basis, write_part
from sheafcoarsen.distributed.location import (
    Place,
    StoreError,
    checksum,
    fresh_name,
    optional,
    without_checksum,
)
from sheafcoarsen.distributed.schema import Root
from sheafcoarsen.modes import LocalOperator, Prolongation, Whole, block_layout, local_problems
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


@dataclass(frozen=True)
class Job:
    """Locations and options that all tasks of a run have in common."""

    source: Root
    out: Root
    run: str  # fingerprint of source, partition and options, and the number of shards
    operator: LocalOperator
    rule: Rule | None  # None if ranks do not depend on spectra
    singular: bool
    loops: bool
    compress: bool
    whole: Whole  # decisions made for the full sheaf: shards then give the same bits as in memory
    threads: int | None = None  # number of threads that a task may use; None: all
    buckets: str = ""  # record with the name of each part's bucket, once all are written
    ranks: str = ""  # record with the ranks, once they are chosen

    @property
    def work(self) -> Place:
        """Location of temporary files, which are removed at the end of the run."""
        return self.out.place / "work"

    def opened(self) -> SheafStore:
        """Open the source, and check that it was not written again since the run was planned."""
        store = SheafStore(self.source.place)
        if store.header.id != self.source.id:
            raise StoreError(f"{store.url} has been written again since it was opened")
        return store


Record = dict[str, Any]
"""Arrays and JSON values."""


def once(work: Callable[..., Record]) -> Callable[..., Record]:
    """Decorate a task, so that it does nothing if it has already left a record for this run.

    The decorated task returns the values of the record without its arrays, and its file.
    """
    kind = work.__name__.removesuffix("_task")

    @functools.wraps(work)  # keeps the name by which workers import the task
    def task(job: Job, i: int, *inputs: Any) -> Record:
        name = f"notes/{kind}-{i:06d}"
        done = (job.work / name).find_record()
        found = done is not None and done["run"] == job.run
        if done is None or not found:
            start = time.perf_counter()
            # the driver warns about the full result
            with threads.thread_limit(job.threads), warned.collected():
                try:
                    done = work(job, i, *inputs)
                except np.linalg.LinAlgError as error:
                    message = f"{kind} {i}, in which clusters are numbered separately: {error}"
                    raise type(error)(message) from error
            done |= {"run": job.run, "seconds": time.perf_counter() - start}
            (job.work / name).put_record(**done)
        values = {key: v for key, v in done.items() if not isinstance(v, np.ndarray)}
        return {**values, "record": name, "found": found}

    return task


# ---------------------------------------------------------------- shuffle


def copy_maps(
    data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, to: np.ndarray, out: np.ndarray
) -> None:
    """Copy maps of given sizes from positions ``starts`` of ``data`` to ``to`` of ``out``."""
    words = data.itemsize // 4  # copied as integers, so that one kernel serves all scalar types
    flat = data.view(np.int32), starts * words, sizes * words, to * words, out.view(np.int32)
    copy_blocks(*flat)


@once
def split_task(job: Job, p: int) -> Record:
    """Write one bucket file with the maps of a part of the source, sorted by destination."""
    store = job.opened()
    told = (job.work / f"plan/split-{p:06d}").record()
    order = np.argsort(told["dest"], kind="stable")
    edges = np.concatenate([np.arange(len(told["tails"])), told["copied"]])[order]
    bucket = np.empty(int(told["starts"][-1]), store.dtype)
    sizes = [told[f"{end}s"].astype(np.int64) for end in ENDS]
    to = ragged.offsets((sizes[0] + sizes[1])[edges])[:-1]
    for end, size in zip(ENDS, sizes, strict=True):
        where = ragged.offsets(size)
        maps = store.maps_at(p, end, int(where[-1]))
        copy_maps(maps, where[edges], size[edges], to, bucket)
        to = to + size[edges]
        del maps  # only the maps of one end are in memory at a time
    name = fresh_name(f"{p:06d}")
    raw, bounds = bucket.view(np.uint8), (told["starts"] * bucket.itemsize).tolist()
    pieces: list[Any] = []
    for d, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        pieces += [raw[lo:hi], checksum(raw[lo:hi], f"{name}/{d}")]
    (job.work / f"buckets/{name}").put(*pieces)
    return {"name": name}


def maps_read(job: Job, told: Record) -> np.ndarray:
    """Return the maps that a task reads from buckets, edge by edge in reading order."""
    folder, dtype = job.work / "buckets", job.opened().dtype
    names = (job.work / job.buckets).record()["names"][told["parts"]].tolist()
    # in a bucket, a checksum of 4 bytes follows the maps for each destination
    begin = told["starts"] * dtype.itemsize + 4 * told["destinations"]
    end = begin + told["sizes"] * dtype.itemsize + 4
    pieces = folder.slices(names, begin.tolist(), end.tolist())
    maps = [np.zeros(0, dtype)]
    for name, d, raw in zip(names, told["destinations"].tolist(), pieces, strict=True):
        body = without_checksum(raw, f"{folder.url}/{name}", f"{name}/{d}")
        maps.append(np.frombuffer(body, dtype))
    return np.concatenate(maps)


def local_sheaf(job: Job, told: Record) -> tuple[CellularSheaf, Partition, np.ndarray]:
    """Return a shard or a border as a sheaf, its partition, and the indices of its clusters."""
    maps = maps_read(job, told)
    sequence = told["sequence"] if len(told["sequence"]) else slice(None)
    dims, edge_dims = told["dims"].astype(np.int64), told["edge_dims"].astype(np.int64)
    edges = told["ends"].astype(np.int64)
    sizes = edge_dims[:, None] * dims[edges]  # of the tail map and the head map
    read = np.empty(len(edges), np.int64)  # sizes of both in reading order
    read[sequence] = sizes.sum(axis=1)
    begin, data = ragged.offsets(read)[:-1][sequence], []
    for size in sizes.T:
        to = ragged.offsets(size)
        data.append(np.empty(int(to[-1]), maps.dtype))
        copy_maps(maps, begin, size, to[:-1], data[-1])
        begin = begin + size
    sheaf = trusted_sheaf(
        edges, dims, edge_dims, ragged.read_only(data[0]), ragged.read_only(data[1])
    )
    return sheaf, Partition(told["labels"]), told["clusters"].astype(np.int64)


# ---------------------------------------------------------------- shards


def shard_of(job: Job, s: int) -> tuple[Record, Any, np.ndarray, np.ndarray]:
    """Return a shard's input, its local problems, and its clusters, as numbered there and globally.

    For principal modes, the problems include clusters of ghost vertices of other shards.
    """
    told = (job.work / f"plan/shard-{s:06d}").record()
    sheaf, P, clusters = local_sheaf(job, told)
    index = job.operator.index(sheaf, clusters_of(sheaf, P))
    problems = local_problems(sheaf, P, index, job.operator)
    problems.whole = job.whole
    own = np.unique(P.labels[: told["n_own"]])
    return told, problems, own, clusters[own]


def prolongation(
    sheaf: CellularSheaf, P: Partition, ranks: np.ndarray, data: np.ndarray
) -> Prolongation:
    """Return the prolongation R of a sheaf and a partition with given ranks and entries."""
    clusters = clusters_of(sheaf, P)
    return Prolongation(sheaf, clusters, ranks, *block_layout(sheaf, clusters, ranks), data)


@once
def spectra_task(job: Job, s: int) -> Record:
    """Compute the spectra of a shard's clusters, which the driver will combine."""
    (_, problems, own, clusters), rule = shard_of(job, s), job.rule
    assert rule is not None
    spectra = problems.spectra(rule)
    seen = ragged.range_of_blocks(spectra.starts, own) if rule.needs_scores else slice(0)
    return {
        "clusters": clusters,
        "scores": spectra.scores[seen],
        "ties": spectra.ties[seen],
        "kernels": spectra.kernels[own],
    }


@once
def shard_task(job: Job, s: int) -> Record:
    """Write modes, crossing edges and loops of a shard, and the rows of R that borders need."""
    told, problems, own, clusters = shard_of(job, s)
    sheaf, P = problems.sheaf, problems.partition
    here = np.zeros(P.n_clusters, np.int64)  # ghosts have rank 0
    here[own] = (job.work / job.ranks).record()["ranks"][clusters]
    modes = problems.modes(here, singular=job.singular)
    R, n_own = modes.R, told["n_own"]
    if n_own < sheaf.n_vertices:  # R on the shard's own vertices
        P = Partition(np.searchsorted(own, P.labels[:n_own]))
        R = prolongation(sheaf.subsheaf(np.arange(n_own)), P, here[own], R.data)
    coarse = realized(R, P, modes, loops=job.loops, compress=job.compress).sheaf
    name = fresh_name(f"inner-{s:06d}")
    record = write_coarse(job, name, clusters, coarse)
    write_basis(job.out, name, clusters, R.data, modes, own)
    row_ptr, halo = R.indptr[R.sheaf.vertex_offsets].astype(np.int64), 0
    for border in told["borders"]:
        supplied = ragged.blocks(R.data, row_ptr, told[f"rows-{border}"])
        (job.work / f"halo/{name}-{border}").put_record(R=supplied)
        halo += supplied.nbytes
    masks = {"tied": modes.tied, "discards_zero": modes._discards_zero}
    counts = {name: int(mask[own].sum()) for name, mask in masks.items()}
    return {**record, **counts, "halo": halo}


def write_coarse(job: Job, name: str, clusters: np.ndarray, coarse: CellularSheaf) -> Record:
    """Write a part of the coarse store, and return its name and topology."""
    write_part(job.out, name, coarse.tail_data, coarse.head_data)
    return {
        "name": name,
        "edges": clusters[coarse.edges],
        "edge_dims": coarse.edge_dims,
        "largest_entry": coarse.largest_entry,
    }


# ---------------------------------------------------------------- borders


@once
def border_task(job: Job, s: int, shards: list[Record]) -> Record:
    """Write the coarse edges of a shard's border: fine maps times the rows of R at both ends."""
    told = (job.work / f"plan/border-{s:06d}").record()
    sheaf, P, clusters = local_sheaf(job, told)
    here = (job.work / job.ranks).record()["ranks"][clusters]
    data = [(job.work / f"halo/{shard['name']}-{s}").record()["R"] for shard in shards]
    R = prolongation(sheaf, P, here, np.concatenate(data))
    # use the dimensions of whole clusters, of which a border holds only some vertices
    noise = rounding_noise(told["cluster_dims"], sheaf.dtype)
    coarse = realize(R, None, compress=job.compress, noise=noise)
    return write_coarse(job, fresh_name(f"border-{s:06d}"), clusters, coarse)


# ---------------------------------------------------------------- execution


class Engine:
    """Task executor, with the limits of this machine or of one worker thread of a client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.shown = threads.bar(0, "", False)  # one step for each finished task
        self.threads: int | None = None  # None: as many threads as the library may use
        self.memory, self.at_once, self.where = checks.physical_memory(), 1, "this machine has"
        if client is not None:
            check_client(client)
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
            memory = [
                worker["memory_limit"] / max(worker["nthreads"], 1)
                for worker in workers
                if worker["memory_limit"]
            ]
            self.memory = float(min(memory, default=np.inf))
            self.where = "a worker has, for each of its threads,"
            self.threads, self.at_once = 1, max(sum(client.nthreads().values()), 1)

    def start(self, task: Callable, job: Any, i: int, *inputs: Any) -> Any:
        """Run task ``i`` here and return its result, or submit it and return its future.

        Inputs may be lists of what earlier calls returned.
        """
        if self.client is None:
            result = task(job, i, *inputs)
            self.shown.update()
            return result
        kind = task.__name__.removesuffix("_task")  # Dask's dashboard groups tasks by this name
        return self.client.submit(task, job, i, *inputs, key=(f"{kind}-{job.out.id}", i), retries=1)

    def results(self, started: list[Any]) -> list[dict[str, Any]]:
        """Return the results of tasks in their order; if one fails, cancel the others."""
        if self.client is None:
            return started
        try:
            for _ in optional("distributed").as_completed(started):
                self.shown.update()
            return self.client.gather(started)
        except BaseException:
            self.client.cancel(started)
            raise

    def check_seen(self, note: Place) -> None:
        """Raise an error if a worker cannot read a record that this process wrote."""
        found = {} if self.client is None else self.client.run(note.record, on_error="return")
        for address, held in found.items():
            if isinstance(held, Exception):
                raise RuntimeError(
                    f"the worker {address} cannot read {note.url}, which this process has "
                    f"written: both stores must be on a file system that all workers share, or in "
                    f"an object store"
                )


def connect(address: str) -> Any:
    """Return a Dask client of the scheduler at an address."""
    return optional("distributed").Client(address, timeout="20s")


def check_client(client: Any) -> None:
    """Raise an error unless a client is connected and its workers have this library version."""
    if not isinstance(client, optional("distributed").Client):
        raise TypeError(
            f"`client` must be a dask.distributed.Client or None, got {type(client).__name__}"
        )
    if client.asynchronous:
        raise ValueError("`client` is asynchronous: pass a synchronous one, Client(address)")
    if client.status != "running":
        raise ValueError(f"`client` is {client.status}: pass a connected client")
    wanted = version("sheafcoarsen")

    def look() -> str:  # local, hence pickled by value: workers may lack this module
        import importlib

        for name in ("zarr", "fsspec", "sheafcoarsen.distributed"):
            importlib.import_module(name)
        return str(importlib.import_module("sheafcoarsen").__version__)

    found = client.run(look, on_error="return")
    for address, there in sorted(found.items()):
        what = f"has version {there} of sheafcoarsen, but this process has {wanted}"
        if isinstance(there, ImportError):
            what = f"lacks sheafcoarsen or its dependencies; it cannot import it: {there}"
        elif isinstance(there, OSError):  # the worker is not running; Dask continues without it
            continue
        elif isinstance(there, Exception):
            raise there
        if there != wanted:
            others = sum(other != wanted for other in found.values()) - 1
            remedy = f"install sheafcoarsen[distributed] {wanted} on all workers"
            raise RuntimeError(f"the worker {address} (and {others} others) {what}: {remedy}")
