"""Files that `load` refuses: damaged, foreign, malicious, or of arrays that define no object."""

import contextlib
import copy
import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.strategies import examples
from tests.unit.io.conftest import read_or_refused, rewrite, saved_file

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def first(array):
    return array[:1]


def without_last(array):
    return array[:-1]


def reversed_copy(array):
    return array[::-1].copy()


def names(text):
    return {"fine__vertex_labels": np.frombuffer(text.encode(), np.uint8)}


def entry(value, at=None):
    """Return the change of one entry, by default one in the middle."""

    def change(array):
        array = array.copy()
        if array.size:
            array.reshape(-1)[array.size // 2 if at is None else at] = value
        return array

    return change


def huge(array):
    return 1e200 * array


START = b"\x93NUMPY\x01\x00"
WRONG_LENGTH = "is not as long as its shape"
DAMAGED_FILE = "truncated or damaged"
DATA = ("sheaf__tail_data", "sheaf__head_data")
NOT_INCREASING = "`restored_loops` must be strictly increasing in 0 .. 1"
CROSSING = "`crossing_rows` must hold the rows of crossing fine edges"
LOOPS, EDGES = "the loops of the coarse sheaf must", "edges of the coarse sheaf do not match"
TRUNCATED_R = {"R__data": first, "R__indices": first, "R__indptr": lambda a: np.minimum(a, 1)}
OTHER_DIMS = {"sheaf__edge_dims": [4, 5, 2]} | dict.fromkeys(DATA, lambda a: np.resize(a, 44))

INCONSISTENT = "level 1: its parts are inconsistent: 3 vertices, a partition of 2 into"
TYPES, NEIGHBORS = "names must be numbers, strings or tuples", "must be lists of neighbours"
SPARSE = "`R` is a damaged sparse matrix:"
GONE = 11  # the first that is eliminated

# messages, each with changes of an archive that raise it
DAMAGED = {
    "coarsening": [
        ("format version 99; this library reads up to 2: upgrade", {"version": 99}),
        ("format version 0", {"version": 0}),
        (r"format version \[2\]", {"version": [2]}),
        ("format version 2.0", {"version": 2.0}),
        ("not a sheafcoarsen file", {"format": "other"}, {"format": None}),
        ("holds an object of kind 'galaxy'", {"kind": "galaxy"}),
        ("`kind` must be one line of text", {"kind": ["coarsening"]}, {"kind": "coar\nsening"}),
        ("has no array 'fine.edges'", {"fine__edges": None}),
        (r"`edges\[1\]` = .* is out of range for 6 vertices", {"fine__edges": lambda a: a + 4}),
        (r"`edges` must have shape \(m, 2\)", {"fine__edges": lambda a: a[:, :1]}),
        ("negative endpoint", {"fine__edges": lambda a: -a}),
        ("`vertex_dims` must not be negative", {"fine__vertex_dims": lambda a: -a}),
        ("`vertex_dims` must sum to at most", {"fine__vertex_dims": lambda a: a * 2**60}),
        ("6 names for 5 vertices", {"fine__vertex_dims": without_last}),
        ("must be one-dimensional", {"fine__vertex_dims": 3}),
        ("`tail_data` must have shape", {"fine__edge_dims": lambda a: a + 1}),
        (r"`tail_maps\[0\]` \(edge 0 -> 1\) must be finite", {"fine__tail_data": entry(np.nan, 0)}),
        ("got dtype <U", {"fine__tail_data": lambda a: a.astype(str)}),
        ("its maps have entries up to .* whose squares overflow", {"fine__tail_data": huge}),
        ("`vertex_labels` cannot be read", *map(names, ("[1, 2", "5", "[" * 10**6))),
        ("2 names for 6 vertices", names("[1, 2]")),
        ("must be distinct names", *map(names, ("[1, 2, 3, 4, 5, 1]", "[1, 2, 3, 4, 5, null]"))),
        (TYPES, *map(names, ("[1, 2, 3, 4, 5, [1]]", '[1, 2, 3, 4, 5, {"a": 1}]'))),
        ("its parts are inconsistent", {"partition__labels": [0, 0, 0, 0, 1]}),
        ("its parts are inconsistent", {"partition__labels": [0, 0, 0, 0, 0, 0]}),
        ("index pointer size", {"R__indptr": without_last}),
        ("index pointer should start with 0", {"R__indptr": reversed_copy}),
        (SPARSE, {"R__indices": lambda a: a + 99}, {"R__indices": lambda a: a - 1}),
        ("R must be finite", {"R__data": entry(np.nan, 0)}),
        ("the entries of R have entries up to .* whose squares overflow", {"R__data": huge}),
        ("full block", TRUNCATED_R),
        ("has no array 'crossing_rows'", {"crossing_rows": None}),
        (CROSSING, {"crossing_rows": [10**6]}, {"crossing_rows": reversed_copy}),
        (NOT_INCREASING, *({"restored_loops": loops} for loops in ([2], [1, 0], [1, 1]))),
        ("has no array 'loops'", {"loops": None}),
        ("`compress` must be True or False, got .*maybe", {"compress": "maybe"}),
        (EDGES + " the fine sheaf", {"sheaf__edges": lambda a: a[:, ::-1]}),
        ("local operator 'spectral'", {"modes__local_operator": "spectral"}),
        ("`modes.singular` must be True or False, got array", {"modes__singular": [True, False]}),
        ("ranks of its modes", {"modes__ranks": [1, 2]}),
        ("LocalModes: `scores` must hold 4 values", {"modes__scores": [1.0]}),
        ("LocalModes: `scores` must be finite", {"modes__scores": entry(np.nan, 0)}),
        ("`scores` must hold 4 values of type float64", {"modes__scores": np.float32}),
        ("LocalModes: `tied` must hold 2 values of type bool", {"modes__tied": [0, 1]}),
    ],
    "coarsening of full rank": [
        (LOOPS, {"loops": False}, OTHER_DIMS),
        (LOOPS, *({"sheaf__edges": lambda a, e=e: a[e]} for e in ([0, 2, 1], [0, 1, 1]))),
        (EDGES, {"sheaf__edges": lambda a: a[[1, 0, 2]]}),
        (EDGES, {"sheaf__edges": lambda a: np.maximum(a, 1)}),
    ],
    "hierarchy of two levels": [
        (r"has no array 'sheaves.3.edges'", {"n_levels": 3}),
        ("`n_levels` must be at least 0, got -1", {"n_levels": -1}),
        (r"`n_levels` must be an integer, got array\(\[2\]\)", {"n_levels": [2]}),
        ("`n_levels` must be an integer, got 1.5", {"n_levels": 1.5}),
        ("has no array 'stopped_because'", {"stopped_because": None}),
        ("has no array 'sheaves.1.edges'", {"sheaves__1__edges": None}),
        ("must be finite", {"sheaves__1__tail_data": entry(np.nan, 0)}),
        ("has no array 'levels.1.R.data'", {"levels__1__R__data": None}),
        ("level 1: R must be finite", {"levels__1__R__data": entry(np.nan, 0)}),
        (INCONSISTENT, {"levels__1__partition__labels": [0, 0]}),
        ("level 0: the ranks of its modes", {"levels__0__modes__ranks": [1, 2, 2]}),
    ],
    "elimination": [
        ("`kept` must hold vertex indices in 0 .. 33", {"kept": entry(99, 0)}),
        ("must be listed once", {"steps__vertices": lambda a: np.append(a[1], a[1:])}),
        (NEIGHBORS, {"steps__starts": entry(99, 3)}, {"steps__neighbors": entry(-1, 0)}),
        ("refers to a vertex that was eliminated before it", {"steps__neighbors": entry(GONE, -1)}),
        ("`steps` must be finite", {"steps__blocks": entry(np.nan, 0)}),
        ("`steps.inverses` must have sizes", {"steps__blocks": lambda a: a[1:]}),
        ("must be real", {"steps__inverses": lambda a: a * 1j}),
        ("`max_neighbors` must be at least 0, got -1", {"max_neighbors": -1}),
        ("has no array", {"steps__starts": None}),
    ],
    "sparsification": [
        ("`eps` must be above 0 and below 1, got 1", {"eps": 1.0}),
        ("`eps` must be", {"eps": np.nan}),
        ("`eps` must be a single number, got shape", {"eps": [0.5]}),
        ("`eps` must hold", {"eps": "half"}),
        ("`weights` must have one entry per edge", {"weights": lambda a: a[1:]}),
        ("`weights` must be positive", {"weights": lambda a: -a}),
        ("`edges` must be ascending", {"edges": reversed_copy}),
        ("has no array 'edges'", {"edges": None}),
    ],
}
CASES = [
    (kind, change, message)
    for kind, cases in DAMAGED.items()
    for message, *changes in cases
    for change in changes
]


@pytest.mark.parametrize(
    ("kind", "changes", "message"), CASES, ids=[f"{kind}, {message}" for kind, _, message in CASES]
)
def test_damaged_contents_raise(tmp_path, kind, changes, message):
    path = tmp_path / "damaged.npz"
    path.write_bytes(saved_file(kind))
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("something in a file was executed",))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("fine__edges", np.zeros(2, [("a", int)]), "not numbers or text"),
        ("fine__edges", np.array([b"text"]), "holds .S4, not numbers or text"),
        ("fine__edges", np.array([Harmful()], object), "holds object, not numbers or text"),
        ("format", np.array([Harmful()], object), "holds object, not numbers or text"),
        ("unknown", np.array([Harmful()], object), "holds object, not numbers or text"),
    ],
)
def test_arrays_of_unsupported_dtypes_raise_and_no_code_is_executed(file, name, array, message):
    rewrite(file, **{name: array})
    with pytest.raises(ValueError, match=message):
        sc.load(file)


