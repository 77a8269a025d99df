"""Partitions from labels, clusters or an assignment matrix, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sheafcoarsen import Partition
from tests.support import reference
from tests.support.errors import raises
from tests.support.strategies import partitions

PARTITIONS = st.integers(0, 9).flatmap(partitions)


@given(PARTITIONS)
def test_clusters_match_the_labels(P):
    K = P.n_clusters
    assert reference.n_clusters(P) == K
    clusters = [reference.cluster(P, a) for a in range(K)]
    for first in (0, -K):  # negative indices count from the end
        assert [P.cluster(first + a).tolist() for a in range(K)] == clusters
    assert P.sizes.tolist() == [len(cluster) for cluster in clusters]
    assert P.n_vertices == len(P.labels)
    assert all(array.dtype == np.int64 for array in (P.labels, P.sizes, P.members))


@given(PARTITIONS)
def test_from_clusters_inverts_cluster(P):
    clusters = [P.cluster(a) for a in range(P.n_clusters)]
    backwards = [c[::-1].tolist() for c in clusters]  # the order within a cluster does not matter
    for given_clusters in (clusters, backwards, iter(clusters)):
        assert Partition.from_clusters(given_clusters).labels.tolist() == P.labels.tolist()


@given(PARTITIONS, st.sampled_from(["dense", "csr", "csc", "coo", "bool", "list"]))
def test_from_assignment_inverts_assignment_matrix(P, form):
    S = P.assignment_matrix()
    assert isinstance(S, scipy.sparse.csr_array)
    expected = [[float(label == a) for a in range(P.n_clusters)] for label in P.labels]
    assert S.toarray().tolist() == expected
    given_S = {
        "dense": S.toarray(),
        "csr": S,
        "csc": scipy.sparse.csc_matrix(S) if P.n_vertices else S,
        "coo": scipy.sparse.coo_array(S),
        "bool": S.toarray().astype(bool),
        "list": S.toarray().astype(int).tolist() if P.n_vertices else S,
    }[form]
    assert Partition.from_assignment(given_S).labels.tolist() == P.labels.tolist()


def test_from_assignment_ignores_stored_zeros_and_adds_duplicates():
    S = scipy.sparse.coo_array(([0.5, 0.5, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 0])), shape=(2, 2))
    assert Partition.from_assignment(S).labels.tolist() == [1, 0]
    assert S.nnz == 4  # the caller's own matrix stays as it was


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int32, np.float32, float, list])
def test_labels_may_have_any_integer_type_or_be_integral_floats(dtype):
    labels = [2, 0, 1, 0]
    given_labels = labels if dtype is list else np.array(labels, dtype)
    P = Partition(given_labels)
    assert P.labels.tolist() == labels
    assert P.labels.dtype == np.int64


def test_arrays_of_a_partition_are_read_only_copies():
    labels = np.array([0, 1, 0, 1])
    P = Partition(labels)
    labels[:] = 0
    assert labels.flags.writeable
    assert P.labels.tolist() == [0, 1, 0, 1]
    for array in (P.labels, P.sizes, P.members, P.cluster_offsets, P.cluster(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError, match="labels"):
        P.labels = np.zeros(4)
    S = P.assignment_matrix()
    S.data[:] = 7  # results are new arrays
    assert P.assignment_matrix().max() == 1


def test_partitions_compare_by_identity_and_their_repr_shows_sizes():
    P = Partition([0, 1, 0, 1, 1])
    assert len({P, P, Partition(P.labels)}) == 2
    assert repr(P) == "Partition(n_vertices=5, n_clusters=2, sizes 2 .. 3)"
    P = Partition([])
    assert (P.n_vertices, P.n_clusters, P.assignment_matrix().shape) == (0, 0, (0, 0))
    assert repr(P) == "Partition(n_vertices=0, n_clusters=0)"
    assert "sizes" not in P._repr_html_()


BAD_LABELS = [
    ([0, 2, 2], "ValueError: no vertex has label 1, but the highest is 2"),
    ([0, 7], "ValueError: vertex 1 has label 7, but there are only 2 vertices"),
    ([10**15], "ValueError: vertex 0 has label 1000000000000000"),
    ([0, -1], "ValueError: must not be negative, got -1 for vertex 1"),
    ([0.0, 0.5], "ValueError: must hold whole numbers, got 0.5 at index 1"),
    ([0.0, np.nan], "ValueError: must hold whole numbers, got nan at index 1"),
    ([np.inf], "ValueError: must hold whole numbers, got inf at index 0"),
    ([1e30], "ValueError: 64-bit integers, got 1e+30"),
    ([0, 2.0**63], "ValueError: 64-bit integers, got 9.223372036854776e+18 at index 1"),
    (np.array([0, 2**63], np.uint64), "ValueError: got 9223372036854775808 at index 1"),
    ([0, 10**400], "ValueError: must hold 64-bit integers, got 1000"),
    ([[0, 1]], "ValueError: 1-dimensional, got shape (1, 2)"),
    (3, "ValueError: 1-dimensional, got 3: pass [3]"),
    ([True, False], "TypeError: must hold integers, got dtype bool"),
    (["a", "b"], "TypeError: got dtype <U1: numpy.unique(labels, return_inverse=True)[1]"),
    ([0j], "TypeError: must hold integers, got dtype complex128"),
    (np.array([0, None]), "TypeError: must hold integers, got dtype object"),
    ([[0], [1, 2]], "ValueError: rectangular array of integers"),
]
BAD_CLUSTERS = [
    ([[0, 1], [2, 1]], "ValueError: hold vertex 1 more than once: in clusters [0, 1]"),
    ([[0, 0], [1]], "ValueError: hold vertex 0 more than once: in clusters [0, 0]"),
    ([[0, 3], [2]], "ValueError: [0]` holds vertex 3, but the clusters hold 3 vertices in all"),
    ([[0], [-1]], "ValueError: [1]` holds vertex -1"),
    ([[0, 1], []], "ValueError: [1]` is empty"),
    ([[0], [1.5]], "ValueError: [1]` must hold whole numbers, got 1.5"),
    ([[0], [[1]]], "ValueError: [1]` must be 1-dimensional"),
    ([0, [1]], "TypeError: [0]` must be a sequence of vertices, got int"),
    ({0: [0]}, "TypeError: must be a sequence of clusters, got dict: pass its values"),
    ({(0, 1): "a"}, "TypeError: must be a sequence of clusters, got dict: pass its values"),
    ([[0], ["a"]], "TypeError: [1]` must hold integers, got dtype <U1: F.vertices_of(names)"),
]
BAD_MATRICES = [
    ([[1, 0], [0.5, 0.5]], "ValueError: zeros and ones, got 0.5 at (1, 0)"),
    ([[1, 0], [1, 1]], "ValueError: a single 1 in each row, got 2 in row 1"),
    ([[1, 0], [0, 0], [0, 1]], "ValueError: a single 1 in each row, got 0 in row 1"),
    ([[1, 0], [0, 1], [0, 0]], "ValueError: got 0 in row 2"),
    ([[1, 0, 0], [0, 0, 1]], "ValueError: a 1 in each column, got none in column 1"),
    ([[-1, 0], [0, 1]], "ValueError: zeros and ones, got -1.0 at (0, 0)"),
    ([[np.nan, 1], [1, 0]], "ValueError: zeros and ones, got nan at (0, 0)"),
    ([[1j]], "TypeError: zeros and ones, got dtype complex128"),
]
BAD_ASSIGNMENTS = [
    *((form(S), error) for S, error in BAD_MATRICES for form in (list, np.array, csr_array)),
    ([["1"]], "TypeError: zeros and ones, got dtype <U1"),
    (None, "TypeError: zeros and ones, got dtype object"),
    (np.ones((2, 1, 1)), "ValueError: must be N x K, got shape (2, 1, 1)"),
    ([1, 1], "ValueError: must be N x K, got shape (2,)"),
    ([[1], [0, 1]], "ValueError: must be N x K"),
]


@pytest.mark.parametrize(
    ("build", "name", "argument", "error"),
    [
        *((Partition, "labels", *row) for row in BAD_LABELS),
        *((Partition.from_clusters, "clusters", *row) for row in BAD_CLUSTERS),
        *((Partition.from_assignment, "S", *row) for row in BAD_ASSIGNMENTS),
    ],
)
def test_invalid_arguments_raise(build, name, argument, error):
    with raises(error) as caught:
        build(argument)
    assert f"`{name}" in str(caught.value)
