"""Plan of a run, from topology alone: shards of whole clusters, destinations of all maps.

Destinations 0 .. S-1 are the shards (edges with both ends in the shard), S .. 2S-1 their borders
(edges between two shards, owned by the shard of the lower cluster). Principal modes look at both
ends of a border, so a copy of its edges goes to the other shard too: 2S .. 3S-1. The driver decides
all of it once and writes one blob for every task , which then reads nothing else.

A bucket file holds the maps of one part, destination after destination: its tails, then its heads.
"""

import itertools
import warnings
from functools import cached_property
from typing import Any

import numpy as np

from sheafcoarsen._kernels import distributed as kernels
from sheafcoarsen._support import offsets
from sheafcoarsen.distributed._open_store import SheafStore
from sheafcoarsen.distributed._write_store import index_type
from sheafcoarsen.distributed.arrays import put_arrays
from sheafcoarsen.distributed.location import Place
from sheafcoarsen.partition import Partition, select
from sheafcoarsen.sheaf import trusted_sheaf


def sorted_by(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of keys 0 .. count-1 in stable order, and where each key begins."""
    counts = np.zeros(count, np.int64)
    kernels.count_keys(keys, counts)
    ptr = offsets(counts)
    order: np.ndarray = np.empty(len(keys), index_type(len(keys)))
    kernels.sort_by_keys(keys, ptr[:-1].copy(), order)
    return order, ptr


def inverse(order: np.ndarray) -> np.ndarray:
    """Return the inverse of a permutation."""
    found = np.empty_like(order)
    found[order] = np.arange(len(order), dtype=order.dtype)
    return found


class Plan:
    """Shards, destinations of edges, and the arrays that tasks read.

    Entry i of the arrays of destinations is edge ``entries[i]`` for destination ``dest[i]``;
    without copies the entries are the edges. ``order`` lists them by destination, edges ascending.
    """

    def __init__(self, source: SheafStore, P: Partition, n_shards: int, *, copies: bool) -> None:
        self.source, self.itemsize = source, source.dtype.itemsize
        self.edges, self.vertex_dims, self.edge_dims = source.topology()
        self.labels = P.labels.astype(np.int32)
        self.dims = np.bincount(self.labels, self.vertex_dims, P.n_clusters).astype(np.int64)  # N_a
        self.n_shards = max(1, min(n_shards, P.n_clusters))
        # map entries of each cluster, half of those of its crossing edges
        self.weights = np.zeros(P.n_clusters, np.int64)
        self.shard_of = self._shards()  # (K + 1,), the number of shards last
        self.entries, self.dest, D = self._destinations(copies)
        self.order, self.ptr = sorted_by(self.dest, D)
        S = len(source.parts)
        self.tails, self.heads = np.zeros((S, D), np.int64), np.zeros((S, D), np.int64)
        self.copies = self._copies_by_part()
        for p in range(S):
            kernels.sum_sizes(
                *self._entries(p),
                self.edges,
                self.vertex_dims,
                self.edge_dims,
                self.tails[p],
                self.heads[p],
            )
        sizes = self.tails + self.heads
        self.starts = np.zeros((S, D + 1), np.int64)  # in numbers
        np.cumsum(sizes, axis=1, out=self.starts[:, 1:])
        self.bytes = sizes.sum(axis=0) * self.itemsize
        self.by_shard, self.vertex_ptr = sorted_by(self.shard_of[self.labels], self.n_shards)
        self.place_of = inverse(self.by_shard)

    def _shards(self) -> np.ndarray:
        """Group whole clusters into shards of about the same size.

        Few edges join two shards: they are clusters of the graph of clusters.
        """
        crossing = kernels.weigh_clusters(
            self.edges, self.labels, self.vertex_dims, self.edge_dims, self.weights
        )
        K = len(self.dims)
        shard_of = np.zeros(K + 1, np.int32)
        if self.n_shards == K:
            shard_of[:K] = np.arange(K)
        elif self.n_shards > 1:
            pairs = np.empty((crossing, 2), np.int64)
            kernels.crossing_pairs(self.edges, self.labels, pairs)
            # a graph whose vertices have weights is a sheaf without maps
            mean = max(1.0, float(self.weights.mean()))
            sizes = np.maximum(1, np.rint(100 * self.weights / mean)).astype(np.int64)
            no_maps = np.zeros(0)
            graph = trusted_sheaf(pairs, sizes, np.zeros(crossing, np.int64), no_maps, no_maps)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nobody asked for these clusters
                shard_of[:K] = select(graph, self.n_shards).labels
        shard_of[K] = self.n_shards
        return shard_of

    def _destinations(self, copies: bool) -> tuple[np.ndarray | None, np.ndarray, int]:
        """Return entries, their destinations, and how many destinations there are."""
        S, m = self.n_shards, len(self.edges)
        dest: np.ndarray = np.empty(m, np.uint16 if 3 * S < 2**16 else np.int32)
        kernels.find_destinations(self.edges, self.labels, self.shard_of, dest)
        if not copies:
            return None, dest, 2 * S
        border = np.flatnonzero(dest >= S)
        shards = self.shard_of[self.labels[self.edges[border]]]
        other = shards.sum(axis=1) - (dest[border] - S)
        index = index_type(m)
        entries = np.concatenate([np.arange(m, dtype=index), border.astype(index)])
        return entries, np.concatenate([dest, (2 * S + other).astype(dest.dtype)]), 3 * S

    def edges_to(self, d: int) -> np.ndarray:
        """Return the numbers of the edges of a destination, ascending."""
        here = self.order[self.ptr[d] : self.ptr[d + 1]]
        return here if self.entries is None else self.entries[here]

    # ------------------------------------------------------------ parts of the source

    def _copies_by_part(self) -> list[np.ndarray] | None:
        """Return which copies belong to each part, as numbers of entries."""
        if self.entries is None:
            return None
        m, ptr = len(self.edges), self.source.part_ptr
        edges = self.entries[m:]
        if self._stored_place is not None:
            edges = self._stored_place[edges]
        part = np.searchsorted(ptr, edges, side="right") - 1
        order = np.argsort(part, kind="stable")
        cuts = np.searchsorted(part[order], np.arange(len(ptr)))
        return [m + order[lo:hi] for lo, hi in itertools.pairwise(cuts)]

    def _entries(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of a part, copies after them, and the destination of each."""
        edges = self.source.edges_of(p)
        dest = self.dest[edges]
        if self.copies is not None and self.entries is not None:
            more = self.copies[p]
            edges = np.concatenate([edges, self.entries[more]])
            dest = np.concatenate([dest, self.dest[more]])
        return edges, dest

    def split_arrays(self, p: int) -> dict[str, np.ndarray]:
        """Return the arrays of the task that splits a part."""
        own = self.source.edges_of(p)
        entries, dest = self._entries(p)
        edges, rows = self.edges[own], self.edge_dims[own]
        places = np.zeros(0, np.int32)  # none: all of them, once
        if self.copies is not None:
            places = np.searchsorted(own, entries).astype(np.int32)
        return {
            "entries": places,
            "dest": dest,
            "tails": (rows * self.vertex_dims[edges[:, 0]]).astype(np.int32),
            "heads": (rows * self.vertex_dims[edges[:, 1]]).astype(np.int32),
            "starts": self.starts[p],
        }

    # ------------------------------------------------------------ destinations

    def table(self, destinations: list[int]) -> dict[str, np.ndarray]:
        """Return the locations of the maps of some destinations, and their ascending order.

        ``sequence`` lists the edges as they are wanted by their places in the order in which they
        are read, where that is another.
        """
        parts, where = [], []
        for d in destinations:
            here = np.flatnonzero(self.tails[:, d] + self.heads[:, d])
            parts.append(here)
            where.append(np.full(len(here), d))
        part, dest = np.concatenate(parts), np.concatenate(where)
        stored = self._stored_numbers(destinations)
        ascending = bool((np.diff(stored) > 0).all())
        sequence = np.zeros(0, np.int32) if ascending else np.argsort(stored, kind="stable")
        return {
            "parts": part.astype(np.int32),
            "destinations": dest.astype(np.int32),
            "starts": self.starts[part, dest],
            "tails": self.tails[part, dest],
            "heads": self.heads[part, dest],
            "sequence": sequence.astype(np.int32),
        }

    def _stored_numbers(self, destinations: list[int]) -> np.ndarray:
        """Return the numbers of the edges of some destinations in the order in which they are read.

        That is destination by destination, and part by part.
        """
        found = []
        for d in destinations:
            edges = self.edges_to(d)
            if self._stored_place is not None:
                edges = edges[np.argsort(self._stored_place[edges], kind="stable")]
            found.append(edges)
        return np.concatenate(found)

    @cached_property
    def _stored_place(self) -> np.ndarray | None:
        numbers = self.source.edge_numbers
        return None if numbers is None else inverse(numbers)

    def vertices(self, s: int) -> np.ndarray:
        """Return the vertices of a shard, ascending."""
        return self.by_shard[self.vertex_ptr[s] : self.vertex_ptr[s + 1]]

    def border_arrays(self, s: int, supplies: dict[int, list]) -> dict[str, np.ndarray]:
        """Return the arrays of the task of a border; add the rows of R it needs to ``supplies``."""
        S = self.n_shards
        edges = self.edges_to(S + s)
        ends = self.place_of[self.edges[edges]]
        places, local = np.unique(ends, return_inverse=True)
        vertices = self.by_shard[places]
        provider = np.searchsorted(self.vertex_ptr, places, side="right") - 1
        cuts = np.flatnonzero(np.diff(provider, prepend=-1))
        for lo, hi in itertools.pairwise([*cuts.tolist(), len(places)]):
            t = int(provider[lo])
            supplies.setdefault(t, []).append((s, places[lo:hi] - self.vertex_ptr[t]))
        return {
            **self._described(vertices),
            "ends": local.reshape(-1, 2).astype(np.int32),
            "edge_dims": self.edge_dims[edges],
            "providers": provider[cuts].astype(np.int32),
            **self.table([S + s]),
        }

    def _described(self, vertices: np.ndarray) -> dict[str, np.ndarray]:
        """Return the stalks of some vertices and their clusters, numbered anew in their order."""
        clusters, labels = np.unique(self.labels[vertices], return_inverse=True)
        return {
            "dims": self.vertex_dims[vertices],
            "labels": labels.astype(np.int32),
            "clusters": clusters.astype(np.int32),
        }

    def shard_arrays(self, s: int, supply: list) -> dict[str, np.ndarray]:
        """Return the arrays of the task of a shard; ``supply`` lists (border, local vertices)."""
        S = self.n_shards
        own = self.vertices(s)
        begin = int(self.vertex_ptr[s])
        arrays: dict[str, Any] = {
            "vertices": own,
            "consumers": np.array([border for border, _ in supply], np.int32),
            "supply_ptr": offsets([len(rows) for _, rows in supply]),
            "supply": np.concatenate([*(rows for _, rows in supply), np.zeros(0, np.int64)]).astype(
                np.int32
            ),
        }
        if self.entries is None:
            edges = self.edges_to(s)
            ends = self.place_of[self.edges[edges]] - begin
            destinations = [s]
            arrays.update(self._described(own))
        else:
            # the shard and the edges that join it to others, ghosts at their far ends
            destinations = [s, S + s, 2 * S + s]
            edges = np.sort(np.concatenate([self.edges_to(d) for d in destinations]))
            ends = self.place_of[self.edges[edges]].astype(np.int64) - begin
            far = (ends < 0) | (ends >= len(own))
            ghosts, places = np.unique(ends[far], return_inverse=True)
            ends[far] = len(own) + places
            arrays.update(self._described(np.concatenate([own, self.by_shard[ghosts + begin]])))
            arrays["inner"] = np.flatnonzero(~far.any(axis=1)).astype(np.int32)
        return {
            **arrays,
            "ends": ends.astype(np.int32),
            "edge_dims": self.edge_dims[edges],
            **self.table(destinations),
        }

    # ------------------------------------------------------------ all of it

    def write(self, place: Place) -> list[list[int]]:
        """Write a blob for every task; return the shards whose rows of R each border needs."""
        S, P = self.n_shards, len(self.source.parts)
        for p in range(P):
            put_arrays(place / f"split-{p:06d}", self.split_arrays(p))
        supplies: dict[int, list] = {}
        providers: list[list[int]] = []
        for s in range(S):
            if self.ptr[S + s] == self.ptr[S + s + 1]:
                providers.append([])
                continue
            arrays = self.border_arrays(s, supplies)
            providers.append(arrays["providers"].tolist())
            put_arrays(place / f"border-{s:06d}", arrays)
        for s in range(S):
            put_arrays(place / f"shard-{s:06d}", self.shard_arrays(s, supplies.get(s, [])))
        return providers
