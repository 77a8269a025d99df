"""Runs of `coarsen` (on a cluster: tests/robustness): `out`, interruptions, damaged input."""

import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen._support.threads import thread_count
from sheafcoarsen.distributed import _coarsen, tasks
from sheafcoarsen.distributed.location import StoreError, place_of
from sheafcoarsen.distributed.plan import Plan
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import FOURS, differences, grid_sheaf, power_cut, swap


@pytest.fixture
def call(url):
    F = grid_sheaf(9)
    src, P = dist.to_store(url("src"), F, part_bytes=2000), sc.select(F, 9)

    def coarsen(rank=3, n_shards=3, **options):
        return dist.coarsen(src, url("out"), P, rank, n_shards=n_shards, **options)

    return coarsen


def test_a_finished_result_records_its_call_and_is_returned_unchanged(call, url):
    first = call()
    attributes = json.loads(Path(url("out"), "zarr.json").read_text())["attributes"]
    assert attributes["source"]["url"] == first.fine.url
    settings = [attributes[name] for name in ("local_operator", "loops", "compress")]
    assert settings == ["internal", True, True]
    assert attributes["report"]["shards"] == 3
    assert not Path(url("out"), "work").exists()
    written = {path: path.stat().st_mtime_ns for path in Path(url("out")).rglob("*")}
    again = call(n_shards=None)
    assert again.sheaf.header.id == first.sheaf.header.id
    assert written == {path: path.stat().st_mtime_ns for path in Path(url("out")).rglob("*")}


