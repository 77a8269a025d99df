"""`save` and `load`: round trips are exact, and a bad file is one clear error.

A crash leaves the old file whole.
"""

import contextlib
import copy
import functools
import io
import os
import pathlib
import re
import tempfile
import tracemalloc
import zipfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.io.npz import VERSION
from tests.support.strategies import sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def nan_first(array):
    array = array.copy()
    array[0] = np.nan
    return array


def labels(text):
    return np.frombuffer(text.encode(), np.uint8)


def same_sheaf(F, G):
    assert F.dtype == G.dtype
    assert F.vertex_labels == G.vertex_labels
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(F, name), getattr(G, name))
        assert not getattr(G, name).flags.writeable


def same_coarsening(C, D):
    same_sheaf(C.fine, D.fine)
    same_sheaf(C.sheaf, D.sheaf)
    np.testing.assert_array_equal(C.partition.labels, D.partition.labels)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(C.prolongation, name), getattr(D.prolongation, name))
    assert (C.crossing_rows is None) == (D.crossing_rows is None)
    if C.crossing_rows is not None:
        np.testing.assert_array_equal(C.crossing_rows, D.crossing_rows)
    np.testing.assert_array_equal(C.restored_loops, D.restored_loops)
    assert C.loops == D.loops
    assert (C.modes is None) == (D.modes is None)
    if C.modes is not None:
        assert C.modes.local_operator == D.modes.local_operator
        assert C.modes.singular is D.modes.singular
        for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms"):
            np.testing.assert_array_equal(getattr(C.modes, name), getattr(D.modes, name))


