"""Upper bound on h0 from the ranks of maps along a spanning tree."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.sections import _global_sections
from sheafcoarsen.sections.rank_decision import section_bound
from tests.support import reference
from tests.support.helpers import dense_rank
from tests.support.strategies import sheaves


def chain(n, dim, seed, graph=None):
    """Return random square maps on a path of n edges or another tree, with h0 = dim."""
    edges = np.array((graph or nx.path_graph(n + 1)).edges)
    maps = np.random.default_rng(seed).standard_normal((2, len(edges), dim, dim))
    return sc.CellularSheaf(edges, *maps)


@given(sheaves(dtypes=(np.float64, np.complex128)))
def test_the_bound_holds_on_any_sheaf(F):
    sigma = np.linalg.svd(reference.coboundary(F), compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-15 * largest) & (sigma < 1e-6 * largest)).any() or largest == 0)
    h0 = F.dim_c0 - dense_rank(reference.coboundary(F))
    assert h0 <= section_bound(F)
    # it is computed only if h0 is larger
    assert section_bound(F) >= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0))


def test_the_bound_matches_known_values():
    assert section_bound(chain(20, 3, seed=0)) == 3
    assert section_bound(sc.CellularSheaf.constant([[0, 1], [2, 3]], dim=2)) == 4
    # roots have minimum dimension; one map on a stalk of dimension 3 has rank 1
    low = np.ones((2, 3))
    F = sc.CellularSheaf([[0, 1], [1, 0]], [low, np.eye(2)], [np.eye(2), low])
    assert section_bound(F) == 2 + 2
    zero = sc.CellularSheaf([[0, 1]], [np.zeros((2, 2))], [np.zeros((2, 2))])
    assert section_bound(zero) == 4
    assert section_bound(sc.CellularSheaf([], [], [], vertex_dims=[2, 0, 1])) == 3
    assert section_bound(sc.CellularSheaf([[0, 0]], [np.eye(2)], [-np.eye(2)])) == 2


@pytest.mark.parametrize("scale", [1e-149, 1e100])
def test_ranks_of_maps_do_not_depend_on_scale(scale):
    F = chain(20, 2, seed=1)
    assert section_bound(F.with_maps(F.tail_data * scale, F.head_data * scale)) == 2


def test_maps_that_are_singular_up_to_rounding_count_as_singular():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for small, bound in ((1e-10, 3), (1e-15, 4)):
        A = turn @ np.diag([1.0, 1.0, small]) @ turn.T
        assert section_bound(sc.CellularSheaf([[0, 1]], [A], [A])) == bound


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
@pytest.mark.usefixtures("no_forests")
@pytest.mark.parametrize("function", [sc.global_sections, sc.cohomology_dims])
def test_a_wrong_h0_on_a_long_chain_always_warns(function):
    """Coarsening decides most of these chains by rounding; forests are decided exactly."""
    wrong = 0
    for n, dim in ((600, 1), (1000, 1), (3000, 1), (300, 3), (1000, 3)):
        for seed in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = function(chain(n, dim, seed))
            if (found.h0 if function is sc.global_sections else found[0]) == dim:
                continue
            wrong += 1
            assert [w.category for w in caught] == [sc.SingularProblemWarning]
            assert caught[0].filename == __file__
            assert "rounding errors determine" in str(caught[0].message)
    assert wrong >= 4


def tree_of(seed):
    """Return a tree in which each vertex is joined to one of the three previous vertices."""
    rng = np.random.default_rng(seed)
    return nx.Graph([(v, max(v - 1 - int(rng.integers(3)), 0)) for v in range(1, 4000)])


@pytest.mark.parametrize("seed", range(2))
def test_h0_of_a_long_tree_is_correct_or_warns(seed, monkeypatch):
    F = chain(0, 1, seed, tree_of(seed))
    assert sc.global_sections(F).h0 == 1
    monkeypatch.setattr(_global_sections, "forest_sections", lambda F: None)
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine"):
        assert sc.global_sections(F).h0 > 1


def valley():
    """Return a path whose maps decay to 1e-40 and grow again, with clear singular values."""
    n = 400
    slope = np.where(np.arange(n) < n // 2, 0.5, 2.0)
    edges = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return sc.CellularSheaf(edges, slope[:, None, None], np.ones((n, 1, 1)))


def test_h0_above_the_bound_warns_even_if_singular_values_are_clear(monkeypatch):
    S = sc.global_sections(valley())  # by substitution along the tree
    assert S.h0 == 1
    assert S.residual < 1e-15
    monkeypatch.setattr(_global_sections, "forest_sections", lambda F: None)
    with pytest.warns(sc.SingularProblemWarning, match="a spanning tree bounds h0 by 1") as caught:
        S = sc.global_sections(valley())
    assert S.h0 == 2
    assert caught[0].filename == __file__
