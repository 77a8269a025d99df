"""Tasks are run once, and detect damaged input; tests/robustness/ has tasks on a cluster."""

from pathlib import Path

import numpy as np
import pytest
import tqdm

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen._support.threads import thread_count
from sheafcoarsen.distributed import tasks
from sheafcoarsen.distributed.executors import Engine
from sheafcoarsen.distributed.location import StoreError, place_of
from sheafcoarsen.distributed.schema import Root
from sheafcoarsen.modes import Internal, Whole
from tests.unit.distributed.cases import grid_sheaf, power_cut, swap


def job_at(url, **options):
    given = {
        "source": Root(place_of(url("src")), "the source"),
        "out": Root(place_of(url("out")), "the result"),
        "run": "mine",
        "operator": Internal(),
        "rule": None,
        "singular": False,
        "loops": True,
        "compress": False,
        "whole": Whole(False, False),
    }
    return tasks.Job(**{**given, **options})


def test_a_task_runs_once_per_run(memory):
    calls = []

    @tasks.once
    def doubling_task(job, i, extra):
        calls.append((i, extra, thread_count()))
        return {"twice": 2 * i}

    job = job_at(memory, threads=1)
    first = doubling_task(job, 3, "x")
    assert first["twice"] == 6
    assert not first["found"]
    again = doubling_task(job, 3, "x")
    assert (again["twice"], again["found"]) == (6, True)
    doubling_task(job, 4, "y")
    doubling_task(job_at(memory, run="another", threads=1), 3, "z")
    assert calls == [(3, "x", 1), (4, "y", 1), (3, "z", 1)]


def test_failing_tasks_leave_no_note(memory):
    @tasks.once
    def failing_task(job, i):
        raise np.linalg.LinAlgError("cluster 2 did not converge")

    job = job_at(memory)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="failing 7, in which clusters"):
            failing_task(job, 7)


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


def test_a_source_written_again_during_a_run_raises(url):
    src = dist.to_store(url("src"), grid_sheaf(4))
    job = job_at(url, source=src.root)
    assert job.opened().n_edges == src.n_edges
    src.place.remove()
    dist.to_store(url("src"), grid_sheaf(4))
    with pytest.raises(StoreError, match="has been written again"):
        job.opened()


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


# ---------------------------------------------------------------- without a cluster


def test_local_tasks_run_once_and_get_results_of_others():
    calls = []

    def work_task(job, i, inputs):
        calls.append(i)
        return {"job": job, "i": i, "inputs": [found["i"] for found in inputs]}

    here = Engine(None)
    with tqdm.tqdm(total=3, disable=False) as here.shown:
        first = here.start(work_task, "job", 0, [])
        second = here.start(work_task, "job", 1, [first])
        third = here.start(work_task, "job", 2, [first, second])
        results = here.results([third, first, second])
        assert here.shown.n == 3
        assert here.results([]) == []
    assert calls == [0, 1, 2]
    assert [result["i"] for result in results] == [2, 0, 1]
    assert results[0] == {"job": "job", "i": 2, "inputs": [0, 1]}


def test_objects_that_are_not_clients_raise_type_error():
    assert Engine(None).threads is None
    with pytest.raises(TypeError, match="`client` must be a dask.distributed.Client or None"):
        Engine("tcp://127.0.0.1:8786")
