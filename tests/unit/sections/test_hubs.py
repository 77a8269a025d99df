"""Splitting of hubs: sections, cluster sizes and number of levels."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections, clustering, reduction
from tests.support import reference
from tests.support.helpers import dense_kernel, eps_of, same_subspace
from tests.unit.sections.conftest import check_basis, gaussian

pytestmark = pytest.mark.usefixtures("no_forests")


@pytest.fixture
def small(cluster_sizes):
    """Force splitting of hubs with a few dozen leaves."""
    cluster_sizes(10, 30, 30)


def two_hubs():
    graph = nx.disjoint_union(nx.star_graph(150), nx.star_graph(150))
    graph.add_edge(0, 151)
    return graph


def tangled(dtype=float):
    """Return hubs with loops, parallel edges, zero maps, and leaves of any dimension."""
    rng = np.random.default_rng(5)
    star = np.stack([np.zeros(90, int), np.arange(2, 92)], axis=1)
    both = np.stack([np.ones(40, int), np.arange(60, 100)], axis=1)
    edges = np.concatenate([star, both[:, ::-1], star[:5], [[0, 0], [0, 1], [1, 1], [2, 3]]])
    dims = np.array([3, 2, *rng.integers(0, 4, 98)])
    F = sc.CellularSheaf.random(edges, dims, rng.integers(0, 3, len(edges)), seed=1, dtype=dtype)
    zero = np.ones(len(F.tail_data))
    zero[F.tail_offsets[7] : F.tail_offsets[9]] = 0
    return F.with_maps(F.tail_data * zero, F.head_data)


@pytest.mark.usefixtures("small", "sparse")
def test_a_hub_with_many_leaves_is_split_into_small_clusters(monkeypatch):
    """Leaves of a star cannot be divided among connected clusters without copies of the hub."""
    largest, reduced = [], reduction.reduce_level
    monkeypatch.setattr(
        _global_sections,
        "reduce_level",
        lambda F, P, *rest: largest.append(_heaviest(F, P)) or reduced(F, P, *rest),
    )
    for F, h0 in (
        (sc.gallery.bundle(two_hubs(), 2, seed=0), 2),
        (sc.CellularSheaf.random(nx.star_graph(200), 3, 1, seed=0), 403),
        (sc.CellularSheaf.random(nx.star_graph(200), 2, 3, seed=0, dtype=complex), 0),
    ):
        S = sc.global_sections(F)
        assert S.h0 == h0
        assert 2 <= len(S.levels) <= 4  # without copies there would be up to 14
        assert S.residual < 1e-13
        check_basis(F, S)
    assert max(largest) <= 120


def _heaviest(F, P):
    return np.bincount(P.labels, F.vertex_dims).max()


@pytest.mark.usefixtures("small", "sparse")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_splitting_hubs_preserves_sections_for_any_neighbours(dtype):
    F = tangled(dtype)
    expected = dense_kernel(reference.coboundary(F))
    S = sc.global_sections(F)
    assert len(S.levels) > 1
    assert S.h0 == expected.shape[1]
    assert same_subspace(check_basis(F, S), expected, condition=1e4, eps=eps_of(dtype))


def test_only_heavy_clusters_with_hubs_are_split():
    F = sc.gallery.bundle(two_hubs(), 2, seed=0)
    P = sc.Partition(np.repeat([0, 1], 151))
    assert clustering.split_hubs(F, P, largest=302, capacity=50) is None
    split = clustering.split_hubs(F, P, largest=300, capacity=50)
    assert set(split.owners[302:]) == {0, 151}
    F, _, _ = sc.disjoint_union([F, sc.gallery.bundle(nx.star_graph(100), 2, seed=0)])
    P = sc.Partition(np.concatenate([P.labels, np.full(101, 2)]))
    split = clustering.split_hubs(F, P, largest=300, capacity=50)
    assert set(split.owners[403:]) == {0, 151}
    clique = sc.gallery.bundle(nx.complete_graph(40), 2, seed=0)
    assert clustering.split_hubs(clique, sc.Partition(np.zeros(40, int)), 20, 10) is None


def test_groups_of_different_clusters_are_separate():
    """One cluster has two hubs, and the other one."""
    star = nx.star_graph(120)
    double = nx.complete_bipartite_graph(2, 120)
    F = sc.gallery.bundle(nx.disjoint_union(double, star), 2, seed=0)
    P = sc.Partition(np.repeat([0, 1], [122, 121]))
    split = clustering.split_hubs(F, P, largest=100, capacity=40)
    assert {0, 1, 122} <= set(split.owners[F.n_vertices :].tolist())
    before = P.labels[split.owners]
    for group in range(split.partition.n_clusters):
        assert len(set(before[split.partition.labels == group])) == 1


def test_copies_are_joined_by_trees():
    F = sc.CellularSheaf.constant(nx.star_graph(1000))
    split = clustering.split_hubs(F, sc.Partition(np.zeros(1001, int)), 100, 10)
    n_copies = len(split.owners) - 1001
    assert n_copies == 99
    joins = split.sheaf.edges[F.n_edges :]
    tree = nx.Graph(joins.tolist())
    assert nx.is_tree(tree)
    assert tree.number_of_nodes() == n_copies + 1
    assert max(dict(tree.degree).values()) == 9
    assert nx.eccentricity(tree, 0) <= 3


def test_groups_of_large_hubs_are_larger():
    """A hub of dimension 10 is copied for groups of dimension 40, not 20."""
    F = sc.CellularSheaf.random(nx.star_graph(400), [10, *[1] * 400], 1, seed=0)
    split = clustering.split_hubs(F, sc.Partition(np.zeros(401, int)), 100, 20)
    weights = np.bincount(split.partition.labels, split.sheaf.vertex_dims)
    assert weights.tolist() == [50] * 10


def test_leaves_of_a_hub_too_large_to_copy_become_single_clusters(small):
    """The stalk of the hub is as large as a cluster."""
    dims = [40, *[2] * 120]
    F = sc.CellularSheaf.random(nx.star_graph(120), dims, 2, seed=0)
    _, partition, split, is_cut = clustering.choose_clusters(F, 1)
    assert is_cut
    assert split is None
    assert _heaviest(F, partition) <= 104  # at most four times the mean
    S = sc.global_sections(F)
    assert S.h0 == 40
    check_basis(F, S)


@pytest.mark.large
def test_a_star_of_30000_leaves_takes_three_levels():
    """Without splitting, there would be 114 levels."""
    S = sc.global_sections(gaussian(np.array(nx.star_graph(30_000).edges), 3, seed=0))
    assert S.h0 == 3
    assert len(S.levels) == 3
    assert S.levels[1] < S.levels[0] / 15
    assert S.residual < 1e-15
