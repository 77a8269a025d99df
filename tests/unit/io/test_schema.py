"""Arrays that do not define an object, listed and drawn at random; and files of version 1."""

import io
import pathlib
import re
import zipfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.io._save_load import VERSION
from tests.support.strategies import examples
from tests.unit.io.test_save_load import (
    KINDS,
    loads_or_is_refused,
    rewrite,
    same_coarsening,
    same_sheaf,
    saved,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def nan_first(array):
    array = array.copy()
    array[0] = np.nan
    return array


def labels(text):
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_levels": 3}, r"has no array 'sheaves.3.edges'"),
        ({"n_levels": -1}, "`n_levels` must be at least 0, got -1"),
        ({"n_levels": [2]}, r"`n_levels` must be an integer, got array\(\[2\]\)"),
        ({"n_levels": 1.5}, "`n_levels` must be an integer, got 1.5"),
        ({"stopped_because": None}, "has no array 'stopped_because'"),
        ({"sheaves__1__edges": None}, "has no array 'sheaves.1.edges'"),
        ({"sheaves__1__tail_data": nan_first}, "must be finite"),
        ({"levels__1__R__data": None}, "has no array 'levels.1.R.data'"),
        ({"levels__1__R__data": nan_first}, "level 1: R must be finite"),
        (
            {"levels__1__partition__labels": [0, 0]},
            "level 1: its parts are inconsistent: 3 vertices, a partition of 2 into",
        ),
        ({"levels__0__modes__ranks": [1, 2, 2]}, "level 0: the ranks of its modes"),
    ],
)
def test_damaged_hierarchies_raise(tmp_path, changes, message):
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


def test_files_of_version_1_are_read(file):
    """They had no compression, no restored loops, and did not say how modes were computed."""
    C = sc.load(file)
    rewrite(file, version=1, compress=None, restored_loops=None, modes__singular=None)
    same_coarsening(C, sc.load(file))


