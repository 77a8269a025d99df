"""Balls, matching, spectral clustering and METIS: each method alone."""

import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.linalg

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._kernels.partition import balls
from sheafcoarsen.partition import methods, select
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.methods import find_balls, match_levels
from tests.support.helpers import normal
from tests.unit.partition.test_select import assert_guarantees


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
    assert 90 <= balls.grow(links, 100, 29, labels, heap, workspace) <= 110


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
