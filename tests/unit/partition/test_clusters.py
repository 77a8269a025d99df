import itertools

from hypothesis import given

from sheafcoarsen.partition import clusters_of
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
