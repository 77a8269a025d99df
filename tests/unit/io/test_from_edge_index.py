"""`from_edge_index`: pairing of columns in any order."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.errors import raises
from tests.support.helpers import Tensor
from tests.support.strategies import sheaves

NONE, ONES = np.zeros((2, 0), int), np.ones((2, 1, 1))
PAIR, FAR, NEGATIVE = [[0, 1], [1, 0]], [[0, 2], [2, 0]], [[0, -1], [-1, 0]]
UNEQUAL = [np.ones((1, 2)), np.ones((1, 3))]
ODD_PAIRS, ODD_MAPS = [[0, 1, 0, 2], [1, 0, 2, 0]], [np.ones((1, d)) for d in (1, 1, 2, 1)]
ENDS = st.tuples(st.integers(0, 2), st.integers(0, 2))
PASS = ", so the maps do not determine its dimension: pass `n_vertices` if all stalks are equal, or"
ISOLATED = "isolated vertices require `vertex_dims`, because the numbers of columns of `maps`, "


@given(sheaves(), st.booleans(), st.booleans())
def test_maps_belong_to_columns_and_their_reverses(F, adjacent, as_array):
    """Reverse columns come after all others, or each after its own."""
    m = F.n_edges
    order = np.arange(2 * m)
    if adjacent:
        order = order.reshape(2, -1).T.reshape(-1)
    columns = np.hstack([F.edges.T, F.edges.T[::-1]])[:, order]
    # otherwise these are read as the other layout
    assume(not adjacent or m < 2 or not np.array_equal(columns[:, :m], columns[::-1, m:]))
    maps = [get(e) for get in (F.tail_map, F.head_map) for e in range(m)]
    maps = [maps[k] for k in order]
    if as_array and len({M.shape for M in maps}) == 1:
        maps = np.stack(maps)
    G = sc.from_edge_index(columns, maps, F.vertex_dims)
    assert G.equals(F.with_labels(None))
    other = G.with_maps(-G.tail_data, 2 * G.head_data).with_labels(range(G.n_vertices))
    assert other.with_columns(maps).with_labels(None).equals(G)


def paired_one_by_one(columns):
    """Pair each column with the first before it that is its reverse and still alone."""
    alone, pairs = [], []
    loops = [u for u, v in columns if u == v]
    # an odd number of loops at a vertex: each loop is an edge by itself
    single = any(loops.count(u) % 2 for u in loops)
    for k, (u, v) in enumerate(columns):
        if u == v and single:
            pairs.append((k, k))
            continue
        found = next((j for j in alone if columns[j] == (v, u)), None)
        if found is None:
            alone.append(k)
        else:
            alone.remove(found)
            pairs.append((found, k))
    return sorted(pairs), alone


@given(st.lists(ENDS, max_size=12), st.booleans(), st.randoms())
def test_columns_are_paired_in_order_of_occurrence(edges, single_loops, random):
    columns = edges + [(v, u) for u, v in edges if u != v or not single_loops]
    random.shuffle(columns)
    m = len(columns) // 2
    if [(v, u) for u, v in columns[m:]] == columns[:m]:
        pairs = [(k, m + k) for k in range(m)]
    else:
        pairs, _ = paired_one_by_one(columns)
    numbers = np.arange(1.0, len(columns) + 1).reshape(-1, 1, 1)
    F = sc.from_edge_index(np.array(columns, int).reshape(-1, 2).T, numbers, np.ones(3, int))
    assert F.edges.tolist() == [list(columns[k]) for k, _ in pairs]
    assert F.tail_data.tolist() == [k + 1 for k, _ in pairs]
    assert F.head_data.tolist() == [k + 1 for _, k in pairs]


@given(st.lists(ENDS, max_size=9))
def test_column_without_its_reverse_raises(columns):
    _, alone = paired_one_by_one(columns)
    assume(alone)
    k = alone[0]
    with raises(f"ValueError: column {k} of `edge_index`, {columns[k]}, has no reverse"):
        sc.from_edge_index(np.transpose(columns), np.ones((len(columns), 1, 1)))


def test_tensors_are_accepted():
    F = sc.from_edge_index(Tensor([[0, 1], [1, 0]]), Tensor(np.float32([[[1]], [[2]]])))
    assert F.dtype == np.float32
    assert (F.tail_map(0), F.head_map(0)) == (1, 2)
    G = sc.from_edge_index(Tensor([[0, 1], [1, 0]]), [Tensor([[1.0]]), Tensor([[2.0, 3.0]])])
    assert G.vertex_dims.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("edge_index", "maps", "dims", "n", "expected"),
    [
        (FAR, ONES, None, 4, [1, 1, 1, 1]),
        (FAR, ONES, [1, 0, 1, 5], None, [1, 0, 1, 5]),
        (PAIR, UNEQUAL, None, 2, [2, 3]),
        (FAR, np.ones((2, 2, 2)), 2, None, [2] * 3),
        (FAR, np.ones((2, 2, 2)), None, 6, [2] * 6),
        (FAR, np.ones((2, 2, 2)), 2, 6, [2] * 6),
        (NONE, np.zeros((0, 2, 2)), 3, 2, [3, 3]),
        (NONE, np.zeros((0, 1, 2)), None, 3, [2, 2, 2]),
        (NONE, [], None, 0, []),
    ],
)
def test_dimensions_are_given_or_those_of_the_maps(edge_index, maps, dims, n, expected):
    assert sc.from_edge_index(edge_index, maps, dims, n).vertex_dims.tolist() == expected


@pytest.mark.parametrize(
    ("edge_index", "maps", "dims", "n", "message"),
    [
        (PAIR, ONES, 3, None, "ValueError: `maps[0]` has 1 columns, but vertex 0 has dimension 3"),
        (PAIR, ONES, -1, None, "ValueError: `vertex_dims` must be at least 0, got -1"),
        (PAIR, ONES, 1.5, None, "TypeError: `vertex_dims` must be an integer"),
        (PAIR, ONES, [1] * 3, 2, "ValueError: `vertex_dims` must have one entry per vertex, 2 in"),
        (PAIR, ONES, None, 1, "ValueError: column 0 of `edge_index`, (0, 1), has a vertex beyond"),
        (PAIR, ONES, None, 2.0, "TypeError: `n_vertices` must be an integer, got 2.0"),
        (FAR, ONES, None, None, "ValueError: vertex 1 has no edges" + PASS),
        (PAIR, UNEQUAL, None, 3, f"ValueError: {ISOLATED}[2, 3], do not determine"),
        (NONE, [], None, 3, f"ValueError: {ISOLATED}[], do not determine their dimension"),
        ([["a", "b"], ["b", "a"]], ONES, None, None, "TypeError: `edge_index` must hold integers"),
    ],
)
def test_inconsistent_dimensions_raise(edge_index, maps, dims, n, message):
    with raises(message):
        sc.from_edge_index(edge_index, maps, dims, n)


@pytest.mark.parametrize(
    ("edge_index", "maps", "message"),
    [
        ([[0, 1]], ONES, "`edge_index` must have shape (2, 2 m), got (1, 2)"),
        ([[0, 1], [1, 0], [1, 2], [2, 1]], ONES, "transpose it"),
        ([0, 1], ONES, "`edge_index` must be 2-dimensional"),
        (NEGATIVE, ONES, "column 0 of `edge_index` is (0, -1), but vertices are numbered from 0"),
        (PAIR, ONES[:1], "`maps` must hold one map per column of `edge_index`, 2 in all, got 1"),
        (PAIR, np.ones((2, 1)), "`maps` must have shape"),
        (PAIR, [[[1]], [[1], [1]]], "`maps[0]` has 1 rows and `maps[1]`, of the same edge"),
        (PAIR, [[[1.0]], [[np.nan]]], "`maps[1]` (column (1, 0)) must be finite, got nan"),
        (PAIR, [[[np.nan]], [[1.0]]], "`maps[0]` (column (0, 1)) must be finite, got nan"),
        (PAIR, 1e-200 * ONES, "the largest entry of `maps` is 1e-200, outside"),
        (ODD_PAIRS, ODD_MAPS, "`maps[2]` has 2 columns, but vertex 0 has dimension 1"),
    ],
)
def test_error_names_the_invalid_column_or_map(edge_index, maps, message):
    with raises(f"ValueError: {message}"):
        sc.from_edge_index(edge_index, maps)


def test_with_columns_sets_both_maps_of_single_loops():
    F = sc.from_edge_index([[0, 1, 1], [1, 0, 1]], np.ones((3, 1, 1)))
    G = F.with_columns([[[2.0]], [[3.0]], [[5.0]]])
    assert (G.tail_data.tolist(), G.head_data.tolist()) == ([2, 5], [3, 5])
    again = pickle.loads(pickle.dumps(G)).with_columns(np.ones((3, 1, 1)))
    assert again.equals(F)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (np.ones((3, 1, 1)), "ValueError: one map per column of `edge_index`, 4 in all, got 3"),
        ([[[1.0]], [[1.0, 1.0]], [[1.0]], [[1.0]]], "ValueError: `maps[1]` must have shape (1, 1)"),
        ([[[1.0]], [[1.0]], [[1.0]], [[np.inf]]], "ValueError: `maps[3]` must be finite, got inf"),
        (np.full((4, 1, 1), np.nan), "ValueError: `maps[0]` must be finite, got nan"),
        (np.full((4, 1, 1), 1e200), "ValueError: rescale the maps"),
        (np.full((4, 1, 1), "a"), "TypeError: `maps`"),
    ],
)
def test_with_columns_rejects_maps_of_wrong_shape(maps, message):
    F = sc.from_edge_index([[0, 1, 1, 2], [1, 0, 2, 1]], np.ones((4, 1, 1)))
    with raises(message):
        F.with_columns(maps)
    with pytest.raises(ValueError, match="`with_columns` requires a sheaf from from_edge_index"):
        F.subsheaf([0, 1]).with_columns(maps)
