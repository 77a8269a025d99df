"""Sheaves that tests of stores share, changes of stores, and comparisons with results in memory."""

import contextlib
import json
import warnings
from operator import attrgetter

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed import _coarsen, _coarsen_levels, _write_store, tasks
from sheafcoarsen.distributed.location import place_of
from sheafcoarsen.distributed.plan import Plan
from sheafcoarsen.distributed.schema import write_array
from tests.support.helpers import ties_allowed

FOURS = np.arange(16) // 4
"""Labels of the 16 vertices of ``grid_sheaf(4)``: four clusters of four."""


def ragged_sheaf(dtype=np.float64, seed=0, n=40, m=90):
    """Return a sheaf of ragged stalks, with parallel edges, loops and isolated vertices."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 2, (m, 2))
    edges[:5] = edges[5:10]
    edges[10, 1] = edges[10, 0]
    vertex_dims, edge_dims = rng.integers(1, 4, n), rng.integers(0, 4, m)
    return sc.CellularSheaf.random(edges, vertex_dims, edge_dims, seed=seed, dtype=dtype)


def grid_sheaf(side=9, dtype=np.float64):
    return sc.CellularSheaf.random(nx.grid_2d_graph(side, side), 2, 3, seed=3, dtype=dtype)


def made_twice(place, F, P, rank, part_bytes=5000, *, n_shards=3, compress=True, **options):
    """Return a coarsening made in memory, and the same bits made from store to store."""
    src, options = dist.to_store(place("src"), F, part_bytes), {"compress": compress, **options}
    with ties_allowed():
        C = sc.coarsen(F, P, rank, **options)
        D = dist.coarsen(src, place("out"), P, rank, n_shards=n_shards, **options)
    assert differences(C, D.load()) == []
    return C, D


ARRAYS = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
ATTRIBUTES = [
    *(f"sheaf.{name}" for name in (*ARRAYS, "vertex_labels")),
    *(f"prolongation.{name}" for name in ("data", "indices", "indptr")),
    *(f"modes.{name}" for name in ("ranks", "scores", "next_eigenvalues", "tied")),
    *(f"modes.{name}" for name in ("operator_norms", "local_operator", "singular")),
    *("crossing_rows", "loops"),
]


def differences(C, D):
    """Return the names of the attributes in which two coarsenings in memory differ by any bit."""
    return [name for name in ATTRIBUTES if not same(*map(attrgetter(name), (C, D)))]


def same(one, other):
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


def warnings_of(coarsen, *arguments, **options):
    """Return the messages of all warnings of a call, which must name this line, and its result."""
    with warnings.catch_warnings(record=True, action="always") as said:
        C = coarsen(*arguments, **options)
    assert {found.filename for found in said} <= {__file__}
    return [str(found.message) for found in said], C


def edit(url, **attributes):
    """Replace attributes, or remove those that are None; without `check`, that is no damage."""
    meta = place_of(url) / "zarr.json"
    group = json.loads(meta.find())
    changed = {**group["attributes"], **attributes}
    group["attributes"] = {name: value for name, value in changed.items() if value is not None}
    meta.put(json.dumps(group).encode())


def rewrite(store, name, change):
    """Write what a function makes of an array of a store, with valid checksums."""
    found = json.loads((store.place / name / "zarr.json").find())
    values = store.array(name, found["data_type"], (None,) * len(found["shape"]))
    write_array(store.root, name, change(values))


def swap(one, other):
    """Exchange two files or folders."""
    held = one.with_name("held")
    one.rename(held)
    other.rename(one)
    held.rename(other)


@contextlib.contextmanager
def power_cut(kind, at=2):
    """Stop a call at a step of a given name, or at the second or first task of a given kind."""
    owner, name = {
        "plan": (Plan, "write"),
        "sealed": (_coarsen, "seal"),
        "clean": (_coarsen, "StoredCoarsening"),  # the store is finished, but not yet cleaned
        "to_store": (_write_store, "mark"),
        "levels": (_coarsen_levels, "mark"),
    }.get(kind, (tasks, kind))
    calls = []

    def stopped(*args, **options):
        calls.append(args)
        if len(calls) == at or owner is not tasks:
            raise RuntimeError("power cut")
        return function(*args, **options)

    function = getattr(owner, name)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(owner, name, stopped)
        with pytest.raises(RuntimeError, match="power cut"):
            yield
