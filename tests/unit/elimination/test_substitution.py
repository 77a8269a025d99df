"""Forward and back substitution of cochains, and the prolongation."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.elimination import _eliminate
from tests.support import poison, reference
from tests.support.helpers import assert_residual
from tests.support.strategies import DTYPES


def test_prolongation_rows_of_a_chain_depend_only_on_its_two_ends():
    K = sc.eliminate(CellularSheaf.constant(nx.path_graph(50)), keep=[0, 25, 49])
    assert (np.diff(K.prolongation.indptr) <= 2).all()
    assert K.prolongation.has_canonical_format


def test_single_precision_is_computed_in_double():
    n = 400
    edges, ones = np.array(nx.path_graph(n).edges), np.ones((n - 1, 1, 1), np.float32)
    F = CellularSheaf(edges, ones, ones)
    right = sc.eliminate(F, keep=[0, n - 1]).reduce(np.ones(n, np.float32))
    assert right.dtype == np.float32
    assert np.abs(right - n / 2).max() <= 2 * np.spacing(np.float32(n / 2))


@pytest.mark.parametrize("dim", [1, 2])
def test_one_right_hand_side_gives_the_same_bits_as_several(dim):
    """The numbers are complex."""
    F = sc.CellularSheaf.random(nx.karate_club_graph(), dim, dim, seed=3, dtype=complex)
    K, rng = sc.eliminate(F, keep=[0]), np.random.default_rng(3)
    b = rng.standard_normal((F.dim_c0, 2)) + 1j * rng.standard_normal((F.dim_c0, 2))
    z = rng.standard_normal((K.sheaf.dim_c0, 2)) * (1 + 1j)
    both = K.extend(z, b)
    assert abs(both - K.extend(z)).max() > 0.1
    for j in range(2):
        assert np.array_equal(K.extend(z[:, j], b[:, j]), both[:, j])
        assert np.array_equal(K.extend(z[:, j]), K.extend(z)[:, j])


@pytest.mark.parametrize("seed", range(40))
def test_every_entry_is_computed_if_some_stalks_are_empty(seed, monkeypatch):
    """Seed 0 has as many neighbours as their stalks have dimensions in total."""
    monkeypatch.setattr(_eliminate, "np", SimpleNamespace(**{**vars(np), **poison.NAMES}))
    rng, dtype = np.random.default_rng(seed), DTYPES[seed % 4]
    graph = nx.gnm_random_graph(7, 8, seed=seed)
    dims, heights = rng.integers(0, 3, 7), rng.integers(0, 3, 8)
    if seed == 0:
        graph, dims, heights = [(0, 1), (1, 2), (2, 3), (1, 3)], [2, 0, 1, 2], 2
    F = CellularSheaf.random(graph, dims, heights, seed=seed, dtype=dtype)
    K = sc.eliminate(F, keep=[0])
    wanted = reference.schur_complement(F, K.kept.tolist())
    eps = np.finfo(dtype).eps
    z = np.ones((K.sheaf.dim_c0, 2), dtype) * np.array([1, 2], dtype)
    expected = np.zeros((F.dim_c0, 2), wanted.extension.dtype)
    expected[wanted.kept], expected[wanted.eliminated] = z, wanted.extension @ z
    size = np.linalg.norm(expected) / min(wanted.smallest, 1.0) ** 2
    for x, column in ((K.extend(z), slice(None)), (K.extend(z[:, 1]), 1)):
        assert_residual(x - expected[:, column], size, n=F.dim_c0, eps=eps)


def test_prolongation_does_not_overflow_where_the_values_do_not():
    """Maps of the second part alone amplify by 1e320."""
    ratios = np.repeat([1e-10, 1e10], [20, 32])[:, None]
    chain = CellularSheaf.diagonal(nx.path_graph(53), ratios, np.ones((52, 1)))
    P = sc.eliminate(chain, keep=[0]).prolongation
    values = np.append(1.0, np.cumprod(ratios))
    np.testing.assert_allclose(P.toarray().ravel(), values, rtol=1e-12)
