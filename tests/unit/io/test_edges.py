"""Entries of a symmetric matrix: which one is repeated, alone, or unlike its mirror image."""

import numpy as np
import pytest

from sheafcoarsen.io.edges import first_unpaired

EPS = np.finfo(float).eps


def found(entries, n=4):
    rows, columns, weights = (np.array(column) for column in zip(*entries, strict=True))
    return first_unpaired(rows, columns, weights.astype(float), n)


def test_a_symmetric_matrix_is_paired_in_any_order():
    assert first_unpaired(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 0) is None
    assert found([(0, 1, 2.0), (3, 3, 1.0), (2, 0, 5.0), (1, 0, 2.0), (0, 2, 5.0)]) is None


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(0, 1, 1), (1, 0, 1), (2, 2, 1), (1, 0, 1)], (3, "repeated", 1)),
        ([(2, 3, 1), (2, 3, 1), (0, 1, 1), (0, 1, 1)], (1, "repeated", 0)),
        ([(0, 1, 1), (1, 0, 1), (2, 3, 1)], (2, "alone", -1)),
        ([(2, 2, 1), (0, 1, 1), (1, 0, 2)], (1, "differs", 2)),
    ],
    ids=["repeated", "two repeated", "alone", "differs"],
)
def test_the_first_offender_is_told_with_the_other(entries, expected):
    assert found(entries) == expected


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(("difference", "expected"), [(7, None), (9, (0, "differs", 1))])
def test_rounding_is_no_difference(scale, difference, expected):
    """As of a product A^T A: relative to the largest weight, not to the entry's own."""
    weights = np.array([0.125, 0.125 + difference * EPS, 1.0, 1.0])
    rows, columns = np.array([[0, 1, 2, 3], [1, 0, 3, 2]])
    assert first_unpaired(rows, columns, weights * scale, 4) == expected
