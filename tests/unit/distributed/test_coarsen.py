"""`coarsen` from store to store: the same bits as in memory, and the content of `out`."""

import json
import re
import shutil
import time
import warnings
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed import _coarsen
from sheafcoarsen.distributed.plan import Plan
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import (
    FOURS,
    coarsened_twice,
    differences,
    grid_sheaf,
    power_cut,
    ragged_sheaf,
)

RULES = [
    3,
    [5, 0, 1, 2, 3, 4, 2, 1, 0, 9],
    sc.ranks.budget(25),
    sc.ranks.below(2.0),
    sc.ranks.gap(4),
    sc.ranks.kernel(),
    sc.ranks.fixed(2).whole_multiplets(),
    0,
]


def ragged(rank, dtype=np.float64, **options):
    F = ragged_sheaf(dtype, n=60, m=150)
    return F, sc.select(F, 10), rank, options


def one_large_edge_stalk():
    """The chunk size of compression depends on the largest stalk, which is in a single shard."""
    rng = np.random.default_rng(0)
    edges = np.array([[k, k + 1] for k in range(11)] + [[0, 6], [0, 6], [0, 6]])
    edge_dims = np.full(14, 90)
    edge_dims[2] = 300
    data = [rng.standard_normal(2 * edge_dims.sum()) for _ in range(2)]
    F = sc.CellularSheaf.from_flat(edges, *data, np.full(12, 2), edge_dims)
    return F, sc.Partition(np.arange(12) // 3), 3, {"n_shards": 4}


LARGE = sc.CellularSheaf.random(nx.path_graph(64), 4, 5, seed=0)


def unequal_clusters():
    """The matrix of one cluster is reduced to tridiagonal form first, that of the other is not."""
    return LARGE, sc.Partition(np.minimum(np.arange(64) // 16, 1)), [1, 100], {"n_shards": 2}


def nearly_equal_spectra(rank):
    """In single precision, scores of the second cluster round to those of the first."""
    low = np.float32(0.01)
    maps = np.array([1, low, 1, np.nextafter(low, np.float32(0))], np.float32).reshape(-1, 1, 1)
    F = sc.CellularSheaf([[0, 1], [1, 2], [3, 4], [4, 5]], maps, maps)
    return F, sc.Partition([0, 0, 0, 1, 1, 1]), rank, {"n_shards": 2}


def extreme(edges, labels, **options):
    m = len(edges)
    edges, data = np.array(edges, int).reshape(-1, 2), np.arange(1.0, 2 * m + 1)
    F = sc.CellularSheaf.from_flat(edges, data, 2 * data, np.ones(len(labels), int), np.full(m, 2))
    return F, sc.Partition(labels), 2, {"n_shards": 2, **options}


PRINCIPAL = {"local_operator": "principal"}
TRIANGLE = [[0, 1], [1, 2], [0, 2]]
CASES = {
    **{str(rule): partial(ragged, rule) for rule in RULES},
    **{f"{rule}, principal": partial(ragged, rule, **PRINCIPAL) for rule in RULES[::2]},
    "single precision": partial(ragged, 3, np.float32),
    "a budget for nearly equal spectra": partial(nearly_equal_spectra, sc.ranks.budget(5)),
    "a bound between them": partial(nearly_equal_spectra, sc.ranks.below(0.00014999624064)),
    "not compressed, one shard": partial(ragged, 3, compress=False, n_shards=1),
    "complex": partial(ragged, 3, np.complex128, n_shards=8),
    "one large edge stalk": one_large_edge_stalk,
    "unequal clusters": unequal_clusters,
    "no vertices": partial(extreme, [], []),
    "no edges": partial(extreme, [], [0, 0, 1]),
    "no edges, principal": partial(extreme, [], [0, 0, 1], **PRINCIPAL),
    "one vertex": partial(extreme, [[0, 0]], [0]),
    "one cluster each": partial(extreme, TRIANGLE, [0, 1, 2]),
    "one cluster each, principal": partial(extreme, TRIANGLE, [0, 1, 2], **PRINCIPAL),
    "one cluster": partial(extreme, TRIANGLE, [0, 0, 0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:`ranks.budget:sheafcoarsen.SingularProblemWarning")
def test_coarsenings_have_the_same_bits_as_in_memory(name, memory):
    F, P, rank, options = CASES[name]()
    C, D = coarsened_twice(memory, F, P, rank, **options)
    assert (D.sheaf.dtype, D.sheaf.largest_entry) == (C.sheaf.dtype, C.sheaf.largest_entry)


def test_only_rules_that_need_whole_spectra_raise_for_huge_clusters(memory, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)
    F, P = sc.CellularSheaf.constant(nx.path_graph(100)), sc.Partition(np.zeros(100, int))
    src = dist.to_store(memory("src"), F)
    D = dist.coarsen(src, memory("out"), P, 3)
    assert differences(sc.coarsen(F, P, 3, compress=True), D.load()) == []
    for rank in (sc.ranks.gap(3), sc.ranks.kernel()):
        with pytest.raises(ValueError, match="a rule that looks at whole spectra requires dense"):
            dist.coarsen(src, memory("other"), P, rank)


def test_spectra_of_large_clusters_have_the_same_bits_as_in_memory(monkeypatch, memory):
    """All clusters together are worth a reduction to tridiagonal form, those of a shard are not."""
    seen, ranks = [], sc.ranks.Gap.ranks
    monkeypatch.setattr(
        sc.ranks.Gap, "ranks", lambda rule, found: seen.append(found.scores) or ranks(rule, found)
    )
    P = sc.Partition(np.arange(64) // 16)
    coarsened_twice(memory, LARGE, P, sc.ranks.gap(3), n_shards=4)
    assert seen[0].tobytes() == seen[1].tobytes()


@pytest.mark.parametrize(("loops", "local_operator"), [(True, "internal"), (False, "principal")])
def test_a_second_level_has_the_same_bits_as_in_memory(loops, local_operator, memory):
    F = grid_sheaf(10)
    P = sc.select(F, 20)
    C = sc.coarsen(F, P, 3, loops=loops, compress=True)
    Q = sc.select(C.sheaf, 4)
    with ties_allowed():
        options = {"loops": loops, "local_operator": local_operator}
        D = sc.coarsen(C.sheaf, Q, 4, compress=True, **options)
        one = dist.coarsen(
            dist.to_store(memory("src"), F, 5000), memory("one"), P, 3, loops=loops, n_shards=5
        )
        two = dist.coarsen(one.sheaf, memory("two"), Q, 4, n_shards=3, **options)
    assert differences(D, two.load()) == []


def warnings_of(coarsen, *arguments, **options):
    """Return the messages and file names of all warnings of a call, and its result."""
    with warnings.catch_warnings(record=True, action="always") as said:
        C = coarsen(*arguments, **options)
    return [(str(found.message), found.filename) for found in said], C


LINE, ONES = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]], dim=2), [[[1.0]], [[1.0]]]
EMPTY = sc.CellularSheaf([[0, 1], [0, 1]], [[[1.0]], [[2.0]]], ONES)
ZERO = sc.CellularSheaf.from_flat([[0, 1]], [], [], [0, 0], 0)
WARNINGS = [
    (LINE, 1, "first in cluster 0. .*eigenvalue is 0 in"),
    (EMPTY, sc.ranks.kernel(), "no local operator has eigenvalue 0"),
    # discards in two clusters, and in one
    *((LINE, sc.ranks.budget(k), "discards modes of eigenvalue 0 in ") for k in (1, 3)),
    (LINE, sc.ranks.budget(1).whole_multiplets(), "discards modes of eigenvalue 0 in "),
    (LINE, sc.ranks.budget(4), None),
    (LINE, 2, None),
    (ZERO, sc.ranks.kernel(), None),
]


@pytest.mark.parametrize(("F", "rank", "message"), WARNINGS)
def test_warnings_are_those_of_coarsening_in_memory(F, rank, message, memory):
    src, P = dist.to_store(memory("src"), F), sc.Partition(np.arange(F.n_vertices) // 2)
    wanted, _ = warnings_of(sc.coarsen, F, P, rank)
    said, _ = warnings_of(dist.coarsen, src, memory("out"), P, rank, n_shards=2)
    assert said == wanted
    assert any(re.search(message or "^", text) for text, _ in said) == (message is not None)
    assert {filename for _, filename in said} <= {__file__}


@pytest.mark.parametrize(("sections", "ranks"), [(False, [0, 1]), (True, [3, 1]), (False, [1, 2])])
def test_ties_at_eigenvalue_zero_are_found_by_cluster(sections, ranks, memory):
    """Modes of eigenvalue 0 are discarded in the second cluster, unless it keeps both."""
    rng, I = np.random.default_rng(0), np.eye(2)  # noqa: E741
    triangle = [I] * 6 if sections else list(rng.standard_normal((6, 2, 2)))
    F = sc.CellularSheaf([*TRIANGLE, [3, 4]], [*triangle[:3], I], [*triangle[3:], I])
    src, P = dist.to_store(memory("src"), F), sc.Partition([0, 0, 0, 1, 1])
    wanted, C = warnings_of(sc.coarsen, F, P, ranks)
    said, D = warnings_of(dist.coarsen, src, memory("out"), P, ranks, n_shards=2)
    assert said == wanted
    assert np.array_equal(D._discards_zero, C.modes._discards_zero)
    assert any("eigenvalue is 0 in cluster 1" in text for text, _ in said) == (ranks[1] == 1)


# ---------------------------------------------------------------- content of `out`


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


KINDS = ["plan", "split_task", "shard_task", "border_task", "sealed", "clean"]


@pytest.mark.parametrize(
    ("kind", "rank"), [*((kind, 3) for kind in KINDS), ("spectra_task", sc.ranks.gap(3))], ids=str
)
def test_unfinished_runs_are_resumed(kind, rank, call, url):
    """Wherever a run stopped, its store is not valid, and finished tasks are not repeated."""
    with power_cut(kind):
        call(rank)
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
    folders = {path.name for path in Path(url("out")).iterdir()}
    assert "work" not in folders
    assert {path.name for path in Path(url("out"), "parts").iterdir()} - {"zarr.json"} == set(
        C.sheaf.parts
    )


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
    assert C.report["shards"] == 4
    assert C.report["tasks_found"] == len(C.fine.parts) + 1


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


def test_temporary_files_of_a_run_killed_at_its_end_are_removed(call, url, monkeypatch):
    work = Path(url("out"), "work")
    done = _coarsen.Run.done
    with monkeypatch.context() as context:
        context.setattr(_coarsen.Run, "done", lambda run: done(run) and 1 / 0)
        with pytest.raises(ZeroDivisionError):
            call()
    assert work.exists()
    first = dist.open_coarsening(url("out"))
    assert call().sheaf.header.id == first.sheaf.header.id
    assert not work.exists()


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
