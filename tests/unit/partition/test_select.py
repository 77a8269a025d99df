"""The guarantees of ``select``, for every method."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sheafcoarsen.partition import select
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.methods import repair_labels
from sheafcoarsen.sheaf import CellularSheaf

METHODS = ["balls", "matching", "spectral", "metis"]
BALANCED = ["balls", "matching", "metis"]


def grid(*shape):
    return nx.convert_node_labels_to_integers(nx.grid_graph(shape))


def sheaf_on(edges, vertex_dims, edge_dims, scale=1.0, seed=7, dtype=float):
    """Return a sheaf with random maps on any edge list."""
    edges = np.reshape(edges, (-1, 2))
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, seed=seed, dtype=dtype)
    return F.with_maps(scale * F.tail_data, scale * F.head_data)


def assert_guarantees(partition, n_clusters, n, edges):
    """Check that there are n_clusters clusters, each connected or a union of components."""
    assert partition.n_vertices == n
    assert partition.n_clusters == n_clusters
    assert partition.sizes.min() >= 1
    graph = nx.empty_graph(n)
    graph.add_edges_from(np.asarray(edges).reshape(-1, 2).tolist())
    components = list(nx.connected_components(graph))
    for a in range(n_clusters):
        members = partition.cluster(a).tolist()
        if not nx.is_connected(graph.subgraph(members)):
            assert len(components) > n_clusters
            joined = [c for c in components if not c.isdisjoint(members)]
            assert set(members) == set().union(*joined)  # whole ones


# two vertices outweigh all others: their clusters have fewer vertices than parts by weight
HEAVY = [(0, 7), (1, 7), (2, 3), (2, 7), (2, 5), (3, 5), (3, 6), (4, 7), (5, 6), (5, 7), (6, 7)]


@st.composite
def problems(draw):
    """Draw a multigraph with loops, free vertices and ragged or empty stalks, and a count."""
    n = draw(st.integers(1, 24))
    vertex = st.integers(0, n - 1)
    near = st.tuples(vertex, st.integers(-2, 2)).map(lambda p: (p[0], (p[0] + p[1]) % n))
    edges = draw(st.lists(st.one_of(near, st.tuples(vertex, vertex)), max_size=50))
    dims = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    for v in draw(st.lists(vertex, max_size=2)):  # these outweigh all others
        dims[v] = 150
    edge_dims = draw(st.lists(st.integers(0, 2), min_size=len(edges), max_size=len(edges)))
    return edges, dims, edge_dims, draw(st.integers(1, n))


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SmallComponentsWarning")
@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(problem=problems(), weights=st.sampled_from(["graph", "sheaf"]), seed=st.integers(0, 3))
@example(problem=([], [0, 0, 0], [], 2), weights="graph", seed=1)
@example(problem=(HEAVY, [167, 2, 1, 2, 1, 3, 3, 93], [1] * 11, 7), weights="graph", seed=0)
@example(problem=([(0, 1), (1, 2), (2, 0)], [1, 1, 1], [0, 0, 0], 2), weights="sheaf", seed=1)
@example(problem=([(0, 1), (1, 2), (2, 3)], [1, 0, 0, 0], [2, 2, 2], 3), weights="graph", seed=0)
@example(problem=([(0, 1), (1, 2), (2, 3)], [0] * 4, [2, 2, 2], 3), weights="graph", seed=0)
def test_guarantees_hold_on_any_multigraph(method, problem, weights, seed):
    edges, dims, edge_dims, n_clusters = problem
    F = sheaf_on(edges, dims, edge_dims)
    partition = select(F, n_clusters, method=method, weights=weights, seed=seed)
    assert_guarantees(partition, n_clusters, len(dims), edges)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("sizes", "n_clusters", "spread"),
    [([1, 2, 3, 5, 7, 9, 4, 6, 8, 3, 1, 1], 4, 2), ([1, 2, 3] * 100, 60, 0)],
    ids=["of all sizes", "small"],
)
def test_surplus_components_are_packed_evenly(method, sizes, n_clusters, spread):
    G = nx.disjoint_union_all([nx.cycle_graph(s) if s > 2 else nx.path_graph(s) for s in sizes])
    partition = select(G, n_clusters, method=method)
    assert_guarantees(partition, n_clusters, sum(sizes), list(G.edges))
    assert partition.sizes.max() - partition.sizes.min() <= spread


@pytest.mark.parametrize("method", METHODS)
def test_components_get_clusters_in_proportion_to_their_weight(method):
    G = nx.disjoint_union(nx.path_graph(30), nx.path_graph(10))
    partition = select(G, 4, method=method)
    assert_guarantees(partition, 4, 40, list(G.edges))
    assert partition.sizes.max() <= 15


@pytest.mark.parametrize("method", METHODS)
def test_partition_is_determined_by_the_seed(method):
    G = grid(12, 13)
    found, again = (
        [tuple(select(G, 9, method=method, seed=seed).labels.tolist()) for seed in range(6)]
        for _ in range(2)
    )
    assert found == again
    assert len(set(found)) >= 3


def test_auto_is_balls():
    G = grid(15, 15)
    labels = select(G, 11, seed=5).labels
    assert np.array_equal(labels, select(G, 11, method="balls", seed=5).labels)
    assert not np.array_equal(labels, select(G, 11, method="matching", seed=5).labels)


@pytest.mark.parametrize(
    ("graph", "n_clusters", "most", "methods"),
    [
        (grid(30, 31), 25, 1.35, BALANCED),
        (grid(9, 10, 11), 7, 1.35, BALANCED),
        (grid(9, 10, 11), 400, 1.6, BALANCED),
        # clusters that repair makes heavy are refined again
        (nx.barbell_graph(40, 60), 10, 1.35, ["balls"]),
        (nx.barbell_graph(40, 60), 40, 1.35, ["matching"]),
        (nx.wheel_graph(501), 20, 2, BALANCED),  # arcs
        (nx.balanced_tree(2, 11), 100, 4, ["balls", "matching"]),
    ],
    ids=["square", "cube", "cube, small", "barbell", "barbell, small", "wheel", "tree"],
)
def test_clusters_are_balanced(graph, n_clusters, most, methods):
    for method in methods:
        sizes = select(graph, n_clusters, method=method).sizes
        assert sizes.max() <= most * sizes.mean()
        if most < 2:
            assert sizes.min() >= sizes.mean() / 3 - 1


@pytest.mark.parametrize(
    ("method", "allowed"), [("balls", 0.16), ("matching", 0.17), ("metis", 0.15)]
)
def test_clusters_of_grids_have_small_cuts(method, allowed):
    G = grid(60, 60)  # squares of 6 x 6 cut 9 of 59 lines in each direction, 0.153
    labels = select(G, 100, method=method).labels
    edges = np.array(G.edges)
    assert (labels[edges[:, 0]] != labels[edges[:, 1]]).mean() <= 1.3 * allowed


@pytest.mark.parametrize("method", BALANCED)
def test_clusters_balance_stalk_dimensions_not_vertex_counts(method):
    dims = np.repeat([9, 1], 40)
    path = np.stack([np.arange(79), np.arange(1, 80)], axis=1)
    F = sheaf_on(path, dims, np.ones(79, dtype=int))
    labels = select(F, 4, method=method).labels
    # clusters of 20 vertices would weigh up to 180
    assert np.bincount(labels, weights=dims).max() <= 150
    assert np.bincount(labels).max() >= 30


@pytest.mark.parametrize("method", BALANCED)
def test_vertices_with_empty_stalks_are_spread_over_clusters(method):
    G = grid(10, 10)
    F = CellularSheaf.from_flat(np.array(G.edges), [], [], np.zeros(100, dtype=int), 1)
    assert select(F, 5, method=method).sizes.max() <= 31


def clusters(partition):
    return frozenset(frozenset(partition.cluster(a).tolist()) for a in range(partition.n_clusters))


# ---------------------------------------------------------------- hubs


@pytest.mark.parametrize("method", METHODS)
def test_clusters_of_a_star_are_leaves_and_the_rest(method):
    sizes = np.sort(select(nx.star_graph(500), 40, method=method).sizes)
    assert sizes.tolist() == [1] * 39 + [462]  # the only connected way


def test_wheel_is_split_along_its_rim():
    links = links_of(nx.wheel_graph(201), "graph")
    sizes = np.bincount(repair_labels(links, np.zeros(201, dtype=np.int32), 4, False))
    assert sizes.max() <= 60  # the spokes alone are a star: three single vertices and the rest


@pytest.mark.large
@pytest.mark.parametrize("method", ["balls", "matching"])
@pytest.mark.parametrize("n_clusters", [500, 70_000])
def test_hubs_do_not_take_quadratic_time(method, n_clusters):
    n = 200_000
    star = np.stack([np.zeros(n, dtype=int), np.arange(1, n + 1)], axis=1)
    rim = np.stack([np.arange(1, n), np.arange(2, n + 1)], axis=1)[: n // 2]
    partition = select(np.concatenate([star, rim]), n_clusters, method=method)
    # in a fraction of a second; quadratic time would hang the run
    assert partition.n_clusters == n_clusters


@pytest.mark.parametrize("method", METHODS)
def test_two_joined_cliques_are_found(method):
    for seed in range(3):
        partition = select(nx.barbell_graph(12, 0), 2, method=method, seed=seed)
        assert clusters(partition) == {frozenset(range(12)), frozenset(range(12, 24))}


def test_progress_bar_is_shown_only_on_request(capsys):
    path = nx.path_graph(5)
    for method in METHODS:
        select(path, 3, method=method)
    assert capsys.readouterr().err == ""
    for n_clusters in (1, 3, 5):
        select(path, n_clusters, progress=True)
        shown = capsys.readouterr().err
        assert "select" in shown
        assert "3/3" in shown


# ---------------------------------------------------------------- weights of links


RING = np.stack([np.arange(20), (np.arange(20) + 1) % 20], axis=1)
WEAK = np.where(np.isin(np.arange(20), [4, 14]), 1e-3, 1.0)  # links 4-5 and 14-15
HALVES = frozenset({frozenset(range(5, 15)), frozenset([*range(5), *range(15, 20)])})


@pytest.mark.parametrize(
    ("method", "scale"), list(zip(METHODS, [1e-100, 1e100, 1e100, 1e-100], strict=True))
)
def test_sheaf_weights_cut_weak_links_at_any_scale(method, scale):
    roots = scale * np.sqrt(WEAK)
    F = CellularSheaf(RING, roots[:, None, None] * np.eye(2), roots[:, None, None] * np.eye(2))
    for seed in range(4):
        assert clusters(select(F, 2, method=method, weights="sheaf", seed=seed)) == HALVES
    unaware = [clusters(select(F, 2, method=method, weights="graph", seed=s)) for s in range(4)]
    assert unaware != [HALVES] * 4


@pytest.mark.parametrize("method", METHODS)
def test_graph_weights_are_attributes_or_adjacency_entries(method):
    G = nx.cycle_graph(20)
    for u, v in ((4, 5), (14, 15)):
        G.edges[u, v]["weight"] = 1e-3  # the others are missing: 1
    adjacency = scipy.sparse.coo_array((WEAK, RING.T), shape=(20, 20))
    adjacency = scipy.sparse.csr_array(adjacency + adjacency.T)
    for graph in (G, adjacency):
        for seed in range(4):
            assert clusters(select(graph, 2, method=method, seed=seed)) == HALVES
    assert any(clusters(select(RING, 2, method=method, seed=s)) != HALVES for s in range(4))


@pytest.mark.parametrize(
    ("method", "weight"),
    [*zip(METHODS, [0.0, 5e-324, 1e308, 0.0], strict=True), ("balls", 1e308), ("metis", 5e-324)],
)
def test_equal_weights_give_the_same_partition_at_any_scale(method, weight):
    G = grid(7, 8)
    nx.set_edge_attributes(G, weight, "weight")
    partition = select(G, 6, method=method)
    assert_guarantees(partition, 6, 56, list(G.edges))
    assert partition.sizes.max() <= 22
    if weight > 0:
        assert np.array_equal(partition.labels, select(grid(7, 8), 6, method=method).labels)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_links_are_frobenius_norms_summed_over_parallel_edges(dtype):
    edges = [(0, 1), (1, 0), (2, 2), (1, 2), (3, 1), (0, 1)]
    F = sheaf_on(edges, [2, 3, 1, 0], [2, 1, 2, 3, 2, 0], dtype=dtype)
    links = links_of(F, "sheaf")
    assert links.starts.tolist() == [0, 1, 4, 5, 6]
    assert links.sizes.tolist() == [2, 3, 1, 1]
    norms = [np.linalg.norm(F.tail_map(e).conj().T @ F.head_map(e)) for e in range(6)]
    expected = {(0, 1): norms[0] + norms[1] + norms[5], (1, 2): norms[3], (1, 3): norms[4]}
    top = max(norms[e] for e in (0, 1, 3, 4, 5))
    for u in range(4):
        for p in range(links.starts[u], links.starts[u + 1]):
            v = int(links.ends[p])
            wanted = expected[min(u, v), max(u, v)] / top
            assert abs(links.weights[p] - wanted) <= 30 * np.finfo(dtype).eps * max(wanted, 1)
    assert set(links_of(F, "graph").weights.tolist()) == {3.0, 1.0}


def test_edge_lists_have_unit_weights_and_loops_are_ignored():
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 1), (1, 2)])
    G.edges[0, 1, 1]["weight"] = 4
    assert sorted(links_of(G, "graph").weights.tolist()) == [0.25, 0.25, 1.25, 1.25]
    edges = [[0, 1], [0, 1], [1, 1], [1, 2]]
    assert sorted(links_of(edges, "graph").weights.tolist()) == [1, 1, 2, 2]


LARGE = np.where(np.arange(60) == 30, 1000, 2)  # vertex 30 is heavier than a mean cluster


@pytest.mark.parametrize("method", BALANCED)
@pytest.mark.parametrize(
    ("light", "dims", "kept"),
    [
        ([e for e in range(59) if e % 10 not in (2, 3)], 2, True),
        ([e for e in range(59) if e % 10 not in (2, 3)], LARGE, True),
        (list(range(20)), 2, False),  # the others join too many vertices for one cluster
        ([10, 29, 30], LARGE, False),  # the others join them to fewer groups than clusters
    ],
    ids=["pairs", "pairs and a large stalk", "long chain", "few groups"],
)
def test_links_heavier_than_all_lighter_ones_are_cut_only_for_balance(method, light, dims, kept):
    edges = np.array(nx.path_graph(60).edges)
    heavy = ~np.isin(np.arange(59), light)
    roots = np.sqrt(np.where(heavy, 1e5, 10 + np.arange(59) % 7))
    dims = np.broadcast_to(dims, 60)
    maps = [[r * np.eye(1, dims[v]) for r, v in zip(roots, ends, strict=True)] for ends in edges.T]
    F = CellularSheaf(edges, *maps)
    for n_clusters in range(5, 16):
        P = select(F, n_clusters, method, "sheaf", seed=n_clusters % 3)
        assert_guarantees(P, n_clusters, 60, edges)
        cut = P.labels[edges[heavy, 0]] != P.labels[edges[heavy, 1]]
        assert cut.any() != kept
        heaviest = np.bincount(P.labels, dims).max()
        assert heaviest <= max(2 * dims.sum() / n_clusters, dims.max() + 60)


@pytest.mark.parametrize("method", BALANCED)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_links_of_weight_zero_are_lighter_than_all_others(method, scale):
    weight = scale * np.array([1, 0, 0.3, 0.3, 0, 0, 0, 1, 1, 0, 1])
    F = CellularSheaf.constant(nx.path_graph(12), weight=weight)
    for seed in range(4):
        labels = select(F, 4, method, "sheaf", seed=seed).labels
        assert not weight[np.diff(labels) != 0].any()