def test_coarse_sheaves_with_tiny_maps_are_read(tmp_path):
    """Exact kernels leave crossing maps of rounding size.

    The limit for a caller's own maps does not hold for them.
    """
    F = sc.CellularSheaf.constant(nx.path_graph(4))
    small = [np.eye(2, 1) * 1e-170, np.eye(2, 1) * 1e-170]
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), basis=small)
    sc.save(tmp_path / "c.npz", C)
    same_sheaf(C.sheaf, sc.load(tmp_path / "c.npz").sheaf)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "format version 99; this library reads up to 2: upgrade"),
        ({"version": 0}, "format version 0"),
        ({"format": "other"}, "not a sheafcoarsen file"),
        ({"format": None}, "not a sheafcoarsen file"),
        ({"kind": "galaxy"}, "holds an object of kind 'galaxy'"),
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
        ({"partition__labels": [0, 0, 0, 0, 1]}, "its parts are inconsistent"),
        ({"partition__labels": [0, 0, 0, 0, 0, 0]}, "its parts are inconsistent"),
        ({"R__indptr": lambda a: a[:-1]}, "index pointer size"),
        ({"R__indptr": lambda a: a[::-1].copy()}, "index pointer should start with 0"),
        (
            {"R__indices": lambda a: a + 99},
            "`R` is a damaged sparse matrix: entry 0 has the column",
        ),
        ({"R__indices": lambda a: a - 1}, "has the column index -1, out of range for 4 columns"),
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
        ({"crossing_rows": [10**6]}, "`crossing_rows` must hold the rows of crossing fine edges"),
        ({"restored_loops": [2]}, "`restored_loops` must be strictly increasing in 0 .. 1"),
        ({"compress": "maybe"}, "`compress` must be True or False, got .*maybe"),
        ({"modes__singular": [True, False]}, "`modes.singular` must be True or False, got array"),
        ({"modes__ranks": [1, 2]}, "ranks of its modes"),
        ({"modes__scores": [1.0]}, "LocalModes: `scores` must hold 4 numbers"),
        ({"modes__scores": nan_first}, "LocalModes: `scores` must be finite"),
        (
            {"modes__scores": lambda a: a.astype(np.float32)},
            "LocalModes: `scores` must hold 4 numbers of type float64",
        ),
        ({"modes__tied": [0, 1]}, "LocalModes: `tied` must hold 2 booleans"),
        ({"version": [2]}, r"format version \[2\]"),
        ({"version": 2.0}, "format version 2.0"),
        ({"kind": ["coarsening"]}, "`kind` must be one line of text"),
        ({"kind": "coar\nsening"}, "`kind` must be one line of text"),
        ({"fine__vertex_labels": labels("[1, 2, 3, 4, 5, 1]")}, "must be distinct names"),
        ({"fine__vertex_labels": labels("[1, 2, 3, 4, 5, null]")}, "must be distinct names"),
        (
            {"fine__vertex_labels": labels("[1, 2, 3, 4, 5, [1]]")},
            "names must be numbers, strings or tuples",
        ),
        (
            {"fine__vertex_labels": labels('[1, 2, 3, 4, 5, {"a": 1}]')},
            "names must be numbers, strings or tuples",
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
            "`crossing_rows` must hold the rows of crossing fine edges",
        ),
        ({"restored_loops": [1, 0]}, "`restored_loops` must be strictly increasing in 0 .. 1"),
        ({"restored_loops": [1, 1]}, "`restored_loops` must be strictly increasing in 0 .. 1"),
        ({"loops": None}, "has no array 'loops'"),
        (
            {"sheaf__edges": lambda a: a[:, ::-1]},
            "edges of the coarse sheaf do not match the fine sheaf",
        ),
        ({"modes__local_operator": "spectral"}, "local operator 'spectral'"),
    ],
)
def test_damaged_contents_raise(file, changes, message):
    rewrite(file, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


DATA = ("sheaf__tail_data", "sheaf__head_data")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loops": False}, "the loops of the coarse sheaf must"),
        ({"sheaf__edges": lambda a: a[[0, 2, 1]]}, "the loops of the coarse sheaf must"),
        ({"sheaf__edges": lambda a: a[[0, 1, 1]]}, "the loops of the coarse sheaf must"),
        (
            {"sheaf__edge_dims": [4, 5, 2]} | dict.fromkeys(DATA, lambda a: np.resize(a, 44)),
            "the loops of the coarse sheaf must",
        ),
        ({"sheaf__edges": lambda a: a[[1, 0, 2]]}, "edges of the coarse sheaf do not match"),
        ({"sheaf__edges": lambda a: np.maximum(a, 1)}, "edges of the coarse sheaf do not match"),
    ],
)
def test_impossible_coarse_sheaves_raise(tmp_path, changes, message):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 4))
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message):
        sc.load(path)


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
@examples(60)
def test_changed_arrays_load_or_raise_one_value_error(tmp_path_factory, kind, data):
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


def test_duplicate_entries_of_r_are_summed(tmp_path):
    C = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(4)), sc.Partition([0, 0, 1, 1]), 2)
    sc.save(tmp_path / "c.npz", C)
    with np.load(tmp_path / "c.npz") as archive:
        arrays = dict(archive)
    arrays["R.data"] = np.repeat(arrays["R.data"] / 2, 2)
    arrays["R.indices"] = np.repeat(arrays["R.indices"], 2)
    arrays["R.indptr"] = 2 * arrays["R.indptr"]
    np.savez(tmp_path / "c.npz", **arrays)
    again = sc.load(tmp_path / "c.npz").prolongation
    np.testing.assert_array_equal(again.data, C.prolongation.data)
    np.testing.assert_array_equal(again.indices, C.prolongation.indices)


def test_labels_of_all_types_round_trip(tmp_path):
    graph = nx.Graph(
        [((0, "a"), 3), (3, "thr\u00e9e"), (True, (1.5, (True, None))), ("", np.int64(7))]
    )
    F = sc.CellularSheaf.constant(graph)
    sc.save(tmp_path / "f.npz", F)
    found = sc.load(tmp_path / "f.npz").vertex_labels
    assert found == tuple(graph.nodes)
    assert [type(label) for label in found] == [tuple, int, str, bool, tuple, str, int]


def test_unsupported_labels_raise(tmp_path):
    F = sc.CellularSheaf.constant(nx.Graph([(frozenset({1}), 2)]))
    with pytest.raises(TypeError, match=r"vertex label frozenset.*cannot be saved.*with_labels"):
        sc.save(tmp_path / "f.npz", F)
    assert list(tmp_path.iterdir()) == []


def test_every_array_is_documented():
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