def npy(descr, shape, data=b""):
    """Return an array file whose header says what may be wrong."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return START + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("<f8", f"({10**13},)"), r"'fine.edges.npy' is not as long as its shape \(10{13},\)"),
        (npy("<f8", f"({10**30},)"), WRONG_LENGTH),
        (npy("<f8", "(2,)", bytes(8)), WRONG_LENGTH),
        (npy("<f8", "(2,)", bytes(24)), WRONG_LENGTH),
        (npy("<f8", "(-2,)", bytes(16)), WRONG_LENGTH),
        (npy("<f8", "(-2, -1)", bytes(16)), WRONG_LENGTH),
        (npy("<f8", "(0, 1000000000000, 3)"), "`edge_dims` must have one entry per edge, 0"),
        (npy("<U100000000", "()"), WRONG_LENGTH),
        (npy("<U0", "(1000000000000,)"), DAMAGED_FILE),
        (npy("|b1", "(2,)", b"\1\2"), "neither true nor false"),
        (npy("<f8", "(" * 500), DAMAGED_FILE),
        (npy("<f8", "(1L,)", bytes(8)), "truncated or damaged|edges"),
        (START + b"\x18\x00__import__('os').abort()", DAMAGED_FILE),
        (b"\x93NUMPY\x09\x00", "is not of .npy version 1.0"),
        (b"", DAMAGED_FILE),
    ],
)
def test_headers_with_wrong_sizes_raise(file, content, message):
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
    """Check that at most ``limit`` bytes are allocated at any time, by Python and numpy."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit


