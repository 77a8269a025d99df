"""Several levels: from store to store, and in memory once a level fits."""

from functools import partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen._support import checks
from sheafcoarsen.distributed.location import place_of
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import differences, grid_sheaf, power_cut, warnings_of

TWO = {"n_levels": 2, "rank": [3, 2]}


@pytest.mark.parametrize(
    ("options", "n_stored", "missing_bytes"),
    [(TWO, 0, 0), (TWO, 1, 0), (TWO, 2, 0), ({"min_vertices": 30, "rank": 2}, 1, 1)],
)
def test_levels_are_the_same_as_in_memory(options, n_stored, missing_bytes, memory):
    """They are made in memory once one fits, as the last one does unless bytes are missing."""
    F = grid_sheaf(10)
    src = dist.to_store(memory("src"), F)
    with ties_allowed():
        E = sc.coarsen_levels(F, 4, **options)
        first = E.sheaves[n_stored]
        size = first.tail_data.nbytes + first.head_data.nbytes - missing_bytes
        H = dist.coarsen_levels(src, memory("out"), 4, **options, memory_bytes=size)
    assert [bool(C.report) for C in H] == [i < n_stored for i in range(len(E))]
    for one, other in zip(E, H, strict=True):
        assert differences(one, other.load()) == []
    assert H.stopped_because == E.stopped_because
    z, x = np.ones(E.sheaves[-1].dim_c0), np.arange(F.dim_c0, dtype=float)
    assert np.array_equal(H.lift(z), E.lift(z))
    assert np.array_equal(H.pool(x), E.pool(x))


def test_by_default_an_eighth_of_the_memory_is_used(memory, monkeypatch):
    src = dist.to_store(memory("src"), grid_sheaf(8))
    for n_stored, size in ((0, 8), (1, 7.9)):
        memory_of = {"physical_memory": lambda size=size: size * src.n_bytes}
        small = SimpleNamespace(**vars(checks) | memory_of)
        monkeypatch.setattr(f"{dist.coarsen_levels.__module__}.checks", small)
        with ties_allowed():
            H = dist.coarsen_levels(src, memory(f"{n_stored}"), 4, 2, rank=2)
        assert [bool(C.report) for C in H] == [n_stored == 1, False]


