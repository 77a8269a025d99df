"""Valid and invalid forms of stalk values at vertices."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf


def test_values_may_be_lists_or_arrays():
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=1)
    x = sc.harmonic_extension(F, [0, 2], [[1, 2], [3, 4]])
    for values in (
        np.array([[1, 2], [3, 4]]),
        ((1, 2), [3.0, 4.0]),
        [np.array([1, 2], np.int8), np.array([3.0, 4.0])],
    ):
        np.testing.assert_array_equal(sc.harmonic_extension(F, np.array([0, 2]), values), x)
    y = sc.harmonic_extension(F, [0, 2], np.array([[1, 2], [3, 4]])[:, :, None])
    np.testing.assert_array_equal(y, x[:, None])
    for values in (np.ones((2, 2, 0)), [np.ones((2, 0))] * 2):
        assert sc.harmonic_extension(F, [0, 2], values).shape == (6, 0)
    ragged = CellularSheaf.random(nx.path_graph(3), [2, 0, 1], 2, seed=1)
    for value in ([3.0], 3.0, np.float32(3)):
        x = sc.harmonic_extension(ragged, [1, 2, 0], [np.zeros(0), value, [1.0, 2.0]])
        np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])


def test_values_of_stalks_of_dimension_1_may_be_numbers():
    F = CellularSheaf.constant(nx.path_graph(3))
    for values in ([3, 5], (3.0, 5.0), np.array([3.0, 5.0]), [np.array(3.0), [5.0]]):
        x = sc.harmonic_extension(F, [2, 0], values)
        np.testing.assert_allclose(x, [5.0, 4.0, 3.0], rtol=1e-14)
        y = sc.least_squares(F, [0.0, 0.0], vertices=[2, 0], values=values).x
        np.testing.assert_allclose(y, x, rtol=1e-14)
