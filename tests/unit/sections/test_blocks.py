"""Columns of a block-sparse R, some at a time, and a LAPACK status as an error."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen._kernels.sections import Ragged
from sheafcoarsen.partition import clusters_of
from sheafcoarsen.sections.equilibration import block_columns, check_status, room_for


def test_columns_are_those_of_the_blocks_from_the_first_asked_for():
    """Clusters interleave; rows are vertices ascending, columns clusters one after the other."""
    F = CellularSheaf.random(nx.path_graph(4), [1, 2, 1, 2], 1, seed=3)
    P = Partition([0, 1, 0, 1])
    clusters = clusters_of(F, P)
    kept = np.array([2, 3])
    blocks = [np.arange(1.0, 5.0).reshape(2, 2), np.arange(10.0, 22.0).reshape(4, 3)]
    z, z_starts = np.concatenate([b.ravel() for b in blocks]), np.array([0, 4, 16])
    first, counts = np.array([1, 0]), np.array([1, 2])
    R = block_columns(F, clusters, kept, Ragged(z_starts, z), first, counts).matrix.toarray()
    expected = np.zeros((6, 3))
    expected[[0, 3], 0] = blocks[0][:, 1]
    expected[[1, 2, 4, 5], 1:] = blocks[1][:, :2]
    assert R.tolist() == expected.tolist()


def test_a_failure_of_lapack_names_its_cluster():
    check_status([-1, -1], "cluster")
    check_status([], "cluster")
    with pytest.raises(np.linalg.LinAlgError, match="LAPACK failed on cluster 3"):
        check_status([-1, 3, 5], "cluster")


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_room_is_never_empty(dtype):
    for array in room_for(0, 0, dtype)[1:]:
        assert array.size > 0 or array.dtype == dtype
        assert array.dtype == dtype
    sizes = [array.size for array in room_for(3, 2, dtype)[1:]]
    assert sizes == [132, 66, 2, 4, 6, 6]
