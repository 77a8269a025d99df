"""Checks of single values, arrays and cochains: what they return, and what their errors say."""

import re
import sys
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._support import checks
from tests.support.errors import raises

MEMINFO = Path("/proc/meminfo")
PATH = sc.CellularSheaf.constant(nx.path_graph(3), dim=2)
STACKED = "; y.reshape(-1) stacks the stalks of one cochain"
LIFTED = "; y.reshape(6, -1) converts features of equal stalks, one row per vertex"


@pytest.mark.parametrize(
    ("check", "values", "expected"),
    [
        (checks.whole_number, [7, np.int32(7), np.uint64(7), np.array(7)[()]], 7),
        (checks.real_number, [2, 2.0, np.float32(2), np.int8(2)], 2.0),
        (checks.flag, [True, np.True_], True),
        (checks.flag, [False, np.False_], False),
    ],
)
def test_numbers_of_numpy_become_those_of_python(check, values, expected):
    for value in values:
        found = check("x", value)
        assert (type(found), found) == (type(expected), expected)


def test_random_generators_are_used_and_seeds_repeat():
    rng, generator = np.random.default_rng(3), checks.random_generator
    assert generator("seed", rng) is rng
    assert generator("seed", np.int64(3)).random() == np.random.default_rng(3).random()
    assert generator("seed", None).random() != generator("seed", None).random()


def vertices(count):
    checks.vertex_count("x", count)


def entries(count, itemsize=8):
    with checks.memory_for_entries("x", count, itemsize):
        pass


@pytest.mark.parametrize(
    ("memory", "check", "most", "error"),
    [
        # labels have 32 bits
        (np.inf, vertices, np.iinfo(np.int32).max, "2147483648 vertices, but there may be at most"),
        (16e9, vertices, 10**9, "1000000001 vertices, at least 16 GB, which exceeds this"),
        (16e9, entries, 2 * 10**9, "2e+09 map entries (16 GB), more than fits"),
        (16e9, lambda n: entries(n, 16), 10**9, "1e+09 map entries (16 GB), more than fits"),
        (16e9, lambda n: entries(n, 4), 4 * 10**9, "4e+09 map entries (16 GB), more than fits"),
    ],
)
def test_counts_beyond_the_kernels_or_the_memory_raise(memory, check, most, error, monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.checks.physical_memory", lambda: memory)
    check(most)
    with raises(f"ValueError: `x` requires {error}"):
        check(most + 1)


def test_memory_error_becomes_the_same_value_error():
    with (
        raises("ValueError: `dim` requires 10 map entries (8e-08 GB), more than fits in memory"),
        checks.memory_for_entries("dim", 10),
    ):
        raise MemoryError


@pytest.mark.skipif(not MEMINFO.exists(), reason="a file of Linux")
def test_physical_memory_is_that_of_the_machine():
    total = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal"))
    assert checks.physical_memory() == pytest.approx(1024 * int(total.split()[1]), rel=0.1)


def test_import_errors_of_other_packages_are_not_hidden(monkeypatch):
    class Broken:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "matplotlib":
                raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")

    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="kiwisolver"):
        checks.check_matplotlib()


@pytest.mark.parametrize("dtype", checks.SCALARS)
def test_scalar_arrays_keep_their_type_in_native_byte_order(dtype):
    array = np.array([1, 2], dtype)
    assert checks.scalar_array("x", array) is array
    swapped = array.astype(array.dtype.newbyteorder())
    cast = checks.scalar_array("x", swapped)
    assert (cast.dtype, cast.dtype.isnative, cast.tolist()) == (dtype, True, [1, 2])
    assert checks.scalar_type("dtype", swapped.dtype) == np.dtype(dtype)
    assert checks.scalar_type("dtype", np.dtype(dtype).name) == np.dtype(dtype)


def two_dimensions(name, value):
    return checks.dimensions(name, value, 2, "edge")


def test_dimensions_repeat_an_integer():
    for value in (3, np.array(3), [3, 3.0]):
        assert two_dimensions("d", value).tolist() == [3, 3]
    assert two_dimensions("d", checks.MAX_DIMENSION // 2).sum() == checks.MAX_DIMENSION


def names(name, value):
    return checks.items(name, value, "names")


def method(name, value):
    return checks.choice(name, value, ("auto", "balls"))


CHOICES = "ValueError: `x` must be one of 'auto', 'balls', got "
NO_COLUMN = "TypeError: got Eigenmodes: pass a column, such as modes.vectors[:, 0]"
TOO_LARGE = f"ValueError: `x` must sum to at most {checks.MAX_DIMENSION}"
NO_NAMES = "TypeError: `x` must be a sequence of names, got "
SPARSE = scipy.sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1.5], [0, 1.5, 0]]))
MODES = sc.eigenmodes(sc.CellularSheaf.constant([[0, 1]]), 1)


@pytest.mark.parametrize(
    ("check", "value", "error"),
    [
        *((method, value, f"{CHOICES}{value!r}") for value in ("bals", None, ["balls"])),
        (checks.scalar_array, MODES, NO_COLUMN),
        (checks.scalar_array, SPARSE, "TypeError: got a sparse one: use .toarray()"),
        (two_dimensions, -3, "ValueError: `x` must be at least 0, got -3"),
        (two_dimensions, checks.MAX_DIMENSION, f"{TOO_LARGE}, got 1.8e+16"),
        (two_dimensions, 10**400, TOO_LARGE),
        *((names, value, NO_NAMES + type(value).__name__) for value in ("ab", b"ab", 3, None)),
        *((names, value, NO_NAMES + type(value).__name__) for value in (SPARSE.tobsr(), SPARSE)),
    ],
)
def test_values_of_another_kind_raise(check, value, error):
    with raises(error):
        check("x", value)


