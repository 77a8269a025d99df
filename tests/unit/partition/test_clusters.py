import itertools

import pytest
from hypothesis import given

from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.partition import check_partition, clusters_of
from tests.support import reference
from tests.support.strategies import sheaves_with_partitions


def groups(members, starts):
    return [members[i:j].tolist() for i, j in itertools.pairwise(starts)]


@given(sheaves_with_partitions())
def test_every_edge_is_internal_or_crossing(case):
    F, P = case
    c = clusters_of(F, P)
    K = reference.n_clusters(P)
    assert c.n_clusters == K
    assert groups(c.internal_edges, c.internal_ptr) == [
        reference.internal_edges(F, P, a) for a in range(K)
    ]
    expected = reference.crossing_groups(F, P)  # pairs a < b sorted, edges ascending inside each
    assert [tuple(pair) for pair in c.pairs.tolist()] == list(expected)
    assert c.pairs.shape == (len(expected), 2)
    assert groups(c.crossing_edges, c.pair_ptr) == list(expected.values())
    assert sorted([*c.internal_edges.tolist(), *c.crossing_edges.tolist()]) == list(
        range(F.n_edges)
    )


@given(sheaves_with_partitions())
def test_members_and_local_offsets_of_clusters(case):
    F, P = case
    c = clusters_of(F, P)
    K = reference.n_clusters(P)
    assert c.labels.tolist() == P.labels.tolist()
    assert groups(c.members, c.member_ptr) == [reference.cluster(P, a) for a in range(K)]
    for a in range(K):
        coordinates = reference.cluster_coordinates(F, P, a)
        assert c.dims[a] == len(coordinates)
        for v in reference.cluster(P, a):
            start, stop = c.local_offsets[v], c.local_offsets[v] + F.vertex_dims[v]
            assert coordinates[start:stop] == reference.vertex_coordinates(F, v)


def test_clusters_of_a_small_graph():
    edges = [[3, 0], [1, 1], [0, 3], [2, 1], [3, 2], [0, 2]]
    F = CellularSheaf.random(edges, [2, 1, 3, 1], 1, seed=1)
    c = clusters_of(F, Partition([1, 2, 0, 1]))
    assert c.dims.tolist() == [3, 3, 1]
    assert c.local_offsets.tolist() == [0, 0, 0, 2]  # vertex 3 comes after vertex 0 in cluster 1
    assert groups(c.internal_edges, c.internal_ptr) == [[], [0, 2], [1]]
    assert c.pairs.tolist() == [[0, 1], [0, 2]]
    assert groups(c.crossing_edges, c.pair_ptr) == [[4, 5], [3]]


def test_invalid_partitions_raise():
    F = CellularSheaf.constant([[0, 1], [1, 2]])
    check_partition(F, Partition([0, 0, 1]))
    with pytest.raises(
        ValueError, match="`P` must label the sheaf's 3 vertices, got a partition of 2"
    ):
        check_partition(F, Partition([0, 1]))
    with pytest.raises(
        TypeError, match=r"`P` must be a Partition, got list: Partition\(labels\) makes one"
    ):
        check_partition(F, [0, 0, 1])
