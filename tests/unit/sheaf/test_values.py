import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from sheafcoarsen.sheaf import edge_weights, graph_arrays
from sheafcoarsen.sheaf.graphs import edge_values
from tests.support.helpers import assert_residual, dense_rank, eps_of
from tests.support.strategies import DTYPES, graphs
from tests.unit.sheaf.test_cellular_sheaf import assert_same_sheaf, heads, tails
from tests.unit.sheaf.test_from_graphs import named_graph


def test_edge_values_accept_names_lists_and_arrays():
    arrays = graph_arrays(named_graph())
    expected = np.array([9.0, 4.0])
    for value in ("weight", [9.0, 4.0], (9, 4), expected):
        assert edge_values(arrays, value, "weight").tolist() == [9.0, 4.0]
    assert edge_values(arrays, expected.astype(np.float32), "weight").dtype == np.float32


def test_missing_attributes_have_the_default_value():
    G = named_graph()
    del G.edges["a", 3]["weight"]
    arrays = graph_arrays(G)
    assert edge_weights(arrays, "weight").tolist() == [9.0, 1.0]
    assert edge_weights(arrays, "no such attribute").tolist() == [1.0, 1.0]
    assert edge_weights(arrays, None).tolist() == [1.0, 1.0]
    assert edge_weights(graph_arrays([[0, 1]]), "weight").tolist() == [1.0]
    with pytest.raises(
        ValueError,
        match="`weight` = 'length' names an edge attribute that no edge of the graph has",
    ):
        edge_weights(graph_arrays([[0, 1]]), "length")


@pytest.mark.parametrize("shape", [(0, 3, 3), (0, 2, 5)])
def test_empty_edge_values_keep_their_shape(shape):
    arrays = graph_arrays(np.zeros((0, 2), int))
    values = edge_values(arrays, np.zeros(shape, np.float32), "transports", shape=(-1, -1))
    assert values.shape == shape
    assert values.dtype == np.float32


BAD_VALUES = [
    ([1.0], (), "`x` must hold a number for each of the 2 edges, got shape (1,)"),
    ([[1.0], [2.0]], (), "got shape (2, 1)"),
    (np.ones((2, 3, 4)), (3, 3), "`x` must hold an array of shape (3, 3) for each of the 2 edges"),
    (np.ones(2), (-1, -1), "`x` must hold an array of shape (d, d) for each of the 2 edges"),
    ([np.eye(2), np.eye(3)], (-1, -1), "rectangular array of numbers"),
    ([1.0, np.nan], (), "`x` must be finite, got nan for edge 1 ('a', 3)"),
    ("colour", (), "names an edge attribute that no edge of the graph has"),
    ("only one", (), "edge 0 ('c', 'a') has no attribute 'only one' for `x`"),
]


@pytest.mark.parametrize(
    ("value", "shape", "message"), BAD_VALUES, ids=[row[-1] for row in BAD_VALUES]
)
def test_invalid_edge_values_raise(value, shape, message):
    G = named_graph()
    G.edges["a", 3]["only one"] = 1.0
    with pytest.raises(ValueError, match=re.escape(message)):
        edge_values(graph_arrays(G), value, "x", shape=shape)


BAD_WEIGHTS = [
    ([1.0, -2.0], ValueError, "must not be negative, got -2.0 for edge 1 ('a', 3)"),
    ([1j, 1j], TypeError, "`weight` must be real, got dtype complex128"),
    ([True, False], TypeError, "got dtype bool"),
    (["a", "b"], TypeError, "got dtype <U1"),
    ([1.0, np.inf], ValueError, "must be finite, got inf"),
]


@pytest.mark.parametrize(
    ("weight", "error", "message"), BAD_WEIGHTS, ids=[row[-1] for row in BAD_WEIGHTS]
)
def test_invalid_weights_raise(weight, error, message):
    with pytest.raises(error, match="`weight`.*" + re.escape(message.removeprefix("`weight`"))):
        edge_weights(graph_arrays(named_graph()), weight)


@given(
    graphs(),
    st.sampled_from(["general", "orthogonal", "diagonal"]),
    st.sampled_from(DTYPES),
    st.integers(0, 999),
)
def test_random_sheaves_have_the_given_dimensions(graph, kind, dtype, seed):
    n, edges = graph
    rng = np.random.default_rng(seed)
    vertex_dims, edge_dims = rng.integers(0, 7, n), rng.integers(0, 7, len(edges))
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, kind, seed=seed, dtype=dtype)
    assert F.dtype == dtype
    assert F.edges.tolist() == edges.tolist()
    assert F.vertex_dims.tolist() == vertex_dims.tolist()
    assert F.edge_dims.tolist() == edge_dims.tolist()
    for M in tails(F) + heads(F):
        k = min(M.shape)
        if kind == "orthogonal":  # orthonormal rows or columns, whichever are fewer
            gram = M @ M.conj().T if M.shape[0] == k else M.conj().T @ M
            assert_residual(gram - np.eye(k), n=max(*M.shape, 1), eps=eps_of(dtype))
        elif kind == "diagonal":
            assert (M * np.eye(*M.shape) == M).all()
            assert (M.diagonal() != 0).all()
        else:
            assert (M != 0).all()
        if F.dtype.kind == "c" and k:
            assert M.imag.any()


@pytest.mark.parametrize("kind", ["general", "orthogonal", "diagonal"])
def test_random_sheaves_are_determined_by_the_seed(kind):
    edges = [[0, 1], [0, 1], [1, 2]]
    F = CellularSheaf.random(edges, 3, 3, kind, seed=4217)
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=4217))
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=np.random.default_rng(4217)))
    assert not np.array_equal(
        F.tail_data, CellularSheaf.random(edges, 3, 3, kind, seed=4218).tail_data
    )
    assert not np.array_equal(F.tail_data, F.head_data)
    assert not np.array_equal(F.tail_map(0), F.tail_map(1))
    with_entropy = [CellularSheaf.random(edges, 3, 3, kind).tail_data for _ in range(2)]
    assert not np.array_equal(*with_entropy)


def test_random_orthogonal_maps_cover_both_components_of_the_group():
    """QR without correcting the signs would favour one component."""
    F = CellularSheaf.random(np.zeros((400, 2), int), 2, 2, "orthogonal", seed=90013)
    signs = np.linalg.det(F.tail_data.reshape(-1, 2, 2))
    assert 140 < (signs > 0).sum() < 260
    entries = F.tail_data.reshape(-1, 2, 2)[:, 0, 0]
    assert 140 < (entries > 0).sum() < 260


def test_random_general_entries_are_standard_normal():
    F = CellularSheaf.random([[0, 1]], 100, 100, seed=90017)
    assert abs(F.tail_data.mean()) < 0.05
    assert abs(F.tail_data.std() - 1) < 0.05
    assert dense_rank(F.tail_map(0)) == 100


def test_random_sheaves_accept_all_graph_types():
    G = named_graph()
    F = CellularSheaf.random(G, [1, 2, 3, 4], 2, seed=6)
    assert F.vertex_labels == tuple(G.nodes)
    assert F.edges.tolist() == [[0, 2], [2, 3]]
    F = CellularSheaf.random([[0, 1]], [1, 2, 3], 2, seed=6)  # a third vertex, isolated
    assert F.vertex_dims.tolist() == [1, 2, 3]
    assert F.vertex_labels is None
