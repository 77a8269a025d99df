"""Flat maps of a caller: checked against the graph and the stalks they belong to."""

import re

import numpy as np
import pytest
from hypothesis import given

from sheafcoarsen import CellularSheaf
from tests.support.strategies import sheaves
from tests.unit.sheaf.test_container import PATH, heads, tails

# ---------------------------------------------------------------- what the container holds


@given(sheaves())
def test_flat_data_are_the_maps_one_after_the_other(F):
    for data, maps in ((F.tail_data, tails(F)), (F.head_data, heads(F))):
        flat = np.concatenate([np.zeros(0, F.dtype), *[M.ravel() for M in maps]])
        np.testing.assert_array_equal(data, flat, strict=True)


# ---------------------------------------------------------------- what is refused


BAD_FLAT = {
    "flat too short": (
        lambda: CellularSheaf.from_flat([[0, 1]], [1.0], [1.0, 2.0], [1, 1], 1),
        ValueError,
        "`head_data` must have shape (1,), the sum of d_e d_v, got (2,)",
    ),
    "flat not flat": (
        lambda: CellularSheaf.from_flat([[0, 1]], [[1.0]], [1.0], [1, 1], 1),
        ValueError,
        "`tail_data` must have shape (1,), the sum of d_e d_v, got (1, 1)",
    ),
    "flat, edge_dims too few": (
        lambda: CellularSheaf.from_flat(PATH, [1.0], [1.0], [1, 1, 1], [1]),
        ValueError,
        "`edge_dims` must have one entry per edge, 2 in all, got 1",
    ),
    "flat, endpoint out of range": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], [1, 1], 1),
        ValueError,
        "`edges[1]` = (1, 2) is out of range for 2 vertices",
    ),
    "flat, negative edge_dims": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], 1, [1, -1]),
        ValueError,
        "`edge_dims` must not be negative, got -1 at index 1",
    ),
    "flat, nan": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, np.nan], [1.0, 1.0], 1, 1),
        ValueError,
        "`tail_maps[1]` (edge 1 -> 2) must be finite",
    ),
}


@pytest.mark.parametrize("case", BAD_FLAT)
def test_bad_flat_data(case):
    build, error, message = BAD_FLAT[case]
    with pytest.raises(error, match=re.escape(message)):
        build()
