"""The energy of a cochain, whole and edge by edge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of
from tests.support.strategies import cochains, sheaves


@given(sheaves(), st.data())
def test_edge_energies_sum_to_the_energy(F, data):
    x = data.draw(cochains(F)) * (1 + 2j if data.draw(st.booleans(), label="complex x") else 1)
    per_edge, total = sc.edge_energy(F, x), sc.energy(F, x)
    assert per_edge.shape == (F.n_edges, *x.shape[1:])
    assert per_edge.dtype == x.real.dtype
    assert isinstance(total, float) if x.ndim == 1 else total.shape == x.shape[1:]
    delta = reference.coboundary(F)
    eps = eps_of(F.dtype)
    arrays = (x, per_edge, reference.edge_energy(F, x))
    columns, energies, expected = (array if x.ndim == 2 else array[:, None] for array in arrays)
    totals = np.atleast_1d(total)
    for c in range(columns.shape[1]):
        for e in range(F.n_edges):
            rows = delta[reference.edge_coordinates(F, e)]
            there = columns[np.abs(rows).any(axis=0), c]  # what the edge sees of x
            n = int(max(F.edge_dims[e], F.vertex_dims[F.edges[e]].max()))
            assert_residual(energies[e, c] - expected[e, c], rows, rows, there, there, n=n, eps=eps)
        factors = (delta, delta, columns[:, c], columns[:, c])
        assert_residual(
            totals[c] - expected[:, c].sum(), *factors, n=max(F.dim_c0, F.dim_c1), eps=eps
        )


@pytest.mark.large
def test_energies_of_columns_in_single_precision_are_summed_in_double_precision():
    """Each of 10^5 edges has the energy (1/3)^2, rounded to single precision."""
    n = 100_001
    maps = np.ones((n - 1, 1, 1), np.float32)
    F = CellularSheaf(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), maps, maps)
    x = np.repeat((np.arange(n) % 2 / np.float32(3)).astype(np.float32)[:, None], 2, axis=1)
    exact = float(np.float32(1 / 3)) ** 2 * (n - 1)
    assert_residual(sc.energy(F, x) - exact, exact, n=1, eps=eps_of(np.float32))
