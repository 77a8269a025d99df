"""A coarsening in a store, opened again and loaded."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.unit.distributed.cases import differences, grid_sheaf


@pytest.fixture
def made(memory):
    F = grid_sheaf(8)
    src, P = dist.to_store(memory("src"), F, 2000), sc.select(F, 6)
    return F, P, dist.coarsen(src, memory("out"), P, 3, n_shards=2, compress=False)


def test_what_is_loaded_is_what_memory_has(made):
    F, P, D = made
    C = sc.coarsen(F, P, 3)
    assert differences(C, D.load()) == []
    assert sc.verify(D.load()).passed
    assert np.array_equal(D.ranks, C.ranks)
    assert np.array_equal(D.partition.labels, P.labels)


def test_it_is_opened_again(made, memory):
    _, _, D = made
    again = dist.open_coarsening(memory("out"))
    assert differences(D.load(), again.load()) == []
    assert again.fine.url == D.fine.url
    assert repr(again) == repr(D)
    assert "internal modes, 64 -> 6 vertices, dim C^0 128 -> 18" in repr(D)


def test_a_sheaf_is_no_coarsening(made, memory):
    with pytest.raises(dist.StoreError, match="holds a sheaf, not a coarsening"):
        dist.open_coarsening(memory("src"))
    with pytest.raises(dist.StoreError, match="holds a sheaf, not a coarsening"):
        dist.StoredCoarsening(dist.open_store(memory("src")), dist.open_store(memory("src")))


def test_a_source_that_was_written_again_is_refused(made, memory):
    F, _, D = made
    D.fine.place.remove()
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_coarsening(memory("out"))
    dist.to_store(memory("src"), F)
    with pytest.raises(dist.StoreError, match="is not the store that"):
        dist.open_coarsening(memory("out"))
