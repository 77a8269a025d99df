"""Balls, matching, spectral clustering and METIS alone, and the repair of their labels."""

import re
import sys
import warnings
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition import Partition, methods, select
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.methods import clusters_needed, find_balls, match_levels, repair_labels
from tests.support.helpers import normal
from tests.unit.partition.test_select import METHODS, assert_guarantees, problems, sheaf_on


def test_groups_grow_up_to_the_maximum_weight():
    """In a star, matching only pairs would stall at once."""
    links = links_of(nx.star_graph(20), "graph")
    groups = np.empty(21, dtype=np.int32)
    count = kernels.match(links, np.arange(21), 1, 7.0, groups)
    assert np.bincount(groups).max() == 7
    assert count == 15


def test_matching_stops_if_groups_are_full():
    labels = match_levels(links_of(nx.star_graph(60), "graph"), 10, np.random.default_rng(1))
    assert len(np.unique(labels)) == 10


@pytest.mark.parametrize("find", [find_balls, match_levels])
def test_clusters_are_refined_on_every_level(monkeypatch, find):
    G = nx.convert_node_labels_to_integers(nx.grid_graph((10, 10, 10)))
    links, edges, refine, cuts = links_of(G, "graph"), np.array(G.edges), methods.refine, []
    for least in (1001, 1000, 0):  # vertices of a level that is refined: none, the first, each
        monkeypatch.setattr(
            methods, "refine", lambda L, *args, n=least: len(L.sizes) >= n and refine(L, *args)
        )
        found = [find(links, 22, np.random.default_rng(seed)) for seed in range(3)]
        cuts.append(sum((labels[edges[:, 0]] != labels[edges[:, 1]]).sum() for labels in found))
    assert cuts[2] < 0.95 * cuts[1] < 0.9 * cuts[0]
    assert max(np.bincount(found[0], minlength=22)) <= 1.35 * 1000 / 22


def refined(G, labels, n_clusters):
    labels = np.array(labels, np.int32)
    methods.refine(links_of(G, "graph"), labels, n_clusters)
    return labels.tolist()


def test_refinement_prefers_lighter_clusters_and_unloads_heavy_ones():
    path = nx.path_graph(10)
    assert refined(path, [0] * 6 + [1] * 4, 2) == [0] * 5 + [1] * 5  # equal links
    cycle = nx.cycle_graph(6)
    assert refined(cycle, [0, 0, 1, 1, 2, 2], 3) == [0, 0, 1, 1, 2, 2]
    ladder = nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 6))  # 0 .. 5 over 6 .. 11
    labels = [0] * 5 + [1] + [0] * 5 + [1]  # weights 10 and 2; each move cuts one more link
    assert np.bincount(refined(ladder, labels, 2)).max() <= 1.35 * 6


def test_balls_do_not_spread_through_hubs():
    links = links_of(nx.barabasi_albert_graph(4000, 3, seed=23), "graph")
    labels, heap = np.empty(4000, np.int32), np.empty(len(links.ends) + 1, np.int64)
    workspace = np.empty((3, 4000)), np.empty((6, 4000), np.int32), np.empty(4000, np.int64)
    assert 90 <= kernels.grow(links, 100, 29, labels, heap, workspace) <= 110


def fake_metis(labels, calls, **more):
    def part_graph(n_clusters, **options):
        calls.append((n_clusters, options))
        return 0, labels

    return SimpleNamespace(part_graph=part_graph, Options=lambda **options: options, **more)


@pytest.mark.parametrize("recent", [True, False])
def test_empty_and_disconnected_parts_of_metis_are_repaired(monkeypatch, recent):
    calls = []
    more = {"CSRAdjacency": lambda starts, ends: (starts, ends)} if recent else {}
    labels = [3, 0, 0, 3, 3, 0, 0, 0, 3, 3, 3, 3]  # 1 and 2 are empty, 0 and 3 in pieces
    monkeypatch.setitem(sys.modules, "pymetis", fake_metis(labels, calls, **more))
    G = nx.path_graph(12)
    G.edges[0, 1]["weight"] = 0.0
    G.edges[1, 2]["weight"] = 2.5
    partition = select(G, 4, method="metis", seed=3)
    select(G, 4, method="metis", seed=4)
    assert_guarantees(partition, 4, 12, list(G.edges))
    (n_clusters, options), (_, other) = calls
    assert n_clusters == 4
    assert ("adjacency" in options) == recent
    weights = np.asarray(options["eweights"])
    assert weights.dtype.kind == "i"
    assert weights.min() == 1
    assert weights.max() == 1000
    assert options["options"]["seed"] != other["options"]["seed"]


