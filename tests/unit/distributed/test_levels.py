"""Level after level on stores, and in memory from where it fits."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import differences, grid_sheaf


@pytest.mark.parametrize("n_stored", [0, 1, 2])
def test_levels_are_those_of_memory(n_stored, memory):
    F = grid_sheaf(10)
    src = dist.to_store(memory("src"), F)
    with ties_allowed():
        E = sc.coarsen_levels(F, 4, 2, rank=[3, 2])
        sizes = [G.tail_data.nbytes + G.head_data.nbytes for G in E.sheaves]
        H = dist.coarsen_levels(src, memory("out"), 4, 2, rank=[3, 2], memory_bytes=sizes[n_stored])
    assert (len(H), len(H.stored)) == (2, n_stored)
    for one, other in zip(E, H, strict=True):
        loaded = other.load() if isinstance(other, dist.StoredCoarsening) else other
        assert differences(one, loaded) == []
    assert H.stopped_because == E.stopped_because
    z, x = np.ones(E.sheaves[-1].dim_c0), np.arange(F.dim_c0, dtype=float)
    assert np.array_equal(H.lift(z), E.lift(z))
    assert np.array_equal(H.pool(x), E.pool(x))


def test_what_fits_nowhere_stays_in_stores(memory):
    F = grid_sheaf(8)
    src = dist.to_store(memory("src"), F)
    with ties_allowed():
        H = dist.coarsen_levels(src, memory("out"), 4, min_vertices=20, rank=2, memory_bytes=0)
        again = dist.coarsen_levels(src, memory("out"), 4, min_vertices=20, rank=2, memory_bytes=0)
    assert (len(H), H.rest) == (1, None)
    assert H.stopped_because == "16 vertices are at most `min_vertices` = 20"
    assert again[0].sheaf.attributes["id"] == H[0].sheaf.attributes["id"]
    x = np.arange(F.dim_c0, dtype=float)
    assert np.array_equal(H.pool(x), H[0].pool(x))
    assert np.array_equal(H.lift(H.pool(x)), H[0].lift(H[0].pool(x)))


@pytest.mark.parametrize("memory_bytes", [0, 1e6])
def test_warnings_point_to_the_caller(memory_bytes, memory):
    F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]], dim=2)
    src = dist.to_store(memory("src"), F)
    with pytest.warns(sc.TiedModesWarning) as said:
        dist.coarsen_levels(src, memory("out"), 2, 1, rank=1, memory_bytes=memory_bytes)
    assert [warning.filename for warning in said] == [__file__]


def test_levels_that_cannot_be(memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    with pytest.raises(ValueError, match="`rank` must have one entry per level"):
        dist.coarsen_levels(src, memory("out"), 4, 2, rank=[1], memory_bytes=0)
    with pytest.raises(ValueError, match="`factor` must be above 1"):
        dist.coarsen_levels(src, memory("out"), 1, rank=1)
    with pytest.raises(TypeError, match="`memory_bytes`"):
        dist.coarsen_levels(src, memory("out"), rank=1, memory_bytes="all")
    with pytest.raises(TypeError, match="`src` must be a SheafStore"):
        dist.coarsen_levels(grid_sheaf(4), memory("out"), rank=1)
