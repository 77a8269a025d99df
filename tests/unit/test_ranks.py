import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.ranks import Spectra, as_rule
from tests.support.helpers import Tensor, ties_allowed
from tests.support.strategies import DTYPES

DIMS = st.lists(st.integers(0, 9), max_size=6)


def ranks_of(dims, rank):
    """Return the ranks of clusters that are single vertices of the given dimensions."""
    nothing = np.zeros((0, 1, 1))
    F = CellularSheaf([], nothing, nothing, vertex_dims=np.array(dims, np.int64))
    with ties_allowed():
        return sc.local_modes(F, Partition(np.arange(len(dims))), rank).ranks


@given(DIMS, st.integers(0, 12))
def test_an_integer_is_the_rule_fixed_and_is_clipped(dims, r):
    for rank in (r, np.int64(r), np.uint8(r), np.array(r), Tensor(r), sc.ranks.fixed(r)):
        ranks = ranks_of(dims, rank)
        assert ranks.tolist() == [min(r, N) for N in dims]
        assert ranks.dtype == np.int64


@given(DIMS, st.data())
def test_ranks_may_be_one_integer_per_cluster(dims, data):
    rank = data.draw(st.lists(st.integers(0, 12), min_size=len(dims), max_size=len(dims)))
    for form in (rank, tuple(rank), np.array(rank, np.int32)):
        ranks = ranks_of(dims, form)
        assert ranks.tolist() == [min(r, N) for r, N in zip(rank, dims, strict=True)]
        assert ranks.dtype == np.int64


def test_equal_rules_compare_equal():
    assert sc.ranks.fixed(3) == sc.ranks.fixed(3) != sc.ranks.fixed(2)
    assert sc.ranks.below(1) == sc.ranks.below(1.0) != sc.ranks.below(2)
    whole = sc.ranks.gap(2).whole_multiplets()
    assert whole == sc.ranks.gap(2).whole_multiplets() == whole.whole_multiplets()
    assert len({sc.ranks.kernel(), sc.ranks.kernel(), sc.ranks.budget(3)}) == 2
    assert as_rule([1, 2], 2) == as_rule(np.array([1, 2]), 2) != as_rule([2, 1], 2)
    assert hash(as_rule([1, 2], 2)) == hash(as_rule((1, 2), 2))


@pytest.mark.parametrize(
    ("local_operator", "dtype"),
    [
        ("internal", np.float32),
        ("principal", np.float64),
        ("oversampled", np.float32),
        ("oversampled", np.float64),
    ],
)
def test_multiplets_end_at_gaps_above_sqrt_eps(local_operator, dtype):
    """A triangle has 0, 3, 3; changing a weight moves the last one by 4/3 of the change."""
    options = {"target": 1.0} if local_operator == "oversampled" else {}
    sqrt_eps = float(np.sqrt(np.finfo(dtype).eps))
    for difference, whole in ((0.0, 3), (0.1 * sqrt_eps, 3), (50 * sqrt_eps, 2)):
        weight = np.array([1 + difference, 1, 1], dtype)
        F = CellularSheaf.constant([[0, 1], [1, 2], [0, 2]], weight=weight)
        assert F.dtype == dtype
        rule = sc.ranks.fixed(2).whole_multiplets()
        M = sc.local_modes(F, Partition([0, 0, 0]), rule, local_operator, **options)
        assert M.ranks.tolist() == [whole], difference
        with ties_allowed():
            M = sc.local_modes(F, Partition([0, 0, 0]), 2, local_operator, **options)
        assert M.tied.tolist() == [whole == 3], difference


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_end_at_rounding_of_the_largest_singular_value(dtype):
    """Edges [1 | 1] and [1 | 1 + s] have the singular values 2 and s / 2, up to terms of s^2."""
    eps = np.finfo(dtype).eps
    for s, dim in ((4 * eps, 1), (16 * eps, 0)):  # 2 eps 2 is the level
        head = np.array([1, 1 + s], dtype).reshape(2, 1, 1)
        F = CellularSheaf([[0, 1], [0, 1]], np.ones_like(head), head)
        for scale in (1, 0.75, 2.0**-20):
            G = F.with_maps(*(dtype(scale) * data for data in (F.tail_data, F.head_data)))
            assert ranks_of_sheaf(G) == [dim]


