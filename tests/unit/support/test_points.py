"""Points are checked, scaled without loss, and joined to pairs."""

import numpy as np
import pytest

from sheafcoarsen._support import point_array, scaled_points, unique_pairs


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1.0, 1e308])
def test_scaling_is_by_a_power_of_two(scale):
    points = np.array([[0.75, -0.5], [0.25, 0.0]]) * scale
    scaled, exponent = scaled_points(points)
    assert 0.5 <= np.abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), points)


def test_points_of_another_kind_are_refused():
    assert point_array([[1, 2]]).dtype == np.float64
    with pytest.raises(ValueError, match=r"must have shape \(n, 3\), got \(1, 2\)"):
        point_array([[1, 2]], columns=3)
    with pytest.raises(ValueError, match=r"must be finite, got \[2.0, nan\] in row 1"):
        point_array([[1, 2], [2, np.nan]])
    with pytest.raises(TypeError, match="`points` must be real"):
        point_array([[1j, 2]])


def test_pairs_are_sorted_and_each_is_there_once():
    u, v = np.array([3, 0, 2, 1]), np.array([1, 2, 0, 3])
    assert unique_pairs(u, v, 4).tolist() == [[0, 2], [1, 3]]
    assert unique_pairs(u[:0], v[:0], 0).shape == (0, 2)