def test_compressed_files_raise(file):
    with np.load(file) as archive:
        arrays = {**archive}
    arrays["fine.edges"] = np.zeros((2**22, 2), np.int64)  # 64 MiB in a small file
    np.savez_compressed(file, **arrays)
    assert file.stat().st_size < 2**18
    said = r"'format.npy' is compressed: write it with numpy\.savez, not savez_compressed"
    with pytest.raises(ValueError, match=said), little_memory():
        sc.load(file)


def test_archive_members_that_share_bytes_raise(file):
    """The directory of a zip file may refer to the same bytes many times."""
    with zipfile.ZipFile(file, "a") as archive:
        big = archive.infolist()[3]
        for k in range(200):
            other = copy.copy(big)
            other.filename = f"copy{k}.npy"
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
        archive._didModify = True
    with pytest.raises(ValueError, match="its arrays are larger than the file"):
        sc.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a sheafcoarsen file"),
        (b"PK", "not a sheafcoarsen file"),
        (b"0 1\n1 2\n", "not a sheafcoarsen file, .*; read_graph and read_g2o read graphs"),
        (b"PK\x03\x04 and then rubbish", "truncated or damaged"),
        (b"PK\x05\x06" + bytes(18), "not a sheafcoarsen file"),
    ],
)
def test_files_of_other_formats_raise(tmp_path, content, message):
    path = tmp_path / "f.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"f\.npz: {message}"):
        sc.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", content)
    with pytest.raises(ValueError, match="not a sheafcoarsen file"):
        sc.load(path)


