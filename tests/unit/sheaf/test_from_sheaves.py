"""Subsheaves, names of vertices, components, disjoint unions and the sheaf in units."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.sheaf import component_count, unit_sheaf
from tests.support import reference
from tests.support.errors import raises, rows
from tests.support.strategies import sheaves
from tests.unit.sheaf.test_cellular_sheaf import heads, mixed_sheaf, tails

UNNAMED = mixed_sheaf()
LETTERS = ["a", "b", "c", "d"]
BY_LETTERS, NUMBERED = UNNAMED.with_labels(LETTERS), UNNAMED.with_labels([0, 2, 30, 7])


class Column:
    """What a pandas Series of objects looks like to numpy."""

    def __init__(self, *items):
        self.items = items

    def __array__(self, dtype=None, copy=None):
        return np.array(self.items, dtype=object)


@given(sheaves(), st.data())
def test_subsheaf_has_the_edges_between_its_vertices(F, data):
    chosen = data.draw(st.lists(st.integers(0, 9), unique=True))
    chosen = [v for v in chosen if v < F.n_vertices]
    G = F.subsheaf(chosen)
    mask = np.isin(np.arange(F.n_vertices), chosen)
    vertices = np.flatnonzero(mask).tolist()
    inside = [e for e, ends in enumerate(F.edges.tolist()) if set(ends) <= set(vertices)]
    rows = [k for e in inside for k in reference.edge_coordinates(F, e)]
    columns = [k for v in vertices for k in reference.vertex_coordinates(F, v)]
    np.testing.assert_array_equal(
        reference.coboundary(G), reference.coboundary(F)[np.ix_(rows, columns)], strict=True
    )
    ends = [[vertices[v] for v in edge] for edge in G.edges.tolist()]
    assert ends == F.edges[inside].tolist()
    for mine, theirs in ((tails(G), tails(F)), (heads(G), heads(F))):
        for e, f in enumerate(inside):
            np.testing.assert_array_equal(mine[e], theirs[f], strict=True)
    assert G.equals(F.subsheaf(mask))


def test_subsheaf_keeps_names_and_order():
    G = BY_LETTERS.subsheaf([3, 1, 0])
    assert G.vertex_labels == ("a", "b", "d")
    assert G.vertex_dims.tolist() == [2, 1, 3]
    assert G.edges.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert not G.tail_data.flags.writeable
    assert BY_LETTERS.subsheaf([]).n_vertices == 0
    assert BY_LETTERS.subsheaf(np.ones(4, bool)).equals(BY_LETTERS)
    assert NUMBERED.subsheaf([2, 1]).vertex_labels == (2, 30)
    assert BY_LETTERS.subsheaf(Column("d", "b")).vertex_labels == ("b", "d")
    by_floats = BY_LETTERS.with_labels([2.0, 0.0, 1.0, 3.5])
    for names in ([2.0, 0.0], np.array([2.0, 0.0])):
        assert by_floats.subsheaf(names).vertex_labels == (2.0, 0.0)
        assert NUMBERED.subsheaf(names).equals(NUMBERED.subsheaf([0, 2]))  # indices, not names


BAD_VERTICES = """
UNNAMED.subsheaf([0, 4]) -> `vertices[1]` = 4 is out of range for 4 vertices (0 .. 3)
UNNAMED.subsheaf([-1]) -> `vertices[0]` = -1 is out of range for 4 vertices (0 .. 3)
UNNAMED.subsheaf([2, 1, 2]) -> repeat a vertex, got vertex 2 at indices 0 and 2
UNNAMED.subsheaf([True, False]) -> `vertices`, a mask, must have shape (4,), got (2,)
UNNAMED.subsheaf(["a"]) -> TypeError: dtype <U1: the vertices have no names
UNNAMED.subsheaf([0.5]) -> `vertices` must hold whole numbers, got 0.5 at index 0
UNNAMED.subsheaf(None) -> `vertices` must be 1-dimensional, got None
UNNAMED.subsheaf(3) -> `vertices` must be 1-dimensional, got 3: pass [3]
UNNAMED.subsheaf({1, 2}) -> 1-dimensional, got a set: pass list(...) of it
UNNAMED.subsheaf({1: 2}) -> got a dict: pass a list of its keys, or of its values
UNNAMED.subsheaf(v for v in [1]) -> got a generator: pass list(...) of it
UNNAMED.subsheaf("abc") -> got 'abc': the vertices have no names
NUMBERED.subsheaf([4])
        -> `vertices[0]` = 4 is out of range for 4 vertices (0 .. 3); vertices are named 0 .. 7
