"""Valid and invalid forms of stalk values at vertices."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support.errors import raises
from tests.unit.solve.test_normal_equations import PATH


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


ONES = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([0, 0], ONES),
            "ValueError: `vertices` must not repeat a vertex, got vertex 0 at indices 0 and 1",
        ),
        (([0, 4], ONES), "ValueError: `vertices[1]` = 4 is out of range for 4 vertices"),
        (([-1, 2], ONES), "ValueError: `vertices[0]` = -1 is out of range for 4 vertices"),
        (([0.5, 2], ONES), "ValueError: `vertices` must hold whole numbers, got 0.5 at index 0"),
        (([[0, 1]], ONES), "ValueError: `vertices` must be 1-dimensional, got shape (1, 2)"),
        ((0, [[1.0, 1.0]]), "ValueError: `vertices` must be 1-dimensional, got 0: pass [0]"),
        (([True, False], ONES), "ValueError: `vertices`, a mask, must have shape (4,), got (2,)"),
        ((["a", "b"], ONES), "TypeError: got dtype <U1: vertices are named 0 .. 3"),
        (
            ([0, 1, 2], ONES),
            "ValueError: `values` must hold one array for each of the 3 vertices, got 2",
        ),
        (
            ([0, 1], [[1.0, 1.0], [1.0]]),
            "ValueError: `values[1]` must have shape (2,) or (2, h), because the stalk of vertex 1",
        ),
        (
            ([0, 1], np.ones((2, 3))),
            "ValueError: `values[0]` must have shape (2,) or (2, h), because the stalk of vertex 0",
        ),
        (([0, 1], [1.0, 2.0]), "ValueError: `values[0]` must have shape (2,) or (2, h)"),
        (([0, 1], np.ones((2, 2, 1, 1))), "ValueError: `values[0]` must have shape (2,) or (2, h)"),
        (
            ([0, 1], [np.ones(2), np.ones((2, 1))]),
            "ValueError: the arrays in `values` must have the same number of columns, "
            "got shape (2,) at index 0 and (2, 1) at index 1",
        ),
        (
            ([0, 1], [np.ones((2, 1)), np.ones((2, 3))]),
            "ValueError: number of columns, got shape (2, 1) at index 0 and (2, 3) at index 1",
        ),
        (
            ([0, 1], [[1.0, 1.0], [np.nan, 1.0]]),
            "ValueError: `values[1]` must be finite, got nan for vertex 1",
        ),
        (
            ([2, 1], np.array([[1.0, np.inf], [1, 1]])),
            "ValueError: `values[0]` must be finite, got inf for vertex 2",
        ),
        (([0], [["a", "b"]]), "TypeError: `values[0]` must hold float32, float64"),
        (([0], [[True, False]]), "TypeError: `values[0]` must hold float32, float64"),
        (([0], [[None, 1.0]]), "TypeError: `values[0]` must hold float32, float64"),
        (
            ([0], [[[1.0], [1.0, 2.0]]]),
            "ValueError: `values[0]` must be a rectangular array of numbers",
        ),
        (([0], np.ones((1, 2), np.float16)), "TypeError: `values` must hold float32, float64"),
        (
            ([0], 1.0),
            "TypeError: `values` must be a sequence of arrays, one per vertex in their order, got "
            "float",
        ),
        (
            ([0], "ab"),
            "TypeError: `values` must be a sequence of arrays, one per vertex in their order, got "
            "str",
        ),
        (([0], [[1e200, 1.0]]), "ValueError: `values` has entries up to 1e+200"),
        (([], []), "ValueError: `vertices` is empty and L is singular, first at vertex 0"),
    ],
)
def test_invalid_values_raise(arguments, message):
    with raises(message):
        sc.harmonic_extension(PATH, *arguments)