@given(
    sheaves_with_partitions(),
    st.sampled_from(["internal", "principal", "oversampled", "basis"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=25)
def test_round_trip_is_exact(tmp_path_factory, case, kind, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    sc.save(path, F)
    same_sheaf(F, sc.load(path))
    sc.save(path, P)
    np.testing.assert_array_equal(sc.load(path).labels, P.labels)
    if kind == "basis":
        dims = [int(F.vertex_dims[P.cluster(a)].sum()) for a in range(P.n_clusters)]
        C = sc.coarsen(
            F, P, basis=[np.eye(n, min(n, 2)) for n in dims], loops=loops, compress=compress
        )
    else:
        C = sc.coarsen(F, P, 2, local_operator=kind, loops=loops, compress=compress)
    sc.save(path, C)
    D = sc.load(path)
    same_coarsening(C, D)
    assert sc.verify(D).passed
    deeper = sc.coarsen(C.sheaf, sc.Partition(np.zeros(P.n_clusters, int)), 1)
    sc.save(path, deeper)  # its fine sheaf is a coarse one
    same_coarsening(deeper, sc.load(path))


def test_a_loaded_coarsening_is_refreshed_like_the_one_that_was_saved(tmp_path):
    F = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=5)
    P = sc.Partition(np.arange(36) // 12)
    bent = F.with_maps(F.tail_data, F.head_data * np.linspace(1, 2, len(F.head_data)))
    C = sc.coarsen(F, P, sc.ranks.kernel(), compress=True)
    C2 = C.recoarsen(bent)
    assert C2.restored_loops.tolist() == [0, 1, 2]
    for saved in (C, C2):
        sc.save(tmp_path / "c.npz", saved)
        loaded = sc.load(tmp_path / "c.npz")
        same_coarsening(saved, loaded)
        assert loaded.modes.singular
        for sheaf in (F, bent):
            same_coarsening(saved.recoarsen(sheaf), loaded.recoarsen(sheaf))


@given(
    sheaves_with_partitions(),
    st.sampled_from(["internal", "principal"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=15)
def test_a_hierarchy_makes_the_round_trip(tmp_path_factory, case, operator, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    down = [
        P,
        sc.Partition(np.arange(P.n_clusters) // 2),
        sc.Partition(np.zeros((P.n_clusters + 1) // 2, int)),
    ]
    for n_levels in (0, 3):
        H = sc.coarsen_levels(
            F,
            partitions=down[:n_levels],
            rank=3,
            local_operator=operator,
            loops=loops,
            compress=compress,
        )
        F2 = F.with_maps(F.tail_data + F.tail_data.dtype.type(1), F.head_data)
        for saved in (H, H.recoarsen(F2)):
            sc.save(path, saved)
            loaded = sc.load(path)
            assert isinstance(loaded, sc.Hierarchy)
            assert len(loaded) == n_levels
            same_sheaf(saved.fine, loaded.fine)
            assert (loaded.stopped_because, loaded.rebuilt_levels) == (
                saved.stopped_because,
                saved.rebuilt_levels,
            )
            assert np.isnan(loaded.seconds).all()
            for i, (C, D) in enumerate(zip(saved, loaded, strict=True)):
                same_coarsening(C, D)
                assert D.fine is loaded.sheaves[i]
            for C, D in zip(saved.recoarsen(F), loaded.recoarsen(F), strict=True):
                same_coarsening(C, D)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_levels": 3}, r"has no array 'sheaves.3.edges'"),
        ({"n_levels": -1}, "`n_levels` must be an integer of at least 0"),
        ({"n_levels": [2]}, "`n_levels` must be an integer of at least 0"),
        ({"n_levels": 1.5}, "`n_levels` must be an integer of at least 0"),
        ({"stopped_because": None}, "has no array 'stopped_because'"),
        ({"sheaves__1__edges": None}, "has no array 'sheaves.1.edges'"),
        ({"sheaves__1__tail_data": nan_first}, "must be finite"),
        ({"levels__1__R__data": None}, "has no array 'levels.1.R.data'"),
        ({"levels__1__R__data": nan_first}, "level 1: R must be finite"),
        (
            {"levels__1__partition__labels": [0, 0]},
            "level 1: its parts do not fit: 3 vertices, a partition of 2 into",
        ),
        ({"levels__0__modes__ranks": [1, 2, 2]}, "level 0: the ranks of its modes"),
    ],
)
def test_damaged_hierarchies(tmp_path, changes, message):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "h.npz"
    sc.save(
        path,
        sc.coarsen_levels(
            F, partitions=[sc.Partition([0, 0, 1, 1, 2, 2]), sc.Partition([0, 0, 1])], rank=2
        ),
    )
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(path)
    assert str(caught.value).startswith(str(path))


def test_files_of_version_1(file):
    """They had no compression, no restored loops, and did not say how modes were computed."""
    C = sc.load(file)
    rewrite(file, version=1, compress=None, restored_loops=None, modes__singular=None)
    same_coarsening(C, sc.load(file))


def test_a_coarse_sheaf_with_tiny_maps_is_not_refused(tmp_path):
    """Exact kernels leave crossing maps of rounding size.

    The limit for a caller's own maps does not hold for them.
    """
    F = sc.CellularSheaf.constant(nx.path_graph(4))
    small = [np.eye(2, 1) * 1e-170, np.eye(2, 1) * 1e-170]
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), basis=small)
    sc.save(tmp_path / "c.npz", C)
    same_sheaf(C.sheaf, sc.load(tmp_path / "c.npz").sheaf)


def test_labels_of_every_kind(tmp_path):
    graph = nx.Graph([((0, "a"), 3), (3, "three"), ("three", (1.5, (True, None)))])
    F = sc.CellularSheaf.constant(graph)
    sc.save(tmp_path / "f.npz", F)
    assert sc.load(tmp_path / "f.npz").vertex_labels == tuple(graph.nodes)


def test_labels_that_cannot_be_saved(tmp_path):
    F = sc.CellularSheaf.constant(nx.Graph([(frozenset({1}), 2)]))
    with pytest.raises(TypeError, match=r"vertex label frozenset.*cannot be saved.*relabel"):
        sc.save(tmp_path / "f.npz", F)
    assert list(tmp_path.iterdir()) == []


def test_the_path_is_used_as_it_is(tmp_path):
    sc.save(tmp_path / "no_ending", sc.Partition([0, 0]))
    sc.save(str(tmp_path / "text.npz"), sc.Partition([0, 1]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["no_ending", "text.npz"]
    assert sc.load(tmp_path / "no_ending").n_clusters == 1


def test_a_crash_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "f.npz"
    sc.save(path, sc.Partition([0, 1, 0]))
    before = path.read_bytes()

    def crash(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(KeyboardInterrupt):
        sc.save(path, sc.Partition([0]))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["f.npz"]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        sc.save(tmp_path / "none" / "f.npz", sc.Partition([0]))
    with pytest.raises(FileNotFoundError):
        sc.load(tmp_path / "none.npz")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(
        TypeError,
        match="`obj` must be a CellularSheaf, a Partition, a Coarsening or a Hierarchy, got nd",
    ):
        sc.save(tmp_path / "f.npz", np.zeros(3))


@pytest.fixture
def file(tmp_path):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2))
    return path


def rewrite(path, **changes):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, value in changes.items():
        name = name.replace("__", ".")
        if value is None:
            arrays.pop(name)
        else:
            arrays[name] = value(arrays[name]) if callable(value) else np.asarray(value)
    with open(path, "wb") as stream:
        np.savez(stream, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "format version 99; this library reads up to 2: upgrade"),
        ({"version": 0}, "format version 0"),
        ({"format": "other"}, "not a sheafcoarsen file"),
        ({"format": None}, "not a sheafcoarsen file"),
        ({"kind": "galaxy"}, "holds a 'galaxy'"),
        ({"fine__edges": None}, "has no array 'fine.edges'"),
        ({"fine__edges": lambda a: a + 4}, r"`edges\[1\]` = .* is out of range for 6 vertices"),
        ({"fine__edges": lambda a: a[:, :1]}, r"`edges` must have shape \(m, 2\)"),
        ({"fine__edges": lambda a: -a}, "negative endpoint"),
        ({"fine__vertex_dims": lambda a: -a}, "`vertex_dims` must not be negative"),
        ({"fine__vertex_dims": lambda a: a * 2**60}, "`vertex_dims` must sum to at most"),
        ({"fine__vertex_dims": lambda a: a[:-1]}, "6 names for 5 vertices"),
        ({"fine__vertex_dims": 3}, "must be one-dimensional"),
        ({"fine__edge_dims": lambda a: a + 1}, "`tail_data` must have shape"),
        ({"fine__tail_data": nan_first}, r"`tail_maps\[0\]` \(edge 0 -> 1\) must be finite"),
        ({"fine__tail_data": lambda a: a.astype(str)}, "got dtype <U"),
        ({"fine__vertex_labels": labels("[1, 2")}, "`vertex_labels` cannot be read"),
        ({"fine__vertex_labels": labels("[1, 2]")}, "2 names for 6 vertices"),
        ({"partition__labels": [0, 0, 0, 0, 1]}, "its parts do not fit"),
        ({"partition__labels": [0, 0, 0, 0, 0, 0]}, "its parts do not fit"),
        ({"R__indptr": lambda a: a[:-1]}, "R does not have 12 rows"),
        ({"R__indptr": lambda a: a[::-1].copy()}, "R does not have 12 rows"),
        ({"R__indices": lambda a: a + 99}, "R does not have 4 columns"),
        ({"R__indices": lambda a: a - 1}, "R does not have 4 columns"),
        ({"R__data": nan_first}, "R must be finite"),
        (
            {
                "R__data": lambda a: a[:1],
                "R__indices": lambda a: a[:1],
                "R__indptr": lambda a: np.minimum(a, 1),
            },
            "full block",
        ),
        ({"crossing_rows": None}, "has no array 'crossing_rows'"),
        (
            {"crossing_rows": [10**6]},
            "`crossing_rows` must be the rows of the fine edges that cross",
        ),
        ({"restored_loops": [2]}, "`restored_loops` must lie in 0 .. 1"),
        ({"compress": "maybe"}, "`compress` must be true or false"),
        ({"modes__singular": [True, False]}, "`modes.singular` must be true or false"),
        ({"modes__ranks": [1, 2]}, "ranks of its modes"),
        ({"modes__scores": [1.0]}, "its modes: `scores` must hold 4 numbers"),
        ({"modes__scores": nan_first}, "its modes: `scores` must be finite"),
        (
            {"modes__scores": lambda a: a.astype(np.float32)},
            "its modes: `scores` must hold 4 numbers of type float64",
        ),
        ({"modes__tied": [0, 1]}, "its modes: `tied` must hold 2 booleans"),
        ({"version": [2]}, r"format version \[2\]"),
        ({"version": 2.0}, "format version 2.0"),
        ({"kind": ["coarsening"]}, "`kind` must be one line of text"),
        ({"kind": "coar\nsening"}, "`kind` must be one line of text"),
        (
            {"fine__vertex_labels": labels("[1, 2, 3, 4, 5, 1]")},
            "names that tell the vertices apart",
        ),
        (
            {"fine__vertex_labels": labels("[1, 2, 3, 4, 5, null]")},
            "names that tell the vertices apart",
        ),
        (
            {"fine__vertex_labels": labels("[1, 2, 3, 4, 5, [1]]")},
            "neither a number nor text nor a tuple",
        ),
        (
            {"fine__vertex_labels": labels('[1, 2, 3, 4, 5, {"a": 1}]')},
            "neither a number nor text nor a tuple",
        ),
        ({"fine__vertex_labels": labels("5")}, "`vertex_labels` cannot be read"),
        ({"fine__vertex_labels": labels("[" * 10**6)}, "`vertex_labels` cannot be read"),
        (
            {"fine__tail_data": lambda a: a * 1e200},
            "its maps have entries up to .* whose squares overflow",
        ),
        (
            {"R__data": lambda a: a * 1e200},
            "the entries of R have entries up to .* whose squares overflow",
        ),
        (
            {"crossing_rows": lambda a: a[::-1].copy()},
            "`crossing_rows` must be the rows of the fine edges that cross",
        ),
        ({"restored_loops": [1, 0]}, "`restored_loops` must lie in 0 .. 1 and ascend"),
        ({"loops": None}, "has no array 'loops'"),
        (
            {"sheaf__edges": lambda a: a[:, ::-1]},
            "does not have the crossing edges of its fine sheaf",
        ),
        ({"modes__local_operator": "spectral"}, "local operator 'spectral'"),
    ],
)
def test_damaged_contents(file, changes, message):
    rewrite(file, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loops": False}, "the loops of its coarse sheaf must"),
        ({"sheaf__edges": lambda a: a[[0, 2, 1]]}, "the loops of its coarse sheaf must"),
        ({"sheaf__edges": lambda a: a[[0, 1, 1]]}, "the loops of its coarse sheaf must"),
        ({"sheaf__edges": lambda a: a[[1, 0, 2]]}, "does not have the crossing edges"),
        ({"sheaf__edges": lambda a: np.maximum(a, 1)}, "does not have the crossing edges"),
    ],
)
def test_coarse_sheaves_that_no_coarsening_makes(tmp_path, changes, message):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 4))
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message):
        sc.load(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([{"a": 1}], dtype=object), "holds object, not numbers or text"),
        (np.zeros(2, [("a", int)]), "not numbers or text"),
        (np.array([b"text"]), "holds .S4, not numbers or text"),
        (np.array(["2020-01-01"], "M8[D]"), "holds datetime64"),
    ],
)
def test_arrays_of_other_types_are_refused(file, array, message):
    rewrite(file, fine__edges=array)
    with pytest.raises(ValueError, match=message):
        sc.load(file)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("something in a file was executed",))