def test_an_out_with_other_content_raises(call, url):
    call()
    with pytest.raises(FileExistsError, match="is the result of another call"):
        call(rank=2)
    with pytest.raises(FileExistsError, match="is the source"):
        dist.coarsen(dist.open_store(url("src")), url("src"), np.zeros(81, int), 1)
    with pytest.raises(TypeError, match="`out` must be a path or a URL, got NoneType"):
        dist.coarsen(dist.open_store(url("src")), None, np.zeros(81, int), 1)
    mine = Path(url("mine"))
    mine.mkdir()
    (mine / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (mine / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="exists and holds other files"):
        dist.coarsen(dist.open_store(url("src")), mine, np.zeros(81, int), 1)
    assert (mine / "thesis.txt").read_text() == "all of it"
    assert sorted(path.name for path in mine.iterdir()) == ["thesis.txt", "zarr.json"]


def test_an_out_inside_the_source_raises(url, memory):
    for place in (url, memory):
        src = dist.to_store(place("st"), grid_sheaf(4))
        with pytest.raises(ValueError, match="`out` = .*st/f/c is inside the source"):
            dist.coarsen(src, place("st/f/c"), FOURS, 2)
        with pytest.raises(ValueError, match="is inside the source"):
            dist.coarsen_levels(src, place("st/levels"), rank=2)
        dist.coarsen(src, place("st-coarse"), FOURS, 2)


def test_a_source_written_again_since_it_was_opened_raises(url):
    src = dist.to_store(url("st"), grid_sheaf(4))
    shutil.rmtree(url("st"))
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.coarsen(src, url("out"), FOURS, 2)
    dist.to_store(url("st"), grid_sheaf(4))
    for again in (
        lambda: dist.coarsen(src, url("out"), FOURS, 2),
        lambda: dist.coarsen_levels(src, url("out"), rank=2),
        lambda: dist.estimate(src, FOURS, 2),
        lambda: dist.laplacian_operator(src),
    ):
        with pytest.raises(dist.StoreError, match="written again since it was opened: open it"):
            again()
    assert not Path(url("out")).exists()
    dist.coarsen(dist.open_store(url("st")), url("out"), FOURS, 2)
    assert dist.open_coarsening(url("out")).fine.n_vertices == 16


def test_storage_options_of_the_source_do_not_apply_to_a_local_disk(memory, url):
    src = dist.to_store(memory("src"), grid_sheaf(4), use_listings_cache=False)
    C = dist.coarsen(src, url("out"), FOURS, 2)
    assert (src.place.options, C.sheaf.place.options) == ({"use_listings_cache": False}, {})
    C = dist.coarsen(src, memory("out"), FOURS, 2)
    assert C.sheaf.place.options == src.place.options


def test_reported_seconds_are_those_of_the_last_run(call, monkeypatch):
    write = Plan.write
    with power_cut("shard_task"), monkeypatch.context() as context:
        context.setattr(Plan, "write", lambda *args: time.sleep(3) or write(*args))
        call()
    report = call().report
    assert report["plan_seconds"] <= report["seconds"]


@pytest.mark.parametrize(
    "kind", ["plan", "split_task", "shard_task", "border_task", "sealed", "clean", "spectra_task"]
)
def test_unfinished_runs_are_resumed(kind, call, url):
    """Wherever a run stopped, its store is not valid, and finished tasks are not repeated."""
    rank = sc.ranks.gap(3) if kind == "spectra_task" else 3
    with power_cut(kind):
        call(rank)
    assert Path(url("out"), "work").exists()
    if kind != "clean":
        with pytest.raises(dist.StoreError):
            dist.open_store(url("out"))
        with pytest.raises(FileExistsError, match="unfinished run of another call"):
            call(5)
    notes = {path: path.stat().st_mtime_ns for path in Path(url("out")).rglob("notes/*")}
    if kind == "border_task":  # imitate files of a task that was killed before it wrote its note
        Path(url("out"), "parts/inner-000001-killed").mkdir()
    C = call(rank)
    assert C.report["tasks_found"] == (0 if kind == "clean" else len(notes))
    total = C.report["tasks_done"] + C.report["tasks_found"]
    assert total >= len(C.fine.parts) + 3
    with ties_allowed():
        F = grid_sheaf(9)
        assert differences(sc.coarsen(F, sc.select(F, 9), rank, compress=True), C.load()) == []
    assert not Path(url("out"), "work").exists()
    left = {path.name for path in Path(url("out"), "parts").iterdir()}
    assert left - {"zarr.json"} == set(C.sheaf.parts)


def test_resumed_runs_keep_their_number_of_shards(call, url):
    with power_cut("shard_task"):
        call(2, n_shards=50)
    assert call(2, n_shards=50).report["shards"] == 9  # the number of clusters
    shutil.rmtree(url("out"))
    with power_cut("shard_task"):
        call(n_shards=4)
    with pytest.raises(FileExistsError, match="of this call with 4 shards: omit `n_shards`"):
        call(n_shards=2)
    C = call(n_shards=None)
    assert (C.report["shards"], C.report["tasks_found"]) == (4, len(C.fine.parts) + 1)


def test_the_number_of_shards_of_an_unfinished_run_is_written_once(call, url):
    """If it is lost all the same, finished tasks of another number of shards do not count."""
    with power_cut("shard_task"):
        call()
    note = Path(url("out"), "work/plan.json")
    written = note.stat().st_mtime_ns
    with power_cut("sealed"):
        call()
    assert note.stat().st_mtime_ns == written
    note.write_bytes(note.read_bytes()[:5])
    C = call(n_shards=2)
    assert (C.report["shards"], C.report["tasks_found"]) == (2, 0)
    F = grid_sheaf(9)
    assert differences(sc.coarsen(F, sc.select(F, 9), 3, compress=True), C.load()) == []


REFUSED = [
    (3, "_support.checks.physical_memory", lambda: 2.5e8, MemoryError, "use more clusters"),
    (sc.ranks.gap(3), "modes.problems.MAX_DENSE", 5, ValueError, "has dimension 2"),
]


@pytest.mark.parametrize(("rank", "name", "value", "error", "message"), REFUSED)
def test_runs_that_fail_before_they_begin_leave_no_files(
    rank, name, value, error, message, call, url, monkeypatch
):
    """Another call, which the message suggests, can then use the same location."""

    def refused():
        with monkeypatch.context() as context:
            context.setattr(f"sheafcoarsen.{name}", value)
            with pytest.raises(error, match=message):
                call(rank)

    refused()
    assert not Path(url("out"), "work").exists()
    with power_cut("shard_task"):
        call(rank)
    refused()  # a run that is resumed keeps its files
    assert call(rank).report["tasks_found"] > 0


def test_a_result_finished_by_another_run_is_returned(call, monkeypatch):
    held, ids = _coarsen.exclusive, []

    def later(place):
        monkeypatch.setattr(_coarsen, "exclusive", held)
        ids.append(call().sheaf.header.id)
        return held(place)

    monkeypatch.setattr(_coarsen, "exclusive", later)
    assert call().sheaf.header.id == ids[0]


def test_progress_is_printed(call, capsys):
    call(progress=True)
    said = capsys.readouterr().err
    for word in ("source", "memory", "scratch", "coarsen: 100%", "tasks run", "SheafStore("):
        assert word in said
    with pytest.raises(TypeError, match="`progress` must be True or False"):
        call(progress=1)


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
def test_damaged_or_missing_files_of_other_tasks_raise(kind, folder, damage, call, url):
    with power_cut(kind, at=1):
        call()
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


def test_a_task_that_runs_twice_leaves_its_first_files_as_they_are(call, url):
    """Another run of a task may read them while it runs again, or after it was killed."""
    with power_cut("shard_task", at=1):
        call()
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