def test_error_about_text_has_no_hint_by_default():
    with pytest.raises(TypeError, match=r"^`edges` must hold integers, got dtype <U1$"):
        checks.integer_array("edges", ["a"])


DAMAGE = {
    "large index": ("indices", lambda a: a + 10**9),
    "negative index": ("indices", lambda a: -a),
    "last index": ("indices", lambda a: np.where(a == 2, 3, a)),
    "too few indices": ("indices", lambda a: a[:-1]),
    "descending": ("indptr", lambda a: a[[0, 2, 1, 3]]),
    "too few rows": ("indptr", lambda a: a[:-1]),
    "too many entries": ("indptr", lambda a: a * 2),
    "first row": ("indptr", lambda a: np.maximum(a, 1)),
    "too few values": ("data", lambda a: a[:-1]),
}


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(("attribute", "change"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_csr_csc_and_bsr_matrices_raise(kind, attribute, change):
    A = SPARSE.asformat(kind).copy()
    setattr(A, attribute, change(getattr(A, attribute)))
    for use in (
        sc.CellularSheaf.constant,
        lambda A: sc.CellularSheaf.from_laplacian(A, 1),
        lambda A: sc.select(A, 2),
        lambda A: sc.HiSP(2, 1)(sc.CellularSheaf.constant(SPARSE), np.ones((3, 1)), A),
        sc.Partition.from_assignment,
    ):
        with pytest.raises(ValueError, match="` is a damaged sparse matrix: "):
            use(A)


@pytest.mark.parametrize(
    ("kind", "attribute", "change"),
    [
        ("coo", "coords", lambda ij: (ij[0], ij[1] + 1)),
        ("coo", "coords", lambda ij: (ij[0] - 1, ij[1])),
        ("coo", "data", lambda data: data[:-1]),
        ("lil", "rows", lambda rows: [[3], *rows[1:]]),
        ("lil", "data", lambda data: [[1.0] * 9, *data[1:]]),
    ],
)
def test_damaged_matrices_of_other_formats_raise(kind, attribute, change):
    A = SPARSE.asformat(kind)
    values = change(getattr(A, attribute))
    setattr(A, attribute, np.array(values, object) if kind == "lil" else values)
    with raises("ValueError: `A` is a damaged sparse matrix: "):
        checks.csr_matrix("A", A)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_csr_matrix_copies_valid_matrices(kind):
    for given in (SPARSE, scipy.sparse.coo_array(np.eye(2, 4))):
        A = given.asformat(kind)
        B = checks.csr_matrix("A", A)
        np.testing.assert_array_equal(B.toarray(), given.toarray())
        B.data[:] = 0
        np.testing.assert_array_equal(A.toarray(), given.toarray())


def test_cochain_returns_the_common_scalar_type_in_c_order():
    assert checks.cochain(PATH, np.arange(6)).dtype == np.float64
    assert checks.cochain(PATH, np.ones(6, np.complex64)).dtype == np.complex128
    x = checks.cochain(PATH, np.asfortranarray(np.arange(12.0).reshape(6, 2)))
    assert x.flags.c_contiguous
    assert x.tolist() == np.arange(12.0).reshape(6, 2).tolist()


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((), ""),
        ((5,), ""),
        ((6, 1, 1), STACKED),
        ((3, 2), STACKED),
        ((3, 4), LIFTED),
        ((3, 2, 5), LIFTED),
        ((3, 3), ""),
    ],
    ids=str,
)
def test_wrong_shape_raises_error_with_a_hint_on_reshaping(shape, hint):
    message = f"with dim_c0 = 6 of the fine sheaf, got shape {shape}{hint}"
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        checks.cochain(PATH, np.zeros(shape), "y", " of the fine sheaf")


HIGH = checks.range_limits(np.float64)[1]
NORM = "`b` has entries up to 1e+305, so its norm may overflow in float64: rescale `b`"
FAR = np.zeros((6, 2))
FAR[[4, 5], [1, 0]] = -np.inf
cochain = checks.cochain
right_side = partial(cochain, name="b", right_side=True)


def edge(tail, head=1.0):
    return sc.CellularSheaf([[0, 1]], [[[tail]]], [[[head]]])


@pytest.mark.parametrize(
    ("check", "sheaf", "values", "error"),
    [
        (cochain, PATH, FAR, "got -inf in row 4"),
        (cochain, PATH, [0, 0, np.nan, 0, 0, 0], "`x` must be finite, got nan in row 2"),
        (cochain, PATH, [101 * HIGH] * 6, "energies would overflow in float64: rescale `x`"),
        (cochain, edge(1e3), [HIGH] * 2, "the maps up to 1e+03, so energies"),
        # squares of cochains alone must be finite, too
        (cochain, edge(1e-100, 1e-100), [1e160] * 2, "the maps up to 1e-100, so energies"),
        (right_side, edge(1e100), [0, 1e305], NORM),
        (right_side, edge(1e100), [0, np.inf], "`b` must be finite, got inf in row 1"),
    ],
)
def test_entries_that_are_not_finite_or_too_large_raise(check, sheaf, values, error):
    with raises(f"ValueError: {error}"):
        check(sheaf, values)


def test_entries_may_be_as_large_as_energies_and_the_laplacian_allow():
    assert np.isfinite(cochain(PATH, np.full(6, 99 * HIGH))).all()
    assert right_side(edge(1e100), [1e200, -1e200]).tolist() == [1e200, -1e200]