BY_LETTERS.subsheaf(["a", 1]) -> `vertices[1]` = 1 is not the name
BY_LETTERS.subsheaf(["b", "b"]) -> repeat a vertex, got vertex 1 at indices 0 and 1
BY_LETTERS.subsheaf("b") -> TypeError: got the name 'b': pass ['b']
BY_LETTERS.vertices_of(["a", "x"]) -> `names[1]` = 'x' is not the name of a vertex
BY_LETTERS.vertices_of([0]) -> `names[0]` = 0 is not the name of a vertex
BY_LETTERS.vertices_of("ab") -> `names` must be 1-dimensional, got 'ab': pass a list
BY_LETTERS.vertices_of([["a"]]) -> TypeError: `names[0]` must be the name of a vertex, got ['a']
UNNAMED.vertices_of(["a"]) -> `names[0]` = 'a' is not the name of a vertex
"""


@pytest.mark.parametrize(("call", "error"), rows(BAD_VERTICES))
def test_invalid_vertices_and_names_raise(call, error):
    with raises(error):
        eval(call)


@pytest.mark.parametrize(
    ("labels", "names", "expected"),
    [
        (None, [3, 1], [3, 1]),
        (LETTERS, ["d", "b"], [3, 1]),
        (LETTERS, np.array(["d", "b"]), [3, 1]),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [(1, 1), (0, 1)], [3, 1]),
        ([10, 20, 30, 40], [40, 20], [3, 1]),
        ([1, 2, 3, 0], np.array([0, 2]), [3, 1]),
    ],
)
def test_vertices_of_returns_indices_of_names(labels, names, expected):
    F = mixed_sheaf().with_labels(labels)
    found = F.vertices_of(names)
    assert found.dtype == np.int64
    assert found.tolist() == expected


NAMED = CellularSheaf.random(nx.path_graph(list("dcbae")), 2, 2, seed=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda v: sc.Solver(NAMED, fixed=v)(np.arange(10.0)),
        lambda v: sc.diffuse(NAMED, np.arange(10.0), 1.0, fixed=v),
        lambda v: sc.eliminate(NAMED, keep=v).kept,
        lambda v: sc.harmonic_extension(NAMED, v, [[1.0, 2.0], [3.0, 4.0]]),
        lambda v: (
            sc.least_squares(NAMED, np.arange(8.0), vertices=v, values=[[1.0, 2.0], [3.0, 4.0]]).x
        ),
    ],
    ids=["Solver", "diffuse", "eliminate", "harmonic_extension", "least_squares"],
)
def test_all_vertex_arguments_accept_names(call):
    expected = call([3, 1])
    np.testing.assert_array_equal(call(["a", "c"]), expected)
    assert not np.array_equal(call(["a", "d"]), expected)


def test_coarse_vertices_have_names_from_their_clusters():
    P = sc.Partition([1, 0, 0, 1, 0])
    C = sc.coarsen(NAMED, P, sc.ranks.kernel())
    assert C.sheaf.vertex_labels == (("c", "b", "e"), ("d", "a"))
    assert C.recoarsen(NAMED).sheaf.vertex_labels == C.sheaf.vertex_labels
    assert C.sheaf.vertices_of([("d", "a")]).tolist() == [1]
    assert sc.coarsen(NAMED.with_labels(None), P, 10).sheaf.vertex_labels is None


@given(sheaves())
def test_components_equal_those_of_networkx(F):
    """They are numbered by their first vertices; edges with zero maps connect vertices, too."""
    graph = nx.empty_graph(F.n_vertices)
    graph.add_edges_from(F.edges.tolist())
    expected = np.zeros(F.n_vertices, np.int64)
    for c, part in enumerate(sorted(nx.connected_components(graph), key=min)):
        expected[list(part)] = c
    np.testing.assert_array_equal(sc.components(F), expected, strict=True)
    assert component_count(F) == expected.max(initial=-1) + 1
    zero = F.with_maps(0 * F.tail_data, 0 * F.head_data)
    np.testing.assert_array_equal(sc.components(zero), expected, strict=True)


def test_split_keeps_vertex_names():
    F = CellularSheaf.constant(nx.Graph([("a", "b"), ("c", "d")]))
    parts = sc.split(F, [0, 2, 2, 4])
    assert [part.n_vertices for part in parts] == [2, 0, 2]
    assert [parts[0].vertex_labels, parts[2].vertex_labels] == [("a", "b"), ("c", "d")]


def test_union_and_split_return_read_only_copies():
    F = mixed_sheaf()
    union, starts, _ = sc.disjoint_union([F, F])
    for G in (union, *sc.split(union, starts)):
        assert not np.shares_memory(G.tail_data, F.tail_data)
        for array in (G.edges, G.vertex_dims, G.edge_dims, G.tail_data, G.head_data):
            assert not array.flags.writeable


@given(sheaves())
def test_unit_is_the_power_of_two_above_the_largest_entry(F):
    G, unit = unit_sheaf(F)
    assert np.frexp(unit)[0] == 0.5
    assert G.dtype == np.result_type(F.dtype, np.float64)
    for mine, given_maps in ((G.tail_data, F.tail_data), (G.head_data, F.head_data)):
        np.testing.assert_array_equal(mine * unit, given_maps)
    assert G.largest_entry < 1
    assert G.largest_entry >= 0.5 or F.largest_entry == 0
    assert G.vertex_labels == F.vertex_labels
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "tail_offsets"):
        assert getattr(G, name) is getattr(F, name)


def test_unit_is_one_for_zero_or_no_maps_and_right_for_extreme_entries():
    for F in (CellularSheaf([[0, 1]], [[[0.0]]], [[[0.0]]]), CellularSheaf([], [], [], [])):
        assert unit_sheaf(F)[1] == 1
    for scale in (1e-149, 1e149, 1e149j):
        F = CellularSheaf([[0, 1]], [[[0.0, 3.0 * scale]]], [[[scale]]])
        G, unit = unit_sheaf(F)
        assert 0.5 <= abs(G.tail_data[1]) < 1
        assert G.tail_data[1] * unit == F.tail_data[1]


@pytest.mark.parametrize(("size", "beyond"), [(1e149, 1e152), (1e-149, 1e-152)])
def test_new_maps_and_unions_allow_the_range_of_a_coarse_sheaf(size, beyond):
    """Its maps may exceed the range of user-supplied maps; new maps may exceed it as far."""
    F = CellularSheaf.constant([[0, 1]])
    F = F.with_maps(size * F.tail_data, size * F.head_data)
    factor = beyond / size
    G = sc.coarsen(F, sc.Partition([0, 1]), basis=[[[factor]], [[factor]]]).sheaf
    assert G.with_maps(G.tail_data, G.head_data).equals(G)
    assert sc.disjoint_union([G, G])[0].tail_data.tolist() == [G.tail_data[0]] * 2
    with pytest.raises(ValueError, match="where squares in float64 are safe"):
        G.with_maps(factor * G.tail_data, factor * G.head_data)
    single = np.full(1, beyond ** (1 / 6), np.float32)  # in range in double precision only
    with pytest.raises(ValueError, match="where squares in float32 are safe"):
        G.with_maps(single, single)


PATH = CellularSheaf.random([[0, 1], [1, 2]], 2, 3, seed=11)
P = sc.Partition([0, 0, 1])
PATTERN = ("the topology of the pattern", "make a new LaplacianPattern for another one")
COARSENED = ("the graph and the stalks of the sheaf that was coarsened", "use coarsen for another")
ORIGINAL = ("the graph and the stalks of the original sheaf", "use eliminate for another graph")

CALLS = {
    "pattern": (sc.LaplacianPattern(PATH).fill, *PATTERN),
    "bsr pattern": (sc.LaplacianPattern(PATH, "bsr").fill, *PATTERN),
    "modes": (sc.coarsen(PATH, P, 2).recoarsen, *COARSENED),
    "basis": (sc.coarsen(PATH, P, basis=[np.eye(4, 2), np.eye(2)]).recoarsen, *COARSENED),
    "elimination": (sc.eliminate(PATH).refresh, *ORIGINAL),
}

OTHERS = [
    ([[0, 1], [2, 1]], 2, 3, "edges differ, first at index 1, with [2, 1] instead of [1, 2]"),
    ([[0, 1], [1, 2], [0, 2]], 2, 3, "edges differ, there are 3 of them, not 2"),
    ([[0, 1], [1, 2]], [2, 2, 1], 3, "vertex_dims differ, first at index 2, with 1 instead of 2"),
    ([[0, 1], [1, 2]], [2] * 4, 3, "vertex_dims differ, there are 4 of them, not 3"),
    ([[0, 1], [1, 2]], 2, [3, 2], "edge_dims differ, first at index 1, with 2 instead of 3"),
]


@pytest.mark.parametrize(("edges", "vertex_dims", "edge_dims", "what"), OTHERS)
@pytest.mark.parametrize("call", CALLS)
def test_error_names_the_first_difference_of_topologies(call, edges, vertex_dims, edge_dims, what):
    refresh, wanted, remedy = CALLS[call]
    other = CellularSheaf.random(edges, vertex_dims, edge_dims, seed=11)
    with raises(f"ValueError: `sheaf` must have {wanted}, but its {what}: {remedy}"):
        refresh(other)
