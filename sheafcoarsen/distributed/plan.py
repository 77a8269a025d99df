"""Plan of a run, from the topology only: shards of whole clusters, and destinations of all maps.

Destinations 0 .. S-1 are the shards (edges with both ends in the shard), S .. 2S-1 their borders
(edges between two shards, owned by the shard of the lower cluster). For principal modes both shards
need the maps of a border edge, so the shard that does not own it gets copies: 2S .. 3S-1. The
driver decides everything once and writes one record for each task, its only input from the plan.

A bucket file contains the maps of one part, destination by destination, and for each edge first the
tail map and then the head map.
"""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import ragged, warned
from sheafcoarsen.distributed._open_store import SheafStore
from sheafcoarsen.distributed.location import Place
from sheafcoarsen.partition import Partition, select
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def sorted_by(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable sort order of keys 0 .. count-1, and the offset of each key."""
    order = np.argsort(keys, kind="stable").astype(ragged.index_dtype(len(keys)))
    return order, ragged.offsets(np.bincount(keys, minlength=count))


def without_maps(edges: np.ndarray, vertex_dims: np.ndarray, dtype: np.dtype) -> CellularSheaf:
    """Return a sheaf whose edge stalks have dimension 0, for the selection of clusters."""
    dims, nothing = vertex_dims.astype(np.int64), np.zeros(0, dtype)
    return trusted_sheaf(edges, dims, np.zeros(len(edges), np.int64), nothing, nothing)


class Plan:
    """Shards, destinations of edges, and input arrays of tasks.

    ``order`` lists the edges of each destination in reading order, that is, in stored order.
    """

    def __init__(self, source: SheafStore, P: Partition, n_shards: int, *, copies: bool) -> None:
        self.source, self.itemsize, self.copies = source, source.dtype.itemsize, copies
        self.edges, self.vertex_dims, self.edge_dims = source.topology()
        self.labels = P.labels.astype(np.int32)
        self.dims = np.bincount(self.labels, self.vertex_dims, P.n_clusters).astype(np.int64)
        S = self.n_shards = max(1, min(n_shards, P.n_clusters))
        m, D, parts = len(self.edges), (3 if copies else 2) * S, range(len(source.parts))
        self._group(np.uint16 if D < 2**16 else np.int32)
        self.starts = np.zeros((len(parts), D + 1), np.int64)  # where each destination begins
        entries, destinations = [np.zeros(0, ragged.index_dtype(m))], [self.dest[:0]]
        for p in parts:
            own, copied, dest = self._entries(p)
            edges = np.concatenate([own, own[copied]])
            columns = np.add(*self.vertex_dims[self.edges[edges].T])
            sizes = np.multiply(self.edge_dims[edges], columns, dtype=float)
            self.starts[p, 1:] = np.bincount(dest, sizes, D)
            entries.append(edges.astype(ragged.index_dtype(m)))
            destinations.append(dest)
            del own, copied, edges, columns, sizes
        order, self.ptr = sorted_by(np.concatenate(destinations), D)
        self.order = np.concatenate(entries)[order]
        self.bytes = self.starts[:, 1:].sum(axis=0) * self.itemsize
        np.cumsum(self.starts, axis=1, out=self.starts)
        self.by_shard, self.vertex_ptr = sorted_by(self.shard_of[self.labels], S)
        self.place_of = np.empty_like(self.by_shard)
        self.place_of[self.by_shard] = np.arange(len(self.by_shard), dtype=self.by_shard.dtype)

    def _group(self, dtype: npt.DTypeLike) -> None:
        """Group clusters into shards of about equal size with few edges between shards.

        Arrays of all edges may fill the memory, so few of them exist at the same time.
        """
        n, K, S = len(self.labels), len(self.dims), self.n_shards
        rows = sum(np.bincount(ends, self.edge_dims, n) for ends in self.edges.T)
        # numbers of entries of the maps at the vertices of each cluster
        self.weights = np.bincount(self.labels, self.vertex_dims * rows, K).astype(np.int64)
        tails = self.labels[self.edges[:, 0]]
        self.crossing = np.flatnonzero(tails != self.labels[self.edges[:, 1]])
        del tails
        pairs = self.labels[self.edges[self.crossing]].astype(np.int64)
        self.shard_of = np.zeros(K, dtype)
        if S > 1:
            # `select` takes vertex weights only as dimensions of a sheaf, here one without maps
            mean = max(1.0, float(self.weights.mean()))
            sizes = np.maximum(1, np.rint(100 * self.weights / mean))
            with warned.collected():  # the user did not call `select`
                graph = without_maps(pairs, sizes, np.dtype(float))
                self.shard_of[:] = select(graph, S).labels
            del graph
        self.dest = self.shard_of[self.labels[self.edges[:, 0]]]
        shards = self.shard_of[pairs]
        owner = np.where(pairs[:, 0] < pairs[:, 1], shards[:, 0], shards[:, 1])
        self.dest[self.crossing] = np.where(shards[:, 0] == shards[:, 1], owner, S + owner)

    def _entries(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a part's edges, indices of those copied to a second shard, and destinations."""
        own = self.source.edges_of(p)
        dest = self.dest[own]
        copied = np.flatnonzero(dest >= self.n_shards) if self.copies else np.zeros(0, np.int64)
        # the sum of an edge's two shards minus the shard that owns it
        shards = self.shard_of[self.labels[self.edges[own[copied]]]].sum(axis=1)
        other = 3 * self.n_shards + shards - dest[copied]
        return own, copied, np.concatenate([dest, other.astype(dest.dtype)])

    def _input(
        self, destinations: list[int], begin: int, end: int
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the other ends of the edges of some destinations, and the input of their task.

        The task has the vertices at the places ``begin`` .. ``end - 1`` of ``by_shard``, and then
        the other ends of its edges, of which the places are returned. Edges ascend; ``sequence``
        holds their positions in reading order, if these do not ascend.
        """
        edges = np.concatenate([self.order[self.ptr[d] : self.ptr[d + 1]] for d in destinations])
        sequence = np.zeros(0, np.int32)
        if (np.diff(edges) <= 0).any():
            sequence = np.argsort(edges, kind="stable").astype(np.int32)
            edges = edges[sequence]
        ends = self.place_of[self.edges[edges]].astype(np.int64) - begin
        far = (ends < 0) | (ends >= end - begin)
        others, numbers = np.unique(ends[far], return_inverse=True)
        ends[far] = end - begin + numbers
        vertices = np.concatenate([self.by_shard[begin:end], self.by_shard[others + begin]])
        clusters, labels = np.unique(self.labels[vertices], return_inverse=True)
        read = np.array(destinations)
        starts = self.starts.T[read]
        sizes = self.starts.T[read + 1] - starts
        k, parts = np.nonzero(sizes)
        return others + begin, {
            "parts": parts.astype(np.int32),
            "destinations": read[k],
            "starts": starts[k, parts],
            "sizes": sizes[k, parts],
            "sequence": sequence,
            "edge_dims": self.edge_dims[edges],
            "ends": ends.astype(np.int32),
            "dims": self.vertex_dims[vertices],
            "labels": labels.astype(np.int32),
            "clusters": clusters.astype(np.int32),
            "cluster_dims": self.dims[clusters],
        }

    def write(self, place: Place) -> list[list[int]]:
        """Write the input of every task; return, for each border, the shards whose R it needs."""
        S, ptr = self.n_shards, self.vertex_ptr
        for p in range(len(self.source.parts)):
            own, copied, dest = self._entries(p)
            edges, rows = self.edges[own], self.edge_dims[own]
            (place / f"split-{p:06d}").put_record(
                copied=copied.astype(np.int32),
                dest=dest,
                tails=(rows * self.vertex_dims[edges[:, 0]]).astype(np.int32),
                heads=(rows * self.vertex_dims[edges[:, 1]]).astype(np.int32),
                starts=self.starts[p],
            )
        providers: list[list[int]] = [[] for _ in range(S)]
        # for each shard, and each border that needs rows of its R, the vertices of these rows
        supplies: list[dict[int, np.ndarray]] = [{} for _ in range(S)]
        for s in np.flatnonzero(np.diff(self.ptr[S : 2 * S + 1])).tolist():
            places, given = self._input([S + s], 0, 0)
            (place / f"border-{s:06d}").put_record(**given)
            providers[s] = np.unique(np.searchsorted(ptr, places, side="right") - 1).tolist()
            for t in providers[s]:
                lo, hi = np.searchsorted(places, ptr[t : t + 2])  # places ascend
                supplies[t][s] = (places[lo:hi] - ptr[t]).astype(np.int32)
        for s, (begin, end) in enumerate(itertools.pairwise(ptr.tolist())):
            # with copies, also read the edges to other shards; their far ends become ghosts
            _, given = self._input([s, S + s, 2 * S + s] if self.copies else [s], begin, end)
            (place / f"shard-{s:06d}").put_record(
                **given,
                n_own=end - begin,
                borders=[*supplies[s]],
                **{f"rows-{border}": local for border, local in supplies[s].items()},
            )
        return providers