@pytest.mark.parametrize("values", [[2**40, 2**39, 1], [1e-300, 2e-300, 0.0], [1e300, 5e299]])
def test_weights_for_metis_fit_into_31_bits_and_keep_their_ratio(values):
    for copies in (1, 10_000):
        many = np.tile(values, copies)
        found = methods._small_integers(many).astype(np.int64)
        assert found.min() >= 1
        assert found.sum() < 2**31
        wanted = many * (found.max() / many.max())
        # to the nearest integer, but at least 1
        assert (np.abs(found - np.maximum(wanted, 1)) <= 0.01 * wanted + 0.5).all()
    assert methods._small_integers(np.array([3, 5, 2**20])).tolist() == [3, 5, 2**20]


def test_missing_pymetis_raises_error_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"pip install sheafcoarsen\[metis\]"):
        select(nx.path_graph(5), 2, method="metis")


@pytest.mark.large
def test_spectral_finds_large_blocks_by_lanczos():
    sizes = [300, 400, 500]
    G = nx.stochastic_block_model(sizes, 0.002 + 0.05 * np.eye(3), seed=11)
    truth = np.repeat([0, 1, 2], sizes)
    assert agreement(select(np.array(G.edges), 3, method="spectral").labels, truth) >= 0.98


def test_spectral_cuts_a_long_path_evenly():
    sizes = select(nx.path_graph(3000), 4, method="spectral").sizes  # eigenvalues 1e-7 apart
    assert sizes.min() >= 500


