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


def columns_of(F):
    """Return the edge index [E | E reversed] and its maps."""
    edge_index = np.hstack([F.edges.T, F.edges.T[::-1]])
    maps = [F.tail_map(e) for e in range(F.n_edges)] + [F.head_map(e) for e in range(F.n_edges)]
    return edge_index, maps


def assert_same(F, G):
    assert G.vertex_labels is None
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(F, name), getattr(G, name))


@given(sheaves())
def test_columns_followed_by_their_reverses_are_paired(F):
    edge_index, maps = columns_of(F)
    assert_same(F, sc.from_edge_index(edge_index, maps, F.vertex_dims))


@given(sheaves(), st.booleans())
def test_adjacent_reverse_columns_are_paired(F, as_array):
    edge_index, maps = columns_of(F)
    order = np.arange(2 * F.n_edges).reshape(2, -1).T.reshape(-1)
    maps, columns = [maps[k] for k in order], edge_index[:, order]
    m = F.n_edges
    # this is read as the other layout
    assume(m < 2 or not np.array_equal(columns[:, :m], columns[::-1, m:]))
    if as_array and len({M.shape for M in maps}) == 1:
        maps = np.stack(maps)
    G = sc.from_edge_index(columns, maps, F.vertex_dims)
    assert_same(F, G)
    other = G.with_maps(-G.tail_data, 2 * G.head_data).with_labels(range(G.n_vertices))
    assert_same(F, other.with_columns(maps).with_labels(None))


def paired_one_by_one(columns):
    """The rule as it is written, column by column.

    One belongs to the first before it that is its reverse and still alone; loops stand for
    themselves where some vertex has an odd number of them.
    """
    alone, pairs = [], []
    loops = [u for u, v in columns if u == v]
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


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12), st.randoms())
def test_columns_are_paired_in_order_of_occurrence(edges, random):
    columns = edges + [(v, u) for u, v in edges]
    random.shuffle(columns)
    m = len(edges)
    if [(v, u) for u, v in columns[m:]] == columns[:m]:
        pairs = [(k, m + k) for k in range(m)]
    else:
        pairs, _ = paired_one_by_one(columns)
    numbers = np.arange(1.0, 2 * m + 1).reshape(-1, 1, 1)
    F = sc.from_edge_index(np.array(columns, int).reshape(-1, 2).T, numbers, np.ones(3, int))
    assert F.edges.tolist() == [list(columns[k]) for k, _ in pairs]
    assert F.tail_data.tolist() == [k + 1 for k, _ in pairs]
    assert F.head_data.tolist() == [k + 1 for _, k in pairs]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=9))
def test_column_without_its_reverse_raises(columns):
    _, alone = paired_one_by_one(columns)
    edge_index = np.array(columns, int).reshape(-1, 2).T
    if not alone:
        return
    message = (
        rf"column {alone[0]} of `edge_index`, \({columns[alone[0]][0]}, "
        rf"{columns[alone[0]][1]}\), has no reverse"
    )
    with pytest.raises(ValueError, match=message):
        sc.from_edge_index(edge_index, np.ones((len(columns), 1, 1)))


def test_tensors_are_accepted():
    F = sc.from_edge_index(Tensor([[0, 1], [1, 0]]), Tensor(np.float32([[[1]], [[2]]])))
    assert F.dtype == np.float32
    assert (F.tail_map(0), F.head_map(0)) == (1, 2)
    G = sc.from_edge_index(Tensor([[0, 1], [1, 0]]), [Tensor([[1.0]]), Tensor([[2.0, 3.0]])])
    assert G.vertex_dims.tolist() == [1, 2]


def test_isolated_vertices_require_dimensions():
    columns, maps = [[0, 2], [2, 0]], np.ones((2, 1, 1))
    with pytest.raises(ValueError, match="vertex 1 has no edges.*pass `n_vertices` if"):
        sc.from_edge_index(columns, maps)
    assert sc.from_edge_index(columns, maps, n_vertices=4).vertex_dims.tolist() == [1, 1, 1, 1]
    assert sc.from_edge_index(columns, maps, [1, 0, 1, 5]).vertex_dims.tolist() == [1, 0, 1, 5]


# ---------------------------------------------------------------- as PyG stores graphs


def energy_of_columns(edge_index, maps, x):
    """Half the sum over columns of norm(maps[k] x_u - maps[reverse of k] x_v)^2."""
    columns = list(map(tuple, np.asarray(edge_index).T.tolist()))
    total = 0.0
    for k, (u, v) in enumerate(columns):
        total += np.sum((maps[k] @ x[u] - maps[columns.index((v, u))] @ x[v]) ** 2) / 2
    return total


@pytest.mark.parametrize("d", [1, 3])
def test_coalesced_graphs_with_loops_have_the_energy_of_their_columns(d):
    """Like WebKB's graphs: both directions, sorted, each loop once."""
    rng = np.random.default_rng(11)
    pairs = rng.integers(0, 30, (70, 2))
    pairs = np.concatenate([pairs, pairs[:, ::-1], [[4, 4], [9, 9]]])
    edge_index = np.unique(pairs, axis=0).T
    loops = int((edge_index[0] == edge_index[1]).sum())
    maps = rng.standard_normal((edge_index.shape[1], d, d))
    F = sc.from_edge_index(edge_index, maps, d, n_vertices=32)
    assert loops >= 2
    assert F.n_edges == (edge_index.shape[1] + loops) // 2
    assert F.vertex_dims.tolist() == [d] * 32
    x = rng.standard_normal((32, d))
    assert sc.energy(F, x.reshape(-1)) == pytest.approx(energy_of_columns(edge_index, maps, x))
    at = F.edges[:, 0] == F.edges[:, 1]
    assert not sc.edge_energy(F, x.reshape(-1))[at].any()
    appended = np.flatnonzero(edge_index[0] != edge_index[1])  # add_self_loops puts them last
    appended = np.concatenate([appended, np.flatnonzero(edge_index[0] == edge_index[1])])
    G = sc.from_edge_index(edge_index[:, appended], maps[appended], n_vertices=32)
    assert sc.energy(G, x.reshape(-1)) == pytest.approx(sc.energy(F, x.reshape(-1)))