@pytest.mark.parametrize("name", ["format", "fine.edges", "unknown"])
def test_nothing_is_executed(file, name):
    with np.load(file) as archive:
        arrays = {**archive}
    arrays[name] = np.array([Harmful()], dtype=object)
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match="holds object, not numbers or text"):
        sc.load(file)


def npy(header, data=b""):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            npy(HUGE % 10**13),
            r"'fine.edges.npy' is not as long as its shape \(10000000000000,\) says",
        ),
        (npy(HUGE % 10**30), "is not as long as its shape"),
        (npy(HUGE % 2, bytes(8)), "is not as long as its shape"),
        (npy(HUGE % 2, bytes(24)), "is not as long as its shape"),
        (npy(HUGE % -2, bytes(16)), "is not as long as its shape"),
        (npy(HUGE % "-2, -1", bytes(16)), "is not as long as its shape"),
        (npy(HUGE % "0, 1000000000000, 3"), "`edge_dims` must have one entry per edge, 0"),
        (
            npy("{'descr': '<U100000000', 'fortran_order': False, 'shape': (), }"),
            "is not as long as its shape",
        ),
        (
            npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
            "truncated or damaged",
        ),
        (
            npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\1\2"),
            "neither true nor false",
        ),
        (npy("{'descr': '<f8', " + "(" * 500), "truncated or damaged"),
        (npy("__import__('os').abort()"), "truncated or damaged"),
        (
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }", bytes(8)),
            "truncated or damaged|edges",
        ),
        (b"\x93NUMPY\x09\x00", "is not of .npy version 1.0"),
        (b"", "truncated or damaged"),
    ],
)
def test_headers_that_claim_what_is_not_there(file, content, message):
    replace_member(file, "fine.edges.npy", content)
    with pytest.raises(ValueError, match=message), little_memory():
        sc.load(file)


