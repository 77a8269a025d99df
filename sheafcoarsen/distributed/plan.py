"""Plan of a run, from the topology only: shards of whole clusters, and destinations of all maps.

Destinations 0 .. S-1 are the shards (edges with both ends in the shard), S .. 2S-1 their borders
(edges between two shards, owned by the shard of the lower cluster). For principal modes both shards
need the maps of a border edge, so the shard that does not own it gets copies: 2S .. 3S-1. The
driver decides everything once and writes one blob for each task, its only input from the plan.

A bucket file contains the maps of one part, destination by destination, and for each destination
first the tail maps and then the head maps.
"""

import itertools
import warnings
from typing import Any

import numpy as np

from sheafcoarsen._kernels import distributed as kernels
from sheafcoarsen._support import offsets
from sheafcoarsen.distributed._open_store import SheafStore
from sheafcoarsen.distributed.location import Place
from sheafcoarsen.distributed.schema import put_arrays
from sheafcoarsen.operators import index_dtype
from sheafcoarsen.partition import Partition, select
from sheafcoarsen.sheaf import trusted_sheaf


def sorted_by(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices that sort keys 0 .. count-1 stably, and the position where each begins."""
    starts = np.zeros(count + 1, np.int64)
    order: np.ndarray = np.empty(len(keys), index_dtype(len(keys)))
    kernels.sort_by_keys(keys, starts, order)
    return order, starts


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
        # number of entries of the maps at the vertices of each cluster
        self.weights = np.zeros(P.n_clusters, np.int64)
        self.shard_of = self._shards()  # shape (K + 1,); the last entry is the number of shards
        m, D = len(self.edges), (3 if copies else 2) * S
        self.dest: np.ndarray = np.empty(m, np.uint16 if D < 2**16 else np.int32)
        kernels.find_destinations(self.edges, self.labels, self.shard_of, self.dest)
        stored = source.edge_numbers
        if stored is None:
            stored = np.arange(m, dtype=index_dtype(m))
        dest = self.dest[stored]
        order, self.ptr = sorted_by(dest, 2 * S)
        self.order = stored[order]
        if copies:
            border = stored[dest >= S]
            order, ptr = sorted_by(self._other_shard(border), S)
            self.order = np.concatenate([self.order, border[order]])
            self.ptr = np.concatenate([self.ptr, m + ptr[1:]])
        parts = range(len(source.parts))
        self.tails = np.zeros((len(parts), D), np.int64)  # entries per part and destination
        self.heads = np.zeros_like(self.tails)
        for p in parts:
            own, copied, dest = self._entries(p)
            entries = np.concatenate([own, own[copied]])
            rows = self.edge_dims[entries].astype(np.int64)
            for sizes, ends in zip((self.tails, self.heads), self.edges[entries].T, strict=True):
                np.add.at(sizes[p], dest, rows * self.vertex_dims[ends])
        held = self.tails + self.heads
        self.starts = np.zeros((len(parts), D + 1), np.int64)  # where each destination begins
        np.cumsum(held, axis=1, out=self.starts[:, 1:])
        self.bytes = held.sum(axis=0) * self.itemsize
        self.by_shard, self.vertex_ptr = sorted_by(self.shard_of[self.labels], S)
        self.place_of = np.empty_like(self.by_shard)
        self.place_of[self.by_shard] = np.arange(len(self.by_shard), dtype=self.by_shard.dtype)

    def _shards(self) -> np.ndarray:
        """Group clusters into shards of about equal size with few edges between shards."""
        crossing = self.crossing = kernels.weigh_clusters(
            self.edges, self.labels, self.vertex_dims, self.edge_dims, self.weights
        )
        shard_of = np.zeros(len(self.dims) + 1, np.int32)
        if self.n_shards > 1:
            pairs = np.empty((crossing, 2), np.int64)
            kernels.crossing_pairs(self.edges, self.labels, pairs)
            # `select` takes vertex weights only as dimensions of a sheaf, here one without maps
            mean = max(1.0, float(self.weights.mean()))
            sizes = np.maximum(1, np.rint(100 * self.weights / mean)).astype(np.int64)
            no_maps = np.zeros(0)
            graph = trusted_sheaf(pairs, sizes, np.zeros(crossing, np.int64), no_maps, no_maps)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the user did not call `select`
                shard_of[:-1] = select(graph, self.n_shards).labels
        shard_of[-1] = self.n_shards
        return shard_of

    def _other_shard(self, border: np.ndarray) -> np.ndarray:
        """Return, for edges between two shards, the shard that does not own the edge."""
        shards = self.shard_of[self.labels[self.edges[border]]]
        return shards.sum(axis=1) - (self.dest[border].astype(np.int64) - self.n_shards)

    def _entries(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a part's edges, indices of those copied to a second shard, and destinations."""
        own = self.source.edges_of(p)
        dest = self.dest[own]
        copied = np.flatnonzero(dest >= self.n_shards) if self.copies else np.zeros(0, np.int64)
        other = 2 * self.n_shards + self._other_shard(own[copied])
        return own, copied, np.concatenate([dest, other.astype(dest.dtype)])

    def read(self, destinations: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the edges of some destinations, ascending, and the locations of their maps.

        ``sequence`` holds the positions of the edges in reading order, if these do not ascend.
        """
        edges = np.concatenate([self.order[self.ptr[d] : self.ptr[d + 1]] for d in destinations])
        sequence = np.zeros(0, np.int32)
        if (np.diff(edges) <= 0).any():
            sequence = np.argsort(edges, kind="stable").astype(np.int32)
            edges = edges[sequence]
        tails, heads = self.tails[:, destinations], self.heads[:, destinations]
        k, part = np.nonzero((tails + heads).T)
        return edges, {
            "parts": part.astype(np.int32),
            "destinations": np.array(destinations)[k],
            "starts": self.starts[part, np.array(destinations)[k]],
            "tails": tails[part, k],
            "heads": heads[part, k],
            "sequence": sequence,
            "edge_dims": self.edge_dims[edges],
        }

    def _stalks(self, vertices: np.ndarray) -> dict[str, np.ndarray]:
        """Return dimensions and clusters of some vertices, with cluster labels renumbered."""
        clusters, labels = np.unique(self.labels[vertices], return_inverse=True)
        return {
            "dims": self.vertex_dims[vertices],
            "labels": labels.astype(np.int32),
            "clusters": clusters.astype(np.int32),
            "sizes": self.dims[clusters],
        }

    def border_arrays(self, s: int, supplies: dict[int, list]) -> dict[str, np.ndarray]:
        """Return the input of a border's task; add the rows of R that it needs to ``supplies``."""
        edges, arrays = self.read([self.n_shards + s])
        places, ends = np.unique(self.place_of[self.edges[edges]], return_inverse=True)
        provider = np.searchsorted(self.vertex_ptr, places, side="right") - 1
        cuts = np.flatnonzero(np.diff(provider, prepend=-1))
        for lo, hi in itertools.pairwise([*cuts.tolist(), len(places)]):
            t = int(provider[lo])
            supplies.setdefault(t, []).append((s, places[lo:hi] - self.vertex_ptr[t]))
        return {
            **arrays,
            **self._stalks(self.by_shard[places]),
            "ends": ends.reshape(-1, 2).astype(np.int32),
            "providers": provider[cuts].astype(np.int32),
        }

    def shard_arrays(self, s: int, supply: list) -> dict[str, np.ndarray]:
        """Return the input of a shard's task; ``supply`` lists pairs (border, local vertices)."""
        S, begin = self.n_shards, int(self.vertex_ptr[s])
        own = self.by_shard[begin : self.vertex_ptr[s + 1]]  # vertices of the shard, ascending
        # with copies, also read the edges to other shards; their far ends become ghosts
        edges, arrays = self.read([s, S + s, 2 * S + s] if self.copies else [s])
        ends = self.place_of[self.edges[edges]].astype(np.int64) - begin
        far = (ends < 0) | (ends >= len(own))
        ghosts, places = np.unique(ends[far], return_inverse=True)
        ends[far] = len(own) + places
        rows: Any = [np.zeros(0, np.int64), *(local for _, local in supply)]
        return {
            **arrays,
            **self._stalks(np.concatenate([own, self.by_shard[ghosts + begin]])),
            "ends": ends.astype(np.int32),
            "vertices": own,
            "consumers": np.array([border for border, _ in supply], np.int32),
            "supply_ptr": offsets([len(local) for _, local in supply]),
            "supply": np.concatenate(rows).astype(np.int32),
        }

    def write(self, place: Place) -> list[list[int]]:
        """Write the input of every task; return, for each border, the shards whose R it needs."""
        S = self.n_shards
        for p in range(len(self.source.parts)):
            own, copied, dest = self._entries(p)
            edges, rows = self.edges[own], self.edge_dims[own]
            arrays = {
                "copied": copied.astype(np.int32),
                "dest": dest,
                "tails": (rows * self.vertex_dims[edges[:, 0]]).astype(np.int32),
                "heads": (rows * self.vertex_dims[edges[:, 1]]).astype(np.int32),
                "starts": self.starts[p],
            }
            put_arrays(place / f"split-{p:06d}", arrays)
        supplies: dict[int, list] = {}
        providers: list[list[int]] = [[] for _ in range(S)]
        for s in np.flatnonzero(np.diff(self.ptr[S : 2 * S + 1])).tolist():
            arrays = self.border_arrays(s, supplies)
            providers[s] = arrays["providers"].tolist()
            put_arrays(place / f"border-{s:06d}", arrays)
        for s in range(S):
            put_arrays(place / f"shard-{s:06d}", self.shard_arrays(s, supplies.get(s, [])))
        return providers