def test_one_unpaired_loop_makes_all_loops_single():
    columns = [[1, 1, 0, 2, 0], [1, 1, 2, 0, 0]]
    F = sc.from_edge_index(columns, np.arange(1.0, 6).reshape(-1, 1, 1))
    assert F.edges.tolist() == [[1, 1], [1, 1], [0, 2], [0, 0]]
    assert F.tail_data.tolist() == [1, 2, 3, 5]
    assert F.head_data.tolist() == [1, 2, 4, 5]


def test_n_vertices_with_unequal_stalks_requires_dimensions_if_vertices_are_isolated():
    columns, maps = [[0, 1], [1, 0]], [np.ones((1, 2)), np.ones((1, 3))]
    assert sc.from_edge_index(columns, maps, n_vertices=2).vertex_dims.tolist() == [2, 3]
    message = r"isolated.*`vertex_dims` or.*`maps\[0\]` has 2 and `maps\[1\]` has 3"
    with pytest.raises(ValueError, match=message):
        sc.from_edge_index(columns, maps, n_vertices=3)


def test_n_vertices_uses_the_common_dimension():
    columns, maps = [[0, 3], [3, 0]], np.ones((2, 2, 2))
    assert sc.from_edge_index(columns, maps, 2).vertex_dims.tolist() == [2] * 4
    assert sc.from_edge_index(columns, maps, n_vertices=6).vertex_dims.tolist() == [2] * 6
    assert sc.from_edge_index(columns, maps, 2, 6).vertex_dims.tolist() == [2] * 6
    none = sc.from_edge_index(np.zeros((2, 0), int), np.zeros((0, 2, 2)), 3, 2)
    assert none.vertex_dims.tolist() == [3, 3]
    none = sc.from_edge_index(np.zeros((2, 0), int), np.zeros((0, 1, 2)), n_vertices=3)
    assert none.vertex_dims.tolist() == [2, 2, 2]
    assert sc.from_edge_index(np.zeros((2, 0), int), [], n_vertices=0).n_vertices == 0
    with pytest.raises(
        ValueError, match="`n_vertices` = 3 requires the dimension.*pass `vertex_dims`"
    ):
        sc.from_edge_index(np.zeros((2, 0), int), [], n_vertices=3)


@pytest.mark.parametrize(
    ("dims", "n", "message"),
    [
        (3, None, "ValueError: `maps[0]` has 1 columns, but vertex 0 has dimension 3"),
        (-1, None, "ValueError: `vertex_dims` must be at least 0, got -1"),
        (1.5, None, "TypeError: `vertex_dims` must be an integer"),
        (None, 1, "ValueError: column 0 of `edge_index`, (0, 1), has a vertex beyond"),
        (None, 2.0, "TypeError: `n_vertices` must be an integer, got 2.0"),
        ([1, 1, 1], 2, "ValueError: `vertex_dims` must have one entry per vertex, 2 in all, got 3"),
    ],
)
def test_inconsistent_dimensions_raise(dims, n, message):
    with raises(message):
        sc.from_edge_index([[0, 1], [1, 0]], ONES, dims, n)


ONES = np.ones((2, 1, 1))


@pytest.mark.parametrize(
    ("edge_index", "maps", "message"),
    [
        ([[0, 1]], ONES, r"`edge_index` must have shape \(2, 2 m\), got \(1, 2\)"),
        ([[0, 1], [1, 0], [1, 2], [2, 1]], ONES, "transpose it"),
        ([0, 1], ONES, "`edge_index` must be 2-dimensional"),
        (
            [[0, -1], [-1, 0]],
            ONES,
            r"column 0 of `edge_index` is \(0, -1\), but vertices are numbered from 0",
        ),
        (
            [[0, 0, 1], [1, 0, 2]],
            np.ones((3, 1, 1)),
            r"column 0 of `edge_index`, \(0, 1\), has no reverse",
        ),
        (
            [[0, 1], [1, 0]],
            np.ones((1, 1, 1)),
            "`maps` must hold one map per column of `edge_index`, 2 in all, got 1",
        ),
        ([[0, 1], [1, 0]], np.ones((2, 1)), "`maps` must have shape"),
        (
            [[0, 1], [1, 0]],
            [np.ones((1, 1)), np.ones((2, 1))],
            r"`maps\[0\]` has 1 rows and `maps\[1\]`, of the same edge",
        ),
        (
            [[0, 1], [1, 0]],
            np.array([[[1.0]], [[np.nan]]]),
            r"`maps\[1\]` \(column \(1, 0\)\) must be finite, got nan",
        ),
        ([[0, 1], [1, 0]], np.full((2, 1, 1), 1e-200), "largest entry of `maps`.*rescale"),
        (
            [[0, 1, 0, 2], [1, 0, 2, 0]],
            [np.ones((1, d)) for d in (1, 1, 2, 1)],
            r"`maps\[2\]` has 2 columns, but vertex 0 has dimension 1",
        ),
    ],
)
def test_error_names_the_invalid_column_or_map(edge_index, maps, message):
    with pytest.raises(ValueError, match=message):
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


def test_endpoints_must_be_integers():
    with pytest.raises(TypeError, match="`edge_index` must hold integers"):
        sc.from_edge_index([["a", "b"], ["b", "a"]], ONES)