def ranks_of_sheaf(F):
    P = Partition(np.zeros(F.n_vertices, int))
    return sc.local_modes(F, P, sc.ranks.kernel()).ranks.tolist()


def test_budget_breaks_ties_by_cluster_index():
    n, ones = 1000, np.ones(1000, np.int64)
    scores = np.tile([1.0, 0.0], n // 2)
    spectra = Spectra(ones, np.arange(n + 1), scores, 0 * ones, np.zeros(n))
    ranks = sc.ranks.budget(600).ranks(spectra)
    np.testing.assert_array_equal(ranks[1::2], 1)
    np.testing.assert_array_equal(np.flatnonzero(ranks[::2]), np.arange(100))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_errors_do_not_order_eigenvalues_that_are_zero(dtype):
    F = CellularSheaf.constant(nx.path_graph(24))
    weights = np.random.default_rng(0).uniform(0.5, 2, F.n_edges).astype(dtype)
    F, P = F.with_maps(weights, weights), Partition(np.arange(24) // 4)
    with pytest.warns(sc.SingularProblemWarning):
        M = sc.local_modes(F, P, sc.ranks.budget(3))
    assert M.ranks.tolist() == [1, 1, 1, 0, 0, 0]
    many = CellularSheaf.constant(nx.path_graph(24), 5)  # five zeros in each cluster
    scale = np.repeat(weights, 25)
    many = many.with_maps(scale * many.tail_data, scale * many.head_data)
    with ties_allowed():
        assert sc.local_modes(many, P, sc.ranks.gap(3)).ranks.tolist() == [1] * 6


@pytest.mark.parametrize(
    ("rule", "lost", "scale"),
    [
        (sc.ranks.budget(0), 3, 1e-100),
        (sc.ranks.budget(1).whole_multiplets(), 2, 1.0),
        (sc.ranks.budget(5), 1, 1e100),
        (sc.ranks.budget(5).whole_multiplets(), 0, 1.0),
        (sc.ranks.budget(6), 0, 1e-100),
        (sc.ranks.fixed(1), 0, 1e100),  # a choice for each cluster
    ],
    ids=str,
)
def test_budget_warns_once_if_it_discards_local_sections(rule, lost, scale):
    P, F = Partition(np.arange(12) // 4), sc.gallery.bundle(nx.path_graph(12), 2, seed=1)
    tail, head = (scale * data.reshape(-1, 2, 2) for data in (F.tail_data, F.head_data))
    F = F.with_maps(tail, head)  # each of the three clusters has two local sections
    with ties_allowed(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sc.SingularProblemWarning)
        sc.local_modes(F, P, rule)
        sc.coarsen(F, P, rule)
        sc.coarsen_levels(F, partitions=[P], rank=rule)
    assert len(caught) == (3 if lost else 0)
    for found in caught:
        message = f"discards modes of eigenvalue 0 in {lost} of 3 clusters"
        assert message in str(found.message)
        assert found.filename == __file__ or "level 0: " in str(found.message)


@pytest.mark.parametrize("size", [1.0, 0.3, 7.0])
def test_the_first_of_gaps_that_are_equal_up_to_rounding_is_taken_at_any_scale(size):
    """The spectrum of a cube is 0, 2 (3 times), 4 (3 times), 6, with three gaps of 2."""
    F = sc.CellularSheaf.constant(nx.hypercube_graph(3), weight=np.full(12, size**2))
    P = sc.Partition(np.zeros(8, int))
    assert sc.local_modes(F, P, sc.ranks.gap(7)).ranks.tolist() == [1]


def test_gaps_far_below_a_heavy_edge_are_compared_exactly():
    """The lowest gaps are .25, 1.25 and .5, and sqrt(eps) times the norm of L_a is 3."""
    weight = [1e8, 1.0, 0.5, 1e8, 1.0]
    F = sc.CellularSheaf.constant([[i, i + 1] for i in range(5)], weight=weight)
    with ties_allowed():
        M = sc.local_modes(F, sc.Partition(np.zeros(6, int)), sc.ranks.gap(3))
    assert M.ranks.tolist() == [2]