@pytest.mark.parametrize("memory_bytes", [0, 10_000, 1e6])
def test_levels_can_be_opened_again(memory_bytes, memory):
    """All levels are in stores, wherever they were made; repeating the call makes none again."""
    F = grid_sheaf(8)
    src = dist.to_store(memory("src"), F)
    P, Q = sc.Partition(np.arange(64) // 4), sc.Partition(np.arange(16) // 8)
    given = [dist.to_store(memory("P"), P), Q]
    options = {"partitions": given, "rank": [3, 2], "memory_bytes": memory_bytes}
    with ties_allowed():
        E = sc.coarsen_levels(F, partitions=[P, Q], rank=[3, 2])
        first, again = (dist.coarsen_levels(src, memory("out"), **options) for _ in range(2))
    H = dist.open_levels(memory("out"))
    shown = "StoredHierarchy(2 levels: 64 -> 16 -> 2 vertices; stopped because "
    assert repr(H) == repr(first) == repr(again) == f"{shown}{E.stopped_because})"
    same = dist.coarsen(H[0].sheaf, H[1].sheaf.url, Q, 2)  # finished by the same call
    assert same.sheaf.header.id == H[1].sheaf.header.id
    for one, other in zip(E, H, strict=True):
        assert differences(one, other.load()) == []
    assert [C.sheaf.header.id for C in first] == [C.sheaf.header.id for C in again]


def test_unfinished_levels_cannot_be_opened(memory):
    """They were interrupted in their first level, or at their end."""
    src = dist.to_store(memory("src"), grid_sheaf(8))

    def call():
        return dist.coarsen_levels(src, memory("out"), 4, 2, rank=2, memory_bytes=10_000)

    with ties_allowed():
        with power_cut("shard_task", at=1):
            call()
        with pytest.raises(dist.StoreError, match="did not end: repeat the call of coarsen"):
            dist.open_levels(memory("out"))
        with pytest.raises(FileExistsError, match="writing did not end"):
            dist.to_store(memory("out"), grid_sheaf(8))
        with power_cut("levels"):
            call()
        with pytest.raises(dist.StoreError, match="did not end"):
            dist.open_levels(memory("out"))
        call()
    assert [C.sheaf.n_vertices for C in dist.open_levels(memory("out"))] == [16, 4]
    with pytest.raises(dist.StoreError, match="holds a sheaf, not levels"):
        dist.open_levels(memory("src"))


@pytest.mark.parametrize("memory_bytes", [0, 1e6])
def test_finished_levels_of_another_call_are_not_changed(memory_bytes, memory):
    src = dist.to_store(memory("src"), grid_sheaf(8))
    options = {"rank": 2, "memory_bytes": memory_bytes}
    with ties_allowed():
        dist.coarsen_levels(src, memory("out"), 4, 2, **options)
        header = place_of(memory("out/zarr.json")).find()
        for n in (1, 3):
            with pytest.raises(FileExistsError, match="is the result of another call"):
                dist.coarsen_levels(src, memory("out"), 4, n, **options)
        assert place_of(memory("out/zarr.json")).find() == header
        assert len(dist.coarsen_levels(src, memory("out"), 4, 2, **options)) == 2


@pytest.mark.parametrize("memory_bytes", [0, 1e6])
def test_warnings_are_those_of_levels_in_memory(memory_bytes, memory):
    """They name their level; none is said if a further level would keep no mode."""
    F, G = sc.gallery.cycle(40, 1.0), sc.CellularSheaf.constant(nx.grid_2d_graph(10, 10))
    Z = sc.CellularSheaf([[0, 1], [0, 1], [1, 2]], [[[1.0]]] * 3, [[[2.0]], [[1.0]], [[3.0]]])
    kernel, two = {"rank": sc.ranks.kernel(), "min_vertices": 1}, {"rank": 2, "n_levels": 2}
    for name, A, options in (("Z", Z, kernel), ("F", F, kernel), ("G", G, two)):
        src, out = dist.to_store(memory(name), A), memory(f"{name}-out")
        wanted, E = warnings_of(sc.coarsen_levels, A, 4, **options)
        call = partial(dist.coarsen_levels, src, out, 4, memory_bytes=memory_bytes, **options)
        said, H = warnings_of(call)
        assert said == wanted
        for found in (H, warnings_of(call)[1]):  # the second time it is finished
            assert (len(found), found.stopped_because) == (len(E), E.stopped_because)
    assert said[0].startswith("level 0: ")
    message = "level 1: `rank` must hold one integer per cluster"
    with ties_allowed(), pytest.raises(ValueError, match=message):
        dist.coarsen_levels(src, memory("bad"), 4, 2, rank=[1, [1, 1]])


def test_spectral_selection_needs_the_maps_in_memory(memory):
    F = sc.CellularSheaf.constant(nx.barbell_graph(8, 0))
    src, options = dist.to_store(memory("src"), F), {"rank": 2, "method": "spectral"}
    with pytest.raises(ValueError, match="needs all maps .* `memory_bytes` of at least 912$"):
        dist.coarsen_levels(src, memory("out"), 8, 1, **options, memory_bytes=911)
    with ties_allowed():
        H = dist.coarsen_levels(src, memory("out"), 8, 1, **options, memory_bytes=912)
    assert sorted(H[0].partition.labels[[0, -1]]) == [0, 1]
    assert H[0].partition.sizes.tolist() == [8, 8]


def test_cochains_are_checked_without_levels_too(memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    H = dist.coarsen_levels(src, memory("out"), n_levels=0, rank=1)
    assert H.lift([1, 2]).dtype == H.pool([1, 2]).dtype == float
    for apply, name in ((H.lift, "z"), (H.pool, "x")):
        with pytest.raises(TypeError, match=f"`{name}` must hold float32"):
            apply("abc")


def test_invalid_arguments_raise(memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="`memory_bytes`"):
        dist.coarsen_levels(src, memory("out"), rank=1, memory_bytes="all")
    with pytest.raises(ValueError, match="`memory_bytes` must be at least 0, got -5"):
        dist.coarsen_levels(src, memory("out"), rank=1, memory_bytes=-5)
    P = sc.Partition(np.zeros(16, int))
    with pytest.raises(ValueError, match="must label the sheaf's 16 vertices"):
        dist.coarsen_levels(src, memory("out"), rank=1, partitions=[sc.Partition([0, 1])])
    with pytest.raises(FileExistsError, match="exists and holds other files"):
        dist.coarsen_levels(src, dist.to_store(memory("P"), P).url, rank=1)
    with pytest.raises(ValueError, match="oversampled"):
        dist.coarsen_levels(src, memory("out"), rank=1, local_operator="oversampled")
    with pytest.raises(TypeError, match="`src` must be a SheafStore"):
        dist.coarsen_levels(grid_sheaf(4), memory("out"), rank=1)
