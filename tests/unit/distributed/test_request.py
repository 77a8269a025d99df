"""What a caller asks for, and what is refused."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed.request import check_dense, checked
from tests.unit.distributed.cases import grid_sheaf


@pytest.fixture
def src(memory):
    return dist.to_store(memory("src"), grid_sheaf(4))


def test_labels_are_a_partition_too(src):
    labels = np.arange(16) // 4
    one, other = checked(src, labels, 2), checked(src, sc.Partition(labels), 2)
    assert one.run == other.run


def test_what_changes_the_result_changes_the_run(src):
    P, Q = sc.Partition(np.arange(16) // 4), sc.Partition(np.arange(16) // 8)
    asked = [
        checked(src, P, 2),
        checked(src, Q, 2),
        checked(src, P, 3),
        checked(src, P, sc.ranks.kernel()),
        checked(src, P, [2, 2, 2, 1]),
        checked(src, P, 2, "principal"),
        checked(src, P, 2, loops=False),
        checked(src, P, 2, compress=False),
    ]
    assert len({one.run for one in asked}) == len(asked)
    assert checked(src, P, 2, n_shards=3).run == asked[0].run


BAD = [
    ({"src": "somewhere"}, TypeError, "`src` must be a SheafStore, got str: open_store"),
    ({"P": np.zeros(15, int)}, ValueError, r"`P` must label the 16 vertices .* got .* of 15"),
    ({"P": np.arange(16) * 2}, ValueError, "without gaps"),
    ({"local_operator": "oversampled"}, ValueError, '`local_operator` = "oversampled" looks'),
    ({"local_operator": "other"}, ValueError, "`local_operator` must be one of"),
    ({"n_shards": 0}, ValueError, "`n_shards` must be at least 1, got 0"),
    ({"n_shards": 2.5}, TypeError, "`n_shards` must be an integer"),
    ({"loops": 1}, TypeError, "`loops` must be True or False"),
    ({"compress": None}, TypeError, "`compress` must be True or False"),
    ({"rank": "all"}, TypeError, "`rank` must be"),
    ({"rank": [1, 2]}, ValueError, "one integer per cluster, 4 in all, got 2"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_what_does_not_fit(change, error, message, src):
    given = {"src": src, "P": np.arange(16) // 4, "rank": 2, **change}
    with pytest.raises(error, match=message):
        checked(**given)


def test_clusters_too_large_for_whole_spectra():
    check_dense(np.array([3, 12_000]))
    with pytest.raises(ValueError, match="cluster 1 has dimension 12001; a rule that looks"):
        check_dense(np.array([3, 12_001]))


def test_an_estimate_refuses_the_same(src):
    with pytest.raises(ValueError, match="oversampled"):
        dist.estimate(src, np.arange(16) // 4, 2, local_operator="oversampled")