def test_spectral_finds_blocks_with_very_different_degrees():
    rng = np.random.default_rng(0)
    size, block = 10.0 ** rng.uniform(0, 3, 60), np.arange(60) // 20
    A = np.outer(size, size) * np.where(block[:, None] == block, 1.0, 0.02)
    labels = select(scipy.sparse.csr_array(A), 3, method="spectral").labels
    assert [len(np.unique(labels[block == b])) for b in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(("n", "called"), [(1000, 0), (1001, 1)])
def test_only_large_components_use_a_sparse_eigensolver(n, called, monkeypatch):
    calls, lanczos = [], scipy.sparse.linalg.eigsh
    monkeypatch.setattr(
        methods.scipy.sparse.linalg, "eigsh", lambda *a, **b: calls.append(1) or lanczos(*a, **b)
    )
    graph = nx.random_regular_graph(4, n, seed=1)
    assert select(graph, 3, "spectral").n_clusters == 3
    assert len(calls) == called


PLANTED = np.repeat([0, 1], 200)


def camps(seed, noise=0.05, p=0.1):
    """Return a signed graph: positive within two camps, negative between them, with noise."""
    rng = np.random.default_rng(seed)
    edges = np.array(nx.gnp_random_graph(400, p, seed=seed).edges)
    sign = np.where(PLANTED[edges[:, 0]] == PLANTED[edges[:, 1]], 1, -1)
    sign = np.where(rng.random(len(edges)) < noise, -sign, sign)
    return CellularSheaf.signed(edges, sign=sign, n_vertices=400)


def transports(seed, d, dtype=float, k=3, size=100, p=(0.25, 0.25)):
    """Return a connection that is flat inside k clusters, and random between them."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), size)
    edges = np.array(nx.random_partition_graph([size] * k, *p, seed=seed).edges)
    g, U = (np.linalg.qr(normal(rng, (m, d, d), dtype))[0] for m in (k * size, len(edges)))
    flat = g[edges[:, 0]] @ g[edges[:, 1]].conj().swapaxes(1, 2)
    inside = labels[edges[:, 0]] == labels[edges[:, 1]]
    return CellularSheaf.connection(edges, np.where(inside[:, None, None], flat, U)), labels


def agreement(found, planted):
    """Return the share of vertices whose cluster's majority is their own planted cluster."""
    table = np.zeros((found.max() + 1, planted.max() + 1))
    np.add.at(table, (found, planted), 1)
    return table.max(axis=1).sum() / len(planted)


@pytest.mark.parametrize("seed", range(3))
def test_two_planted_camps_are_found(seed):
    F = camps(seed)
    P = sc.select(F, 2, method="spectral")
    assert P.n_clusters == 2
    assert agreement(P.labels, PLANTED) >= 0.99
    assert (
        agreement(sc.select(F, 2).labels, PLANTED) < 0.7
    )  # the graph alone does not show the camps


def test_planted_camps_are_found_next_to_small_components_that_share_a_cluster():
    F = camps(0)
    G, _, _ = sc.disjoint_union([F, CellularSheaf.constant([], n_vertices=4)])
    P = sc.select(G, 3, method="spectral")
    assert P.n_clusters == 3
    assert agreement(P.labels[:400], PLANTED) >= 0.99


@pytest.mark.parametrize(("d", "dtype"), [(1, complex), (2, float), (3, np.float32), (2, complex)])
def test_planted_clusters_of_consistent_transports_are_found(d, dtype):
    F, labels = transports(0, d, dtype)
    for scale in (1, 1e-10):
        G = F.with_maps(F.tail_data * F.dtype.type(scale), F.head_data * F.dtype.type(scale))
        P = sc.select(G, 3, method="spectral")
        assert agreement(P.labels, labels) >= 0.99
    assert agreement(sc.select(F, 3, method="matching").labels, labels) < 0.7


def test_many_clusters_of_a_large_sheaf_are_found():
    F, labels = transports(1, 3, k=12, size=40, p=(0.5, 0.02))
    P = sc.select(F, 12, method="spectral")
    assert P.n_clusters == 12
    assert agreement(P.labels, labels) >= 0.9
    # more features would take more memory
    assert methods._sheaf_rows(F, 12, np.random.default_rng(0)).shape == (480, 24**2)


@pytest.mark.parametrize("dim", [1, 3])
def test_constant_sheaf_has_the_spectral_clusters_of_its_graph(dim):
    graph = nx.gnp_random_graph(60, 0.15, seed=1)
    F = CellularSheaf.constant(graph, dim=dim, weight=None)
    wanted = sc.select(nx.to_scipy_sparse_array(graph, weight=None), 9, method="spectral")
    np.testing.assert_array_equal(sc.select(F, 9, method="spectral").labels, wanted.labels)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_only_one_coordinate_shows_are_found(seed):
    """Both maps of an edge are the same diagonal matrix, and have the same norm for all edges."""
    edges = np.array(nx.gnp_random_graph(200, 0.1, seed=seed).edges)
    planted = np.arange(200) // 100
    inside = planted[edges[:, 0]] == planted[edges[:, 1]]
    maps = np.sqrt(np.where(inside[:, None], [0.99, 0.01], [0.01, 0.99]))
    F = CellularSheaf.diagonal(edges, maps, maps)
    assert agreement(sc.select(F, 2, method="spectral").labels, planted) >= 0.99


# ---------------------------------------------------------------- repair and packing


FORKED = [(0, 0), (0, 0), (0, 1), (0, 2), (4, 5), (5, 7), (7, 9), (11, 13), (13, 0), (0, 3), (0, 4)]


@settings(max_examples=4 * settings().max_examples)
@given(problem=problems(), seed=st.integers(0, 99))
@example(problem=(FORKED, [0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0], [0] * 11, 4), seed=0)
def test_repair_makes_any_labels_valid(problem, seed):
    edges, dims, edge_dims, n_clusters = problem
    links = links_of(sheaf_on(edges, dims, edge_dims), "sheaf")
    labels = np.random.default_rng(seed).integers(0, n_clusters, len(dims)).astype(np.int32)
    graph = nx.empty_graph(len(dims))
    graph.add_edges_from(edges)
    components = nx.number_connected_components(graph)
    for balanced in (True, False):
        found = Partition(repair_labels(links, labels.copy(), n_clusters, balanced))
        # more components than clusters are for ``pack_small_components``
        assert_guarantees(found, max(n_clusters, components), len(dims), edges)


def repaired(n, labels, n_clusters, balanced):
    """Return repaired labels of a path."""
    links = links_of(nx.path_graph(n), "graph")
    return repair_labels(links, np.array(labels, np.int32), n_clusters, balanced)


@pytest.mark.parametrize(
    ("labels", "balanced", "expected"),
    [
        ([0] * 4 + [1] * 4 + [2] * 4, True, [0] * 4 + [1] * 4 + [2] * 4),
        # fragments are merged into neighbours, before light clusters are
        ([0] * 4 + [1] * 2 + [0] + [1] * 3, True, [0] * 4 + [1] * 6),
        ([0] * 4 + [1] + [2] * 5 + [0] * 2, False, [0] * 4 + [1] + [2] * 7),
    ],
    ids=["valid labels", "a fragment", "a fragment and a light cluster"],
)
def test_repair_keeps_valid_labels_and_merges_fragments(labels, balanced, expected):
    assert repaired(len(labels), labels, max(labels) + 1, balanced).tolist() == expected


def test_repair_splits_heavy_clusters_and_merges_light_ones():
    heavy = np.repeat(np.arange(10), [24] + [4] * 9)
    assert np.bincount(repaired(60, heavy, 10, True)).max() <= 9
    assert np.bincount(repaired(60, heavy, 10, False)).max() == 24
    # a cluster of 2 among 30 vertices is merged with its neighbour; another one is split
    light = np.repeat(np.arange(3), [2, 17, 11])
    assert np.bincount(repaired(30, light, 3, True)).min() >= 4
    assert np.bincount(repaired(30, light, 3, False)).min() == 2
    dims = [3, 2, 1, 2, 1, 2, 1]  # parts of the first cluster outweigh the others
    F = sheaf_on([(v, v + 1) for v in range(6)], dims, np.ones(6, int))
    labels = np.array([0, 0, 0, 0, 0, 1, 2], dtype=np.int32)
    found = repair_labels(links_of(F, "sheaf"), labels, 4, True)
    assert np.bincount(found, dims).tolist() == [3] * 4


def crumbs(large, small, seed=0):
    """A connected graph of ``large`` vertices among ``small`` triangles, pairs and singles."""
    parts = [nx.cycle_graph(3), nx.path_graph(2), nx.empty_graph(1)]
    rng = np.random.default_rng(seed)
    graph = nx.disjoint_union_all(
        [nx.barabasi_albert_graph(large, 2, seed=seed)]
        + [parts[i] for i in rng.integers(3, size=small)]
    )
    order = rng.permutation(graph.number_of_nodes()).tolist()
    return nx.convert_node_labels_to_integers(nx.relabel_nodes(graph, dict(enumerate(order))))


@pytest.mark.parametrize(
    ("method", "n_clusters"),
    [("balls", 120), ("balls", 20), ("matching", 120), ("spectral", 20), ("metis", 120)],
)
def test_large_component_among_many_small_ones_is_split(method, n_clusters):
    """Like astro-ph: 16,706 vertices in 1,029 components, one of which has 14,845."""
    graph = crumbs(800, 180)
    partition = sc.select(graph, n_clusters, method=method)
    assert_guarantees(partition, n_clusters, graph.number_of_nodes(), list(graph.edges))
    again = sc.select(graph, n_clusters, method=method)
    np.testing.assert_array_equal(again.labels, partition.labels)
    largest = max(nx.connected_components(graph), key=len)
    inside = np.unique(partition.labels[list(largest)])
    share = 800 / graph.number_of_nodes() * n_clusters
    assert abs(len(inside) - share) <= 1
    crossing = partition.labels[np.array(graph.edges)]
    assert (crossing[:, 0] != crossing[:, 1]).any()
    if method != "spectral":
        others = np.setdiff1d(np.arange(n_clusters), inside)
        assert partition.sizes[others].max() <= 1.5 * partition.sizes.mean() + 3
        assert partition.sizes.max() <= 5 * partition.sizes.mean()


@pytest.mark.parametrize(("single", "bins"), [(20, 2), (24, 2), (26, 3)])
def test_components_heavier_than_the_mean_are_not_packed(single, bins):
    """Single vertices, five components of 15 and one of 105; 20 clusters with mean weight 10."""
    sizes = [1] * single + [15] * 5 + [105]
    graph = nx.disjoint_union_all([nx.path_graph(n) for n in sizes])
    labels = sc.select(graph, 20).labels
    component = np.repeat(np.arange(single + 6), sizes)
    for c in range(single, single + 6):
        inside = labels[component == c]
        assert not np.isin(labels[component != c], inside).any()
    assert len(np.unique(labels[component < single])) == bins  # their weight over the mean, rounded


@pytest.mark.parametrize("method", METHODS)
def test_vertex_weights_are_stalk_dimensions(method):
    """One vertex outweighs all others together, but can form only one cluster."""
    F = sc.CellularSheaf.from_flat([], [], [], [1000, *[1] * 10], [])
    labels = sc.select(F, 5, method=method).labels
    assert (labels[1:] != labels[0]).all()
    assert np.bincount(labels)[labels[1:]].max() <= 3


def with_pairs(large=1500, pairs=100):
    """A graph of degree 4 and many pairs."""
    big = nx.random_regular_graph(4, large, seed=1)
    return nx.disjoint_union_all([big] + [nx.path_graph(2)] * pairs)


@pytest.mark.parametrize(
    ("method", "extra"), [("balls", 0), ("matching", 1), ("matching", 10), ("balls", 20)]
)
def test_warning_states_a_sufficient_number_of_clusters(method, extra):
    graph, n_clusters = with_pairs(), 101 + extra
    with pytest.warns(sc.SmallComponentsWarning) as caught:
        P = sc.select(graph, n_clusters, method)
    assert_guarantees(P, n_clusters, 1700, list(graph.edges))
    (said,) = caught
    assert said.filename == __file__
    text = str(said.message)
    assert f"one cluster has {P.sizes.max()} of 1700 vertices" in text
    assert "100 of 101 components are smaller than the mean cluster" in text
    assert "or fewer than 101 to let small components share clusters" in text
    (enough,) = map(int, re.findall(r"n_clusters=(\d+)", text))
    assert enough == -(-2 * 1700 * 100 // (2 * 1700 - 1500))  # 100 / k + 1500 / (2 * 1700) <= 1
    for better in (enough, 100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sizes = sc.select(graph, better, method).sizes
        assert sizes.max() <= 3 * sizes.mean() < P.sizes.max()


def test_warning_appears_exactly_below_the_threshold():
    """140 is the minimum k with 100 / k + 1500 / (4 * 1700) <= 1, up to a cluster or two."""
    graph = with_pairs()
    least = int(np.ceil(100 / (1 - 1500 / (4 * 1700))))
    sc.select(graph, least)  # warnings are errors here
    with pytest.warns(sc.SmallComponentsWarning):
        sc.select(graph, least - 5)


def test_warning_depends_on_vertex_weights():
    """Stalks of dimension 5 on the large component: 1500 of 2300 dimensions, not of 1100."""
    edges = np.array(with_pairs(300, 400).edges)
    dims = np.repeat([5, 1], [300, 800])
    maps = [np.ones((1, d)) for d in dims[edges[:, 0]]]
    F = sc.CellularSheaf(edges, maps, maps, vertex_dims=dims)
    with pytest.warns(sc.SmallComponentsWarning, match="400 of 401 components") as caught:
        sc.select(F, 410)
    assert f"n_clusters={-(-2 * 2300 * 400 // (2 * 2300 - 1500))} " in str(caught[0].message)


def test_indivisible_components_do_not_warn():
    F = sc.CellularSheaf.from_flat([], [], [], [1000, *[1] * 10], [])
    assert sc.select(F, 11).n_clusters == 11
    graph = nx.disjoint_union(nx.path_graph(100), nx.empty_graph(2))
    assert sorted(sc.select(graph, 3).sizes) == [1, 1, 100]  # 100 is less than 4 means of 34


def test_clusters_needed_is_the_minimum():
    rng = np.random.default_rng(5)
    for _ in range(50):
        n_vertices = rng.integers(1, 40, size=rng.integers(1, 30))
        weight = n_vertices * rng.integers(1, 4, size=len(n_vertices))
        for most in (2.0, 4.0):
            held = [
                np.maximum(1, np.minimum(n_vertices, weight * k / (most * weight.sum()))).sum() <= k
                for k in range(1, n_vertices.sum() + 1)
            ]
            k = clusters_needed(weight, n_vertices, most)
            assert held.index(True) + 1 == k >= len(weight)
            assert all(held[k - 1 :])  # and all larger ones are enough too
            assert k <= 2 * len(weight)
