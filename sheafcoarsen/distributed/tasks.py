"""The kinds of task: split a part of the source, look at spectra, coarsen a shard, then a border.

Each reads one blob of the plan, writes under names of its own and then its note. A task that finds
its note does nothing, so that tasks may run twice, at once or after a crash. A shard is a sheaf,
and the library does with it what it does in memory.
"""

import functools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sheafcoarsen._kernels import distributed as kernels
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import offsets, range_of_blocks, ranges, read_only, thread_limit
from sheafcoarsen.coarsening import realize, realized, rounding_of
from sheafcoarsen.distributed._open_store import ENDS, SheafStore
from sheafcoarsen.distributed._write_store import write_basis, write_part
from sheafcoarsen.distributed.arrays import Root, get_arrays, put_arrays, write_array
from sheafcoarsen.distributed.location import Place, StoreError, crc32c, fresh_name
from sheafcoarsen.modes import (
    LocalModes,
    LocalOperator,
    Prolongation,
    Whole,
    block_layout,
    local_problems,
)
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

AT_ONCE, BYTES_AT_ONCE = 16, 8e6
"""Most bucket ranges, and bytes of them, that are in memory while a shard is assembled."""


@dataclass(frozen=True)
class Job:
    """Locations and options that all tasks of a run share."""

    source: Root
    out: Root
    run: str  # fingerprint of source, partition and options
    operator: LocalOperator
    rule: Rule | None  # None where ranks are known beforehand
    singular: bool
    loops: bool
    compress: bool
    whole: Whole  # what a shard must know so that it computes as the whole would
    threads: int | None = None  # that a task may use; None: all

    @property
    def work(self) -> Place:
        """Location of scratch files, removed at the end."""
        return self.out.place / "work"

    def opened(self) -> SheafStore:
        """Return the source, if it is the one that was planned for."""
        store = SheafStore(self.source.place)
        if store.header.id != self.source.id:
            raise StoreError(f"{store.url} has been written again since it was opened")
        return store


class Local(NamedTuple):
    """A shard or a border as a sheaf of its own."""

    sheaf: CellularSheaf
    partition: Partition
    clusters: np.ndarray  # their numbers in the whole


Task = Callable[..., dict[str, Any]]