def check_valid(value):
    """See that the numbers of a loaded object are finite and that it can be used."""
    assert repr(value)
    if isinstance(value, sc.Hierarchy):
        for part in (value.fine, *value):
            check_valid(part)
    elif isinstance(value, sc.Coarsening):
        check_valid(value.fine)
        check_valid(value.sheaf)
        assert np.isfinite(value.lift(np.ones(value.sheaf.dim_c0))).all()
        assert np.isfinite(value.pool(np.ones(value.fine.dim_c0))).all()
        np.testing.assert_array_equal(value.recoarsen(value.fine).ranks, value.ranks)
    elif isinstance(value, sc.Partition):
        assert value.sizes.min(initial=1) > 0
    else:
        assert np.isfinite(sc.laplacian(value).data).all()
        assert np.isfinite(sc.energy(value, np.ones(value.dim_c0)))


def loads_or_is_refused(path):
    """Load a file: the result is either an object that is whole, or one clear error."""
    if (value := read_or_refused(sc.load, path)) is not None:
        check_valid(value)


def of_length(n):
    return lambda a: np.resize(a, (max(len(a) + n, 0), *a.shape[1:])) if a.ndim else a[None]


def of_kind(kinds, change):
    """Return the change of arrays of some kinds only."""
    return lambda a: change(a) if a.dtype.kind in kinds else a


def large(value):
    return of_kind("i", lambda a: entry(value)(a) if a.itemsize == 8 else a)


KINDS = st.sampled_from(
    ["sheaf", "partition", "coarsening with loops", "compressed", "basis", "hierarchy"]
)
CHANGES = {
    "missing": lambda a: None,
    "text": lambda a: np.array(["text"] * a.size).reshape(a.shape),
    "single": of_kind("biuf", lambda a: a.astype(np.float32)),
    "complex": of_kind("biuf", lambda a: a.astype(complex)),
    "half": of_kind("biuf", lambda a: a.astype(np.float16)),
    "other endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "narrow": of_kind("biu", lambda a: a.astype(np.int8)),
    "unsigned": of_kind("biu", lambda a: a.astype(np.uint64)),
    "scalar": lambda a: a.reshape(-1)[0] if a.size else np.array(0),
    "deeper": lambda a: a[None],
    "by columns": np.asfortranarray,
    "empty": lambda a: a[:0] if a.ndim else np.zeros(0),
    "shorter": of_length(-1),
    "longer": of_length(1),
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "transposed": lambda a: a.T,
    "negative": of_kind("if", lambda a: -a),
    **{f"entry {v}": entry(v) for v in (0, 1, 3, 100)},
    "entry 127": of_kind("iuf", entry(127)),
    **{f"entry {v}": large(v) for v in (2**31, 2**40, 2**62, -(2**63))},
    **{f"entry {v}": of_kind("f", entry(v)) for v in (np.nan, np.inf, 1e200, 1e300, 1e-320)},
}
"""What may be done to an array of a file."""


@given(KINDS, st.data())
@examples(60)
def test_changed_arrays_load_or_raise_one_value_error(tmp_path_factory, kind, data):
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    path.write_bytes(saved_file(kind))
    with np.load(path) as archive:
        names = st.sampled_from(archive.files)
    chosen = data.draw(st.lists(names, min_size=1, max_size=2, unique=True))
    changes = st.sampled_from(list(CHANGES)).map(CHANGES.get)
    rewrite(path, **{name: data.draw(changes) for name in chosen})
    loads_or_is_refused(path)


@pytest.mark.parametrize("inside", [False, True], ids=["file", "member"])
@given(KINDS, st.data())
@examples(60)
def test_corrupted_bytes_load_or_raise_one_value_error(tmp_path_factory, inside, kind, data):
    """Bytes of the file, or of a member and its checksum, so that headers and numbers change."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    content = bytearray(saved_file(kind))
    name = ""
    if inside:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = data.draw(st.sampled_from(archive.namelist()))
            content = bytearray(archive.read(name))
    byte = st.integers(0, 255) | st.sampled_from(b"0123456789<>fiUO")
    for _ in range(data.draw(st.integers(1, 4))):
        at, start = (data.draw(st.integers(0, len(content))) for _ in range(2))
        end = data.draw(st.sampled_from([at, at + 1, at + 30, len(content)]))
        copied = st.just(content[start : start + 30])
        new = byte.map(lambda b: bytes([b])) | st.binary(max_size=9) | copied
        content[at:end] = data.draw(new)
    if inside:
        path.write_bytes(saved_file(kind))
        replace_member(path, name, bytes(content))
    else:
        path.write_bytes(content)
    loads_or_is_refused(path)
