"""Single maps, sizes and offsets; see also the tests of the class."""

import numpy as np
import pytest
from hypothesis import given

from tests.support.strategies import sheaves
from tests.unit.sheaf.test_cellular_sheaf import mixed_sheaf


@given(sheaves())
def test_maps_are_slices_of_the_flat_data(F):
    for e, (u, v) in enumerate(F.edges.tolist()):
        for found, data, starts, end in (
            (F.tail_map(e), F.tail_data, F.tail_offsets, u),
            (F.head_map(e), F.head_data, F.head_offsets, v),
        ):
            assert found.shape == (F.edge_dims[e], F.vertex_dims[end])
            np.testing.assert_array_equal(found.reshape(-1), data[starts[e] : starts[e + 1]])


def test_negative_edge_indices_count_from_the_end():
    F = mixed_sheaf()
    np.testing.assert_array_equal(F.head_map(-1), F.head_map(F.n_edges - 1))
    with pytest.raises(IndexError, match="edge 4 is out of range for 4 edges"):
        F.tail_map(4)
