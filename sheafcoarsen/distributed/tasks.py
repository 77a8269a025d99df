"""The kinds of task: split a part of the source, compute spectra, coarsen a shard or a border.

Each task reads one blob of the plan, writes files with unique names, and then writes its note. A
task whose note exists does nothing, so a task may be run again after a crash, or twice at the same
time. A shard is a sheaf, and is processed like a sheaf in memory.
"""

import functools
import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sheafcoarsen._kernels import distributed as kernels
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import blocks, eps_of, offsets, range_of_blocks, read_only, thread_limit
from sheafcoarsen.coarsening import realize, realized
from sheafcoarsen.distributed._open_store import ENDS, SheafStore
from sheafcoarsen.distributed._write_store import write_basis, write_part
from sheafcoarsen.distributed.location import (
    Place,
    StoreError,
    checksum,
    fresh_name,
    without_checksum,
)
from sheafcoarsen.distributed.plan import sorted_by
from sheafcoarsen.distributed.schema import Root, get_arrays, put_arrays
from sheafcoarsen.modes import LocalOperator, Prolongation, Whole, block_layout, local_problems
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


@dataclass(frozen=True)
class Job:
    """Locations and options that all tasks of a run have in common."""

    source: Root
    out: Root
    run: str  # fingerprint of source, partition and options
    operator: LocalOperator
    rule: Rule | None  # None if ranks do not depend on spectra
    singular: bool
    loops: bool
    compress: bool
    whole: Whole  # decisions made for the full sheaf: shards then give the same bits as in memory
    threads: int | None = None  # number of threads that a task may use; None: all

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


Task = Callable[..., dict[str, Any]]


