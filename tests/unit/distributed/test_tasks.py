"""Tasks are run once, and detect damaged input; tests/robustness/ has tasks on a cluster."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen._support.threads import thread_count
from sheafcoarsen.distributed import tasks
from sheafcoarsen.distributed.location import StoreError, place_of
from tests.unit.distributed.cases import FOURS, grid_sheaf, power_cut, swap


def test_a_task_runs_once_per_run_and_leaves_no_note_if_it_fails(memory):
    calls = []

    @tasks.once
    def doubling_task(job, i, extra):
        calls.append((i, extra, thread_count()))
        if extra == "bad":
            raise np.linalg.LinAlgError("cluster 2 did not converge")
        return {"twice": 2 * i}

    job = SimpleNamespace(work=place_of(memory("work")), run="mine", threads=1)
    for found in (False, True):
        result = doubling_task(job, 3, "x")
        assert (result["twice"], result["found"]) == (6, found)
    doubling_task(job, 4, "y")
    job.run = "another"
    doubling_task(job, 3, "z")
    assert calls == [(3, "x", 1), (4, "y", 1), (3, "z", 1)]
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="doubling 7, in which clusters"):
            doubling_task(job, 7, "bad")


@pytest.fixture
def unfinished(url):
    """Return a function that stops a call of `coarsen` before a kind of task, and returns it."""

    def before(kind):
        src = dist.to_store(url("src"), grid_sheaf(9), part_bytes=2000)
        P = sc.select(grid_sheaf(9), 9)

        def call():
            return dist.coarsen(src, url("out"), P, 3, n_shards=3)

        with power_cut(kind, at=1):
            call()
        return call

    return before


def test_a_source_written_again_during_a_run_raises(url, monkeypatch):
    src, split = dist.to_store(url("src"), grid_sheaf(4)), tasks.split_task

    def split_another(job, p):
        src.place.remove()
        dist.to_store(url("src"), grid_sheaf(4))
        return split(job, p)

    monkeypatch.setattr(tasks, "split_task", split_another)
    with pytest.raises(StoreError, match="has been written again"):
        dist.coarsen(src, url("out"), FOURS, 2)


@pytest.mark.parametrize("damage", ["altered", "gone"])
@pytest.mark.parametrize(("kind", "folder"), [("shard_task", "buckets"), ("border_task", "halo")])
def test_damaged_or_missing_files_of_other_tasks_raise(kind, folder, damage, unfinished, url):
    call = unfinished(kind)
    path = min(Path(url("out"), "work", folder).iterdir())
    held = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(held[:20] + bytes([held[20] ^ 1]) + held[21:])
    with pytest.raises(StoreError, match=f"work/{folder}.*(damaged|missing)"):
        call()
    path.write_bytes(held)
    C = call()
    assert C.report["tasks_found"] >= len(C.fine.parts)
    assert C.verify().passed


def test_a_task_that_runs_twice_leaves_its_first_files_as_they_are(unfinished, url):
    """Another run of a task may read them while it runs again, or after it was killed."""
    call = unfinished("shard_task")
    folder = Path(url("out"), "work/buckets")
    held = {path: path.read_bytes() for path in folder.iterdir()}
    for note in Path(url("out"), "work/notes").glob("split-*"):
        note.unlink()
    with power_cut("shard_task", at=1):
        call()
    assert len(list(folder.iterdir())) == 2 * len(held) > 2
    assert all(path.read_bytes() == content for path, content in held.items())


def test_swapped_buckets_raise(url):
    """The two parts have the same layout, and the checksums of both files are correct."""
    pieces = [([[k, k + 1]], 1, [1.0 + k], [2.0]) for k in (0, 2)]
    src = dist.write_store(url("src"), [1, 1, 1, 1], pieces)
    with power_cut("shard_task", at=1):
        dist.coarsen(src, url("out"), [0, 0, 0, 0], 1)
    swap(*Path(url("out"), "work/buckets").iterdir())
    with pytest.raises(StoreError, match="work/buckets.* is damaged"):
        dist.coarsen(src, url("out"), [0, 0, 0, 0], 1)


def test_objects_that_are_not_clients_raise_type_error(memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="`client` must be a dask.distributed.Client or None"):
        dist.coarsen(src, memory("out"), FOURS, 2, client="tcp://127.0.0.1:8786")
