"""Decisions which singular values are zero, and whether they are clear."""

import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.sections import rank_decision
from tests.support import reference
from tests.support.helpers import assert_residual

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.complex64)


@pytest.mark.parametrize("edge_dim", [3, 60])
def test_singular_vectors_match_those_of_the_coboundary(edge_dim):
    """The 108 or 2160 rows are processed in one or three blocks."""
    F = sc.CellularSheaf.random(nx.complete_graph(9), 2, edge_dim, seed=1)
    sigma, V = rank_decision.singular_pairs(sc.coboundary(F))
    delta = reference.coboundary(F)
    assert_residual(sigma - np.linalg.svd(delta, compute_uv=False)[::-1], delta, n=18)
    assert_residual(np.linalg.norm(delta @ V, axis=0) - sigma, delta, n=18)
    assert_residual(V.T @ V - np.eye(18), n=18)


def test_fewer_rows_than_columns_give_zero_singular_values():
    F = sc.CellularSheaf.random(nx.path_graph(3), 3, 1, seed=1)
    sigma = rank_decision.singular_pairs(sc.coboundary(F))[0]
    assert (sigma[:7] == 0).all()
    assert (sigma[7:] > 0.1).all()


def test_the_threshold_grows_if_small_singular_values_were_eliminated():
    eps = 2.0**-52
    assert rank_decision.zero_threshold(400, eps, 1.0) == 10 * 400 * eps
    assert rank_decision.zero_threshold(400, eps, 0.01) == 10 * 400 * eps / 0.01
    # errors of single precision do not grow with the dimension
    assert rank_decision.zero_threshold(400, 2.0**-23, 1.0) == 10 * 2.0**-23


@pytest.mark.parametrize(
    ("zero", "nonzero", "threshold", "weight", "dtype", "rows", "clear"),
    [
        (0.0, np.inf, 1e-12, 1.0, DOUBLE, 1, True),
        (1e-15, 0.1, 1e-12, 1.0, DOUBLE, 1, True),
        (1.9e-14, 1.1e-9, 1e-12, 1.0, DOUBLE, 1, True),
        (2.5e-14, 0.1, 1e-12, 1.0, DOUBLE, 1, False),  # above 100 eps
        (1e-15, 0.9e-9, 1e-12, 1.0, DOUBLE, 1, False),  # below 1000 times the threshold
        (2.5e-14, np.inf, 1e-12, 1.0, DOUBLE, 1, False),
        # zeros may be larger if the threshold is far above rounding
        (0.9e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, True),
        (1.1e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, False),
        # zeros above the threshold, due to errors of maps of large weight, also need a gap
        (0.9e-14, 1.1e-11, 1e-15, 1.0, DOUBLE, 1, True),
        (0.9e-14, 0.8e-11, 1e-15, 1.0, DOUBLE, 1, False),
        # single precision needs a smaller gap
        (0.0, 4e-5, 1e-5, 1.0, SINGLE, 1, True),
        (0.0, 2.9e-5, 1e-5, 1.0, SINGLE, 1, False),
        (1.1e-5, 1.0, 1e-5, 1.0, SINGLE, 1, True),
        (1.3e-5, 1.0, 1e-5, 1.0, SINGLE, 1, False),
        # zeros of ill-conditioned maps may be larger
        (1e-11, 1.0, 1e-12, 1.0, DOUBLE, 1, False),
        (1e-11, 1.0, 1e-12, 1e3, DOUBLE, 1, True),
        (1e-11, 0.9e-8, 1e-12, 1e3, DOUBLE, 1, False),
        # zeros may be larger if many rows are rounded
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 190_000, False),
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 210_000, True),
    ],
)
def test_singular_values_near_the_threshold_are_doubtful(
    zero, nonzero, threshold, weight, dtype, rows, clear
):
    reason = rank_decision.doubt(zero, nonzero, threshold, weight, dtype, rows)
    assert (reason is None) == clear
    assert clear or f"counted as zero is {zero:.2g}" in reason


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_the_sections_of_a_large_complete_graph_are_clear():
    F = sc.CellularSheaf.constant(nx.complete_graph(700))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sc.global_sections(F).h0 == 1