def once(work: Task) -> Task:
    """Decorate a task, so that it does nothing if it has already left a note for this run."""
    kind = work.__name__.removesuffix("_task")

    @functools.wraps(work)  # keeps the name by which workers import the task
    def task(job: Job, i: int, *inputs: Any) -> dict[str, Any]:
        note = job.work / f"notes/{kind}-{i:06d}.json"
        done = note.read_note()
        if done is not None and done.get("run") == job.run:
            return {**done, "found": True}
        start = time.perf_counter()
        with thread_limit(job.threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the driver warns about the full result
            try:
                result = work(job, i, *inputs)
            except np.linalg.LinAlgError as error:
                message = f"{kind} {i}, in which clusters are numbered separately: {error}"
                raise type(error)(message) from error
        result = {**result, "run": job.run, "seconds": time.perf_counter() - start}
        note.note(result)
        return result

    return task


# ---------------------------------------------------------------- shuffle


def copy_maps(
    data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, to: np.ndarray, out: np.ndarray
) -> None:
    """Copy maps of some ``sizes`` from ``starts`` in ``data`` to positions ``to`` in ``out``."""
    words = data.itemsize // 4  # copied as integers, so that one kernel serves all scalar types
    flat = data.view(np.int32), starts * words, sizes * words, to * words, out.view(np.int32)
    kernels.copy_blocks(*flat)


@once
def split_task(job: Job, p: int) -> dict[str, Any]:
    """Write one bucket file with the maps of a part of the source, sorted by destination."""
    store = job.opened()
    told = get_arrays(job.work / f"plan/split-{p:06d}")
    order, ptr = sorted_by(told["dest"], len(told["starts"]) - 1)
    edges = np.concatenate([np.arange(len(told["tails"])), told["copied"]])[order]
    bucket = np.empty(int(told["starts"][-1]), store.dtype)
    begin = told["starts"][:-1].copy()
    for end in ENDS:  # only the maps of one end are in memory at a time
        sizes = told[f"{end}s"].astype(np.int64)
        where = offsets(sizes)
        total = offsets(sizes[edges])
        to = total[:-1] + np.repeat(begin - total[ptr[:-1]], np.diff(ptr))
        maps = store.maps_at(p, end, int(where[-1]))
        copy_maps(maps, where[edges], sizes[edges], to, bucket)
        begin += np.diff(total[ptr])
        del maps
    name = fresh_name(f"{p:06d}")
    raw, bounds = bucket.view(np.uint8), (told["starts"] * bucket.itemsize).tolist()
    pieces: list[Any] = []
    for d, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        pieces += [raw[lo:hi], checksum(raw[lo:hi], f"{name}/{d}")]
    (job.work / f"buckets/{name}").put(*pieces)
    return {"name": name, "bytes": bucket.nbytes}


def local_sheaf(
    job: Job, told: dict[str, np.ndarray], buckets: str
) -> tuple[CellularSheaf, Partition, np.ndarray]:
    """Return a shard or a border as a sheaf, its partition, and the indices of its clusters."""
    dtype = job.opened().dtype
    names = get_arrays(job.work / buckets)["names"][told["parts"]].tolist()
    sizes = (told["tails"] + told["heads"]) * dtype.itemsize
    # in a bucket, a checksum of 4 bytes follows the maps for each destination
    begin = told["starts"] * dtype.itemsize + 4 * told["destinations"]
    folder = job.work / "buckets"
    pieces = folder.slices(names, begin.tolist(), (begin + sizes + 4).tolist())
    tails, heads = [np.zeros(0, dtype)], [np.zeros(0, dtype)]
    destinations, n_tails = told["destinations"].tolist(), told["tails"].tolist()
    for name, d, n, raw in zip(names, destinations, n_tails, pieces, strict=True):
        body = without_checksum(raw, f"{folder.url}/{name}", f"{name}/{d}")
        values = np.frombuffer(body, dtype)
        tails.append(values[:n])
        heads.append(values[n:])
    data = [read_only(np.concatenate(values)) for values in (tails, heads)]
    dims, edge_dims = told["dims"].astype(np.int64), told["edge_dims"].astype(np.int64)
    edges, sequence = told["ends"].astype(np.int64), told["sequence"]
    for end in (0, 1) if len(sequence) else ():
        sizes = edge_dims * dims[edges[:, end]]
        read = np.empty_like(sizes)  # sizes of the maps in reading order
        read[sequence] = sizes
        held, data[end] = data[end], np.empty_like(data[end])
        copy_maps(held, offsets(read)[sequence], sizes, offsets(sizes)[:-1], data[end])
    sheaf = trusted_sheaf(edges, dims, edge_dims, data[0], data[1])
    return sheaf, Partition(told["labels"]), told["clusters"].astype(np.int64)


# ---------------------------------------------------------------- shards


class Shard:
    """Shard with its local problems; for principal modes, with ghost vertices of other shards."""

    def __init__(self, job: Job, s: int, buckets: str) -> None:
        self.told = get_arrays(job.work / f"plan/shard-{s:06d}")
        self.sheaf, self.P, clusters = local_sheaf(job, self.told, buckets)
        # clusters, except those of ghosts
        self.own = np.unique(self.P.labels[: len(self.told["vertices"])])
        self.clusters = clusters[self.own]
        index = job.operator.index(self.sheaf, clusters_of(self.sheaf, self.P))
        self.problems = local_problems(self.sheaf, self.P, index, job.operator)


def prolongation(
    sheaf: CellularSheaf, P: Partition, ranks: np.ndarray, data: np.ndarray
) -> Prolongation:
    """Return the prolongation R of a sheaf and a partition with given ranks and entries."""
    clusters = clusters_of(sheaf, P)
    return Prolongation(sheaf, clusters, ranks, *block_layout(sheaf, clusters, ranks), data)


@once
def spectra_task(job: Job, s: int, buckets: str) -> dict[str, Any]:
    """Write the spectra of a shard's clusters, which the driver will combine."""
    shard, rule = Shard(job, s, buckets), job.rule
    assert rule is not None
    shard.problems.whole = job.whole
    spectra = shard.problems.spectra(rule)
    seen = range_of_blocks(spectra.starts, shard.own) if rule.needs_scores else slice(0)
    arrays = {
        "clusters": shard.clusters,
        "scores": spectra.scores[seen],
        "ties": spectra.ties[seen],
        "kernels": spectra.kernels[shard.own],
    }
    name = fresh_name(f"spectra-{s:06d}")
    put_arrays(job.work / name, arrays)
    return {"name": name}


@once
def shard_task(job: Job, s: int, buckets: str, ranks: str) -> dict[str, Any]:
    """Write modes, crossing edges and loops of a shard, and the rows of R that borders need."""
    shard, chosen = Shard(job, s, buckets), get_arrays(job.work / ranks)
    own, told, sheaf, P = shard.own, shard.told, shard.sheaf, shard.P
    shard.problems.whole = job.whole._replace(modes=bool(chosen["reducing"]))
    here = np.zeros(P.n_clusters, np.int64)  # ghosts have rank 0
    here[own] = chosen["ranks"][shard.clusters]
    modes = shard.problems.modes(here, singular=job.singular)
    R, n_own = modes.R, len(told["vertices"])
    if n_own < sheaf.n_vertices:  # R on the shard's own vertices
        P = Partition(np.searchsorted(own, P.labels[:n_own]))
        R = prolongation(sheaf.subsheaf(np.arange(n_own)), P, here[own], R.data)
    coarse = realized(R, P, modes, loops=job.loops, compress=job.compress).sheaf
    name = fresh_name(f"inner-{s:06d}")
    result = write_coarse(job, name, shard.clusters, coarse)
    write_basis(job.out, name, told["vertices"], shard.clusters, R.data, modes, own)
    row_ptr, halo = R.indptr[R.sheaf.vertex_offsets].astype(np.int64), 0
    for k, border in enumerate(told["consumers"].tolist()):
        rows = told["supply"][told["supply_ptr"][k] : told["supply_ptr"][k + 1]]
        supplied = blocks(R.data, row_ptr, rows)
        put_arrays(job.work / f"halo/{name}-{border}", {"R": supplied})
        halo += supplied.nbytes
    masks = {"tied": modes.tied, "discards_zero": modes._discards_zero}
    counts = {name: int(mask[own].sum()) for name, mask in masks.items()}
    return {**result, **counts, "halo": halo}


def write_coarse(
    job: Job, name: str, clusters: np.ndarray, coarse: CellularSheaf
) -> dict[str, Any]:
    """Write a part of the coarse store, and the topology of the part."""
    write_part(job.out, name, coarse.tail_data, coarse.head_data)
    topology = {"edges": clusters[coarse.edges], "edge_dims": coarse.edge_dims}
    put_arrays(job.work / f"topology/{name}", topology)
    largest = max(scan(values)[1] for values in (coarse.tail_data, coarse.head_data))
    return {"name": name, "n_edges": coarse.n_edges, "largest_entry": largest}


# ---------------------------------------------------------------- borders


@once
def border_task(
    job: Job, s: int, buckets: str, ranks: str, shards: list[dict[str, Any]]
) -> dict[str, Any]:
    """Write the coarse edges of a shard's border: fine maps times the rows of R at both ends."""
    told = get_arrays(job.work / f"plan/border-{s:06d}")
    sheaf, P, clusters = local_sheaf(job, told, buckets)
    here = get_arrays(job.work / ranks)["ranks"][clusters]
    data = [get_arrays(job.work / f"halo/{shard['name']}-{s}")["R"] for shard in shards]
    R = prolongation(sheaf, P, here, np.concatenate(data))
    # use the dimensions of whole clusters, of which a border holds only some vertices
    noise = eps_of(sheaf.dtype) * told["sizes"]
    coarse = realize(R, None, compress=job.compress, noise=noise)
    return write_coarse(job, fresh_name(f"border-{s:06d}"), clusters, coarse)