def once(work: Task) -> Task:
    """Return a task that is not done again where it has left a note of this run."""
    kind = work.__name__.removesuffix("_task")

    @functools.wraps(work)  # by its name it is sent to workers
    def task(job: Job, i: int, *inputs: Any) -> dict[str, Any]:
        note = job.work / f"notes/{kind}-{i:06d}.json"
        done = note.read_note()
        if done is not None and done.get("run") == job.run:
            return {**done, "found": True}
        start = time.perf_counter()
        with thread_limit(job.threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the driver warns, of the whole
            try:
                result = work(job, i, *inputs)
            except np.linalg.LinAlgError as error:
                raise type(error)(f"{kind} {i}, clusters counted in it: {error}") from error
        result = {**result, "run": job.run, "seconds": time.perf_counter() - start}
        note.note(result)
        return result

    return task


# ---------------------------------------------------------------- the shuffle


def machine_words(flat: np.ndarray) -> tuple[np.ndarray, int]:
    """View numbers as integers, so that kernels that copy need not know them, and how many each."""
    if flat.dtype.itemsize % 8:
        return flat.view(np.int32), flat.dtype.itemsize // 4
    return flat.view(np.int64), flat.dtype.itemsize // 8


@once
def split_task(job: Job, p: int) -> dict[str, Any]:
    """Sort the maps of a part of the source by destination into one bucket file."""
    store = job.opened()
    told = get_arrays(job.work / f"plan/split-{p:06d}")
    dest, starts = told["dest"], told["starts"]
    counts = np.zeros(len(starts) - 1, np.int64)
    kernels.count_keys(dest, counts)
    ptr = offsets(counts)
    order = np.empty(len(dest), np.int64)
    kernels.sort_by_keys(dest, ptr[:-1].copy(), order)
    edges = told["entries"][order] if len(told["entries"]) else order
    bucket = np.empty(int(starts[-1]), store.dtype)
    out, _ = machine_words(bucket)
    begin = starts[:-1].copy()
    for end in ENDS:  # one in memory at a time
        sizes = told[f"{end}s"].astype(np.int64)
        where = offsets(sizes)
        maps = store.sized_maps_at(p, end, int(where[-1]))
        lengths = sizes[edges]
        total = offsets(lengths)
        flat, words = machine_words(maps)
        to = total[:-1] + np.repeat(begin - total[ptr[:-1]], counts)
        kernels.copy_blocks(flat, where[edges] * words, lengths * words, to * words, out)
        begin += np.diff(total[ptr])
        del maps, flat
    raw = bucket.view(np.uint8)
    bounds = starts * store.dtype.itemsize
    found = np.flatnonzero(np.diff(starts)).tolist()
    checksums = [crc32c(raw[bounds[d] : bounds[d + 1]]) for d in found]
    name = fresh_name(f"{p:06d}")
    (job.work / f"buckets/{name}").put(raw.data)
    return {"name": name, "bytes": bucket.nbytes, "destinations": found, "checksums": checksums}


class Buckets(NamedTuple):
    """Names of the bucket files of all parts, and the checksums of their ranges."""

    names: list[str]
    checksums: np.ndarray  # (P, D)


def write_buckets(job: Job, results: list[dict[str, Any]]) -> str:
    """Write the names and checksums of all bucket files; return the name of the blob."""
    last = max((d for result in results for d in result["destinations"]), default=-1)
    checksums = np.zeros((len(results), last + 1), np.uint32)
    for row, result in zip(checksums, results, strict=True):
        row[result["destinations"]] = result["checksums"]
    names = "\n".join(result["name"] for result in results)
    name = fresh_name("buckets")
    arrays: dict[str, np.ndarray] = {
        "names": np.frombuffer(names.encode(), np.uint8),
        "checksums": checksums,
    }
    put_arrays(job.work / name, arrays)
    return name


def read_buckets(job: Job, name: str) -> Buckets:
    """Return what `write_buckets` wrote."""
    arrays = get_arrays(job.work / name)
    return Buckets(arrays["names"].tobytes().decode().split("\n"), arrays["checksums"])


def batches(sizes: list[int]) -> Iterator[range]:
    """Yield ranges of at most AT_ONCE sizes and BYTES_AT_ONCE bytes, or of one size."""
    lo, total = 0, 0
    for k, size in enumerate(sizes):
        if k > lo and (k - lo == AT_ONCE or total + size > BYTES_AT_ONCE):
            yield range(lo, k)
            lo, total = k, 0
        total += size
    if lo < len(sizes):
        yield range(lo, len(sizes))


def gathered(
    job: Job, dtype: np.dtype, told: dict[str, np.ndarray], buckets: Buckets
) -> list[np.ndarray]:
    """Read the maps that a shard or a border is to have; return those of tails and of heads."""
    parts, dest = told["parts"].tolist(), told["destinations"].tolist()
    sizes = told["tails"] + told["heads"]
    starts = (told["starts"] * dtype.itemsize).tolist()
    stops = ((told["starts"] + sizes) * dtype.itemsize).tolist()
    data = [np.empty(int(told[end].sum()), dtype) for end in ("tails", "heads")]
    at = [0, 0]
    folder = job.work / "buckets"
    for some in batches((sizes * dtype.itemsize).tolist()):
        names = [buckets.names[parts[k]] for k in some]
        ranges_ = folder.slices(names, [starts[k] for k in some], [stops[k] for k in some])
        for k, name, raw in zip(some, names, ranges_, strict=True):
            if (
                len(raw) != stops[k] - starts[k]
                or crc32c(raw) != buckets.checksums[parts[k], dest[k]]
            ):
                raise StoreError(f"{folder.url}/{name} is damaged: a checksum is wrong")
            values, n_tails = np.frombuffer(raw, dtype), int(told["tails"][k])
            for end, piece in enumerate((values[:n_tails], values[n_tails:])):
                data[end][at[end] : at[end] + len(piece)] = piece
                at[end] += len(piece)
            del raw, values, piece
        del ranges_
    return [read_only(values) for values in data]


def local_sheaf(job: Job, dtype: np.dtype, told: dict[str, np.ndarray], buckets: Buckets) -> Local:
    """Return a shard or a border as a sheaf of its own, edges and clusters in the old order."""
    dims, edge_dims = told["dims"].astype(np.int64), told["edge_dims"].astype(np.int64)
    edges = told["ends"].astype(np.int64)
    data = gathered(job, dtype, told, buckets)
    sequence = told["sequence"]
    if len(sequence):
        for end in (0, 1):
            sizes = edge_dims * dims[edges[:, end]]
            read = np.empty_like(sizes)  # the sizes in the order in which they were read
            read[sequence] = sizes
            flat, words = machine_words(data[end])
            sorted_ = np.empty_like(data[end])
            kernels.copy_blocks(
                flat,
                offsets(read)[sequence] * words,
                sizes * words,
                offsets(sizes)[:-1] * words,
                machine_words(sorted_)[0],
            )
            data[end] = sorted_
    sheaf = trusted_sheaf(edges, dims, edge_dims, data[0], data[1])
    return Local(sheaf, Partition(told["labels"]), told["clusters"].astype(np.int64))


def part_of(sheaf: CellularSheaf, edges: np.ndarray, n_vertices: int) -> CellularSheaf:
    """Return some edges of a sheaf on its first vertices."""
    data = [
        values[range_of_blocks(starts, edges)]
        for values, starts in (
            (sheaf.tail_data, sheaf.tail_offsets),
            (sheaf.head_data, sheaf.head_offsets),
        )
    ]
    dims = sheaf.vertex_dims[:n_vertices].copy()
    return trusted_sheaf(sheaf.edges[edges], dims, sheaf.edge_dims[edges], data[0], data[1])


# ---------------------------------------------------------------- shards


class Shard:
    """A shard with its local problems; with principal modes it has ghosts at its far ends."""

    def __init__(self, job: Job, s: int, buckets: str) -> None:
        self.job, self.told = job, get_arrays(job.work / f"plan/shard-{s:06d}")
        dtype = job.opened().dtype
        self.local = local_sheaf(job, dtype, self.told, read_buckets(job, buckets))
        sheaf, P = self.local.sheaf, self.local.partition
        self.n_own = len(self.told["vertices"])
        self.own = np.unique(P.labels[: self.n_own])  # its clusters among those of ghosts
        clusters = job.operator.index(sheaf, clusters_of(sheaf, P))
        self.problems = local_problems(sheaf, P, clusters, job.operator)

    @property
    def clusters(self) -> np.ndarray:
        """The numbers of its clusters in the whole."""
        return self.local.clusters[self.own]

    def spectra(self) -> dict[str, np.ndarray]:
        """Return the spectra of the shard's clusters, as rules need them."""
        assert self.job.rule is not None
        self.problems.whole = self.job.whole
        spectra = self.problems.spectra(self.job.rule)
        seen = range_of_blocks(spectra.starts, self.own)
        return {
            "clusters": self.clusters,
            "scores": spectra.scores[seen] if len(spectra.scores) else spectra.scores,
            "ties": spectra.ties[seen] if len(spectra.ties) else spectra.ties,
            "kernels": spectra.kernels[self.own],
        }

    def coarsened(
        self, ranks: dict[str, np.ndarray]
    ) -> tuple[LocalModes, Prolongation, CellularSheaf]:
        """Return its modes, R on its own vertices, and its coarse sheaf."""
        job, P = self.job, self.local.partition
        self.problems.whole = job.whole._replace(modes=bool(ranks["reducing"]))
        here = np.zeros(P.n_clusters, np.int64)  # ghosts keep nothing
        here[self.own] = ranks["ranks"][self.clusters]
        modes = self.problems.modes(here, singular=job.singular)
        options: dict[str, Any] = {
            "loops": job.loops,
            "compress": job.compress,
            "tallest": job.whole.tallest,
        }
        if "inner" not in self.told:
            return modes, modes.R, realized(modes.R, P, modes, **options).sheaf
        sheaf = part_of(self.local.sheaf, self.told["inner"], self.n_own)
        P = Partition(np.searchsorted(self.own, P.labels[: self.n_own]))
        clusters = clusters_of(sheaf, P)
        indptr, indices = block_layout(sheaf, clusters, here[self.own])
        R = Prolongation(sheaf, clusters, here[self.own], indptr, indices, modes.R.data)
        return modes, R, realized(R, P, modes, **options).sheaf


@once
def spectra_task(job: Job, s: int, buckets: str) -> dict[str, Any]:
    """Write the spectra of a shard's clusters, which the driver puts together."""
    name = fresh_name(f"spectra-{s:06d}")
    put_arrays(job.work / name, Shard(job, s, buckets).spectra())
    return {"name": name}


@once
def shard_task(job: Job, s: int, buckets: str, ranks: str) -> dict[str, Any]:
    """Write modes, crossing edges and loops of a shard, and the rows of R its neighbours need."""
    shard = Shard(job, s, buckets)
    modes, R, coarse = shard.coarsened(get_arrays(job.work / ranks))
    name = fresh_name(f"inner-{s:06d}")
    result = write_coarse(job, name, shard.clusters, coarse)
    own, vertices = shard.own, shard.told["vertices"]
    write_basis(job.out, name, vertices, shard.clusters, R.data, modes, own)
    # rows of R for each border that needs some, one after the other
    starts = R.sheaf.vertex_offsets
    rows = shard.told["supply"].astype(np.int64)
    begin = R.indptr[starts[rows]].astype(np.int64)
    size = R.indptr[starts[rows + 1]].astype(np.int64) - begin
    halo = R.data[ranges(begin, size)]
    bounds = offsets(size)[shard.told["supply_ptr"]]
    raw = halo.view(np.uint8)
    (job.work / f"halo/{name}").put(raw.data)
    item = halo.dtype.itemsize
    routes = {}
    for k, border in enumerate(shard.told["consumers"].tolist()):
        lo, hi = int(bounds[k]) * item, int(bounds[k + 1]) * item
        routes[str(border)] = [lo, hi, crc32c(raw[lo:hi])]
    return {**result, "tied": int(modes.tied[own].sum()), "routes": routes, "halo": halo.nbytes}


def write_coarse(
    job: Job, name: str, clusters: np.ndarray, coarse: CellularSheaf
) -> dict[str, Any]:
    """Write a part of the coarse store, and the topology that only now is known."""
    write_part(job.out, name, coarse.tail_data, coarse.head_data)
    write_array(job.out, f"parts/{name}/edges", clusters[coarse.edges])
    write_array(job.out, f"parts/{name}/edge_dims", coarse.edge_dims)
    sizes = [scan(values)[1] for values in (coarse.tail_data, coarse.head_data)]
    return {
        "name": name,
        "n_edges": coarse.n_edges,
        "bytes": coarse.tail_data.nbytes + coarse.head_data.nbytes,
        "largest_entry": max(sizes),
        "dtype": coarse.dtype.str,
    }


# ---------------------------------------------------------------- borders


@once
def border_task(
    job: Job, s: int, buckets: str, ranks: str, shards: list[dict[str, Any]]
) -> dict[str, Any]:
    """Write the coarse edges between a shard and others: fine maps times rows of R of both."""
    told = get_arrays(job.work / f"plan/border-{s:06d}")
    dtype = job.opened().dtype
    sheaf, P, clusters = local_sheaf(job, dtype, told, read_buckets(job, buckets))
    here = get_arrays(job.work / ranks)["ranks"][clusters]
    folder = job.work / "halo"
    routes = [shard["routes"][str(s)] for shard in shards]
    names = [shard["name"] for shard in shards]
    pieces = folder.slices(names, [lo for lo, _, _ in routes], [hi for _, hi, _ in routes])
    for name, (lo, hi, checksum), piece in zip(names, routes, pieces, strict=True):
        if len(piece) != hi - lo or crc32c(piece) != checksum:
            raise StoreError(f"{folder.url}/{name} is damaged: a checksum is wrong")
    data = np.frombuffer(b"".join(pieces), dtype)
    index = clusters_of(sheaf, P)
    indptr, indices = block_layout(sheaf, index, here)
    R = Prolongation(sheaf, index, here, indptr, indices, data)
    noise = rounding_of(get_arrays(job.work / "plan/dims")["dims"][clusters], dtype)
    tallest = job.whole.tallest
    coarse = realize(R, None, compress=job.compress, noise=noise, tallest=tallest)
    return write_coarse(job, fresh_name(f"border-{s:06d}"), clusters, coarse)
