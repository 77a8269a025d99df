"""Spectral clusters of a sheaf: its own low modes see signs and transports, the graph does not."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.partition import methods

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
    draw = CellularSheaf.random(edges, d, d, kind="orthogonal", seed=rng, dtype=dtype)
    U = draw.head_data.reshape(-1, d, d).copy()
    loops = np.stack([np.arange(k * size)] * 2, axis=1)
    frames = CellularSheaf.random(loops, d, d, kind="orthogonal", seed=rng, dtype=dtype)
    g = frames.tail_data.reshape(-1, d, d)
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


def test_number_of_features_is_bounded_for_many_clusters():
    F, _ = transports(1, 3, k=12, size=10, p=(0.9, 0.02))
    rows = methods._sheaf_rows(F, 12, np.random.default_rng(0))
    assert rows.shape == (120, 24**2)


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


def test_ragged_stalks_and_components_are_allowed():
    F = sc.disjoint_union([transports(0, 2, k=2)[0], camps(0), CellularSheaf.constant([[0, 1]])])[0]
    for k in (2, 3, 7):
        assert sc.select(F, k, method="spectral").n_clusters == k
    G = CellularSheaf.random(nx.karate_club_graph(), [0, 1] * 17, 2, seed=0)
    assert sc.select(G, 5, method="spectral").n_clusters == 5


@pytest.mark.parametrize("dims", [[1, 0, 0, 0], [0] * 4, [2] * 4])
def test_isolated_stalks_are_allowed(dims):
    """There are fewer modes than clusters, or maps are zero."""
    F = CellularSheaf.random(nx.path_graph(4), dims, 2, seed=0)
    F = F.with_maps(0 * F.tail_data, F.head_data)  # vertex 0 has zero maps
    assert sc.select(F, 3, method="spectral").n_clusters == 3