def replace_member(path, name, content):
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for other, old in members.items():
            archive.writestr(other, content if other == name else old)


@contextlib.contextmanager
def little_memory(limit=2**26):
    """See that at most ``limit`` bytes are allocated, by Python and numpy, even for a moment."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit


def test_compressed_files_are_refused(file):
    with np.load(file) as archive:
        arrays = {**archive}
    arrays["fine.edges"] = np.zeros((2**22, 2), np.int64)  # 64 MiB in a small file
    np.savez_compressed(file, **arrays)
    assert file.stat().st_size < 2**18
    with (
        pytest.raises(
            ValueError, match=r"'format.npy' is compressed; numpy\.savez, not savez_compressed"
        ),
        little_memory(),
    ):
        sc.load(file)


def test_members_that_share_their_bytes_are_refused(file):
    """A zip's directory may name the same bytes many times over."""
    with zipfile.ZipFile(file, "a") as archive:
        big = archive.infolist()[3]
        for k in range(200):
            other = copy.copy(big)
            other.filename = f"copy{k}.npy"
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
        archive._didModify = True
    with pytest.raises(ValueError, match="its arrays are more than the file holds"):
        sc.load(file)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"not a zip at all", b"PK\x03\x04 and then rubbish"]
)
def test_foreign_files(tmp_path, content):
    path = tmp_path / "f.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"f\.npz: (not a sheafcoarsen file|truncated or damaged)"):
        sc.load(path)


def test_a_graph_file(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("0 1\n1 2\n")
    with pytest.raises(
        ValueError, match=r"g\.txt: not a sheafcoarsen file .*; read_graph and read_g2o read graphs"
    ):
        sc.load(path)


def test_a_zip_of_something_else(tmp_path):
    path = tmp_path / "f.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="not a sheafcoarsen file"):
        sc.load(path)


def test_a_folder(tmp_path):
    with pytest.raises(OSError, match=os.strerror(21) if os.name == "posix" else ""):
        sc.load(tmp_path)


# ---------------------------------------------------------------- fuzzing


@functools.cache
def saved(kind):
    """Return (an object, the bytes of its file)."""
    F = sc.CellularSheaf.random(
        nx.MultiGraph([(0, "b"), ("b", 2), (2, 0), (0, 0), (2, 0)]), 2, 1, seed=5
    )
    C = sc.coarsen(F, sc.Partition([0, 0, 1]), 2, compress=kind == "compressed")
    objects = {
        "sheaf": F,
        "partition": C.partition,
        "coarsening": C,
        "compressed": C,
        "basis": sc.coarsen(F, C.partition, basis=[np.eye(4, 2), np.eye(2)]),
        "hierarchy": sc.coarsen_levels(F, partitions=[C.partition, sc.Partition([0, 0])], rank=2),
    }
    with tempfile.TemporaryDirectory() as folder:
        sc.save(f"{folder}/file.npz", objects[kind])
        return objects[kind], pathlib.Path(folder, "file.npz").read_bytes()


KINDS = st.sampled_from(["sheaf", "partition", "coarsening", "compressed", "basis", "hierarchy"])


def check_valid(value):
    """See that a loaded object is whole.

    Its numbers are finite, and what it should be able to do it does.
    """
    if isinstance(value, sc.Hierarchy):
        for C in value:
            check_valid(C)
        assert repr(value)
        return check_valid(value.fine)
    if isinstance(value, sc.Partition):
        assert value.sizes.min(initial=1) > 0
        return None
    if isinstance(value, sc.Coarsening):
        check_valid(value.fine)
        check_valid(value.sheaf)
        assert np.isfinite(value.lift(np.ones(value.sheaf.dim_c0))).all()
        assert np.isfinite(value.pool(np.ones(value.fine.dim_c0))).all()
        again = value.recoarsen(value.fine)
        np.testing.assert_array_equal(again.ranks, value.ranks)
        assert repr(value)
        return None
    assert np.isfinite(sc.laplacian(value).data).all()
    assert np.isfinite(sc.energy(value, np.ones(value.dim_c0)))
    return None


def loads_or_is_refused(path):
    """Load a file: the result is either an object that is whole, or one clear error."""
    try:
        value = sc.load(path)
    except ValueError as error:
        assert type(error) is ValueError
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        check_valid(value)


@given(KINDS, st.data())
@settings(max_examples=150)
def test_fuzzed_bytes_load_or_are_one_clear_error(tmp_path_factory, kind, data):
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    content = bytearray(saved(kind)[1])
    place = st.integers(0, len(content) - 1)
    for change in data.draw(
        st.lists(
            st.sampled_from(["byte", "bit", "insert", "delete", "copy", "truncate"]), max_size=4
        )
    ):
        at = data.draw(place) % max(len(content), 1)
        if change == "byte":
            content[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif change == "bit" and content:
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        elif change == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        elif change == "delete":
            del content[at : at + data.draw(st.integers(1, 99))]
        elif change == "copy":
            start = data.draw(place)
            content[at : at + 30] = content[start : start + 30]
        else:
            del content[at:]
    path.write_bytes(bytes(content))
    loads_or_is_refused(path)


@given(KINDS, st.data())
@settings(max_examples=150)
def test_fuzzed_members_load_or_are_one_clear_error(tmp_path_factory, kind, data):
    """Bytes of a member are changed and its checksum with them.

    So numpy's headers and the numbers themselves are hit.
    """
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    path.write_bytes(saved(kind)[1])
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        name = data.draw(st.sampled_from(names))
        content = bytearray(archive.read(name))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b"0123456789<>fiUO")
        )
    replace_member(path, name, bytes(content))
    loads_or_is_refused(path)


def of_length(n):
    return lambda a: np.resize(a, (max(len(a) + n, 0), *a.shape[1:])) if a.ndim else a[None]


def entry(value):
    def change(a):
        a = a.copy()
        a.reshape(-1)[a.size // 2 : a.size // 2 + 1] = value
        return a

    return change


CHANGES = {
    "missing": lambda a: None,
    "text": lambda a: np.array(["text"] * a.size).reshape(a.shape),
    "single": lambda a: a.astype(np.float32) if a.dtype.kind in "biuf" else a,
    "complex": lambda a: a.astype(complex) if a.dtype.kind in "biuf" else a,
    "half": lambda a: a.astype(np.float16) if a.dtype.kind in "biuf" else a,
    "other endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "narrow": lambda a: a.astype(np.int8) if a.dtype.kind in "biu" else a,
    "unsigned": lambda a: a.astype(np.uint64) if a.dtype.kind in "biu" else a,
    "scalar": lambda a: a.reshape(-1)[0] if a.size else np.array(0),
    "deeper": lambda a: a[None],
    "by columns": np.asfortranarray,
    "empty": lambda a: a[:0] if a.ndim else np.zeros(0),
    "shorter": of_length(-1),
    "longer": of_length(1),
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "transposed": lambda a: a.T,
    **{f"entry {v}": entry(v) for v in (0, 1, 3, 100)},
    **{
        f"entry {v}": lambda a, v=v: (
            entry(v)(a) if a.dtype.kind in "iuf" and v != -1 else -a if a.dtype.kind in "if" else a
        )
        for v in (-1, 127)
    },
    **{
        f"entry {v}": lambda a, v=v: entry(v)(a) if a.dtype.kind == "i" and a.itemsize == 8 else a
        for v in (2**31, 2**40, 2**62, -(2**63))
    },
    **{
        f"entry {v}": lambda a, v=v: entry(v)(a) if a.dtype.kind == "f" else a
        for v in (np.nan, np.inf, 1e200, 1e300, 1e-320)
    },
}
"""What may be done to an array of a file."""


@given(KINDS, st.data())
@settings(max_examples=150)
def test_changed_arrays_load_or_are_one_clear_error(tmp_path_factory, kind, data):
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    path.write_bytes(saved(kind)[1])
    with np.load(path) as archive:
        arrays = {**archive}
    for name in data.draw(
        st.lists(st.sampled_from(list(arrays)), min_size=1, max_size=2, unique=True)
    ):
        changed = CHANGES[data.draw(st.sampled_from(list(CHANGES)))](arrays.pop(name))
        if changed is not None:
            arrays[name] = changed
    with open(path, "wb") as stream:
        np.savez(stream, **arrays)
    loads_or_is_refused(path)


def test_the_documentation_names_every_array():
    text = (pathlib.Path(__file__).parents[3] / "docs" / "file_format.md").read_text(
        encoding="utf-8"
    )
    assert f"describes version {VERSION}" in text
    for kind in ("sheaf", "partition", "coarsening", "compressed", "basis", "hierarchy"):
        with zipfile.ZipFile(io.BytesIO(saved(kind)[1])) as archive:
            for name in archive.namelist():
                own = re.sub(
                    r"^(fine|sheaf|partition|sheaves\.\d|levels\.\d)\.",
                    "",
                    name.removesuffix(".npy"),
                )
                assert f"`{own.removeprefix('partition.')}`" in text
