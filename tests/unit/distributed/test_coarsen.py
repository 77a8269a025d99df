"""`coarsen` from store to store: the same bits and warnings as in memory."""

import re
from functools import partial

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import (
    differences,
    grid_sheaf,
    made_twice,
    ragged_sheaf,
    warnings_of,
)

RULES = [
    3,
    [5, 0, 1, 2, 3, 4, 2, 1, 0, 9],
    sc.ranks.budget(25),
    sc.ranks.below(2.0),
    sc.ranks.gap(4),
    sc.ranks.kernel(),
    sc.ranks.fixed(2).whole_multiplets(),
    0,
]
LARGE = sc.CellularSheaf.random(nx.path_graph(64), 4, 5, seed=0)


def ragged(rank, dtype=np.float64, **options):
    F = ragged_sheaf(dtype, n=60, m=150)
    return F, sc.select(F, 10), rank, options


def one_large_edge_stalk():
    """The chunk size of compression depends on the largest stalk, which is in a single shard."""
    rng = np.random.default_rng(0)
    edges = np.array([[k, k + 1] for k in range(11)] + [[0, 6], [0, 6], [0, 6]])
    edge_dims = np.full(14, 90)
    edge_dims[2] = 300
    data = [rng.standard_normal(2 * edge_dims.sum()) for _ in range(2)]
    F = sc.CellularSheaf.from_flat(edges, *data, np.full(12, 2), edge_dims)
    return F, sc.Partition(np.arange(12) // 3), 3, {"n_shards": 4}


def unequal_clusters():
    """The matrix of one cluster is reduced to tridiagonal form first, that of the other is not."""
    return LARGE, sc.Partition(np.minimum(np.arange(64) // 16, 1)), [1, 100], {"n_shards": 2}


def nearly_equal_spectra(rank):
    """In single precision, scores of the second cluster round to those of the first."""
    low = np.float32(0.01)
    maps = np.array([1, low, 1, np.nextafter(low, np.float32(0))], np.float32).reshape(-1, 1, 1)
    F = sc.CellularSheaf([[0, 1], [1, 2], [3, 4], [4, 5]], maps, maps)
    return F, sc.Partition([0, 0, 0, 1, 1, 1]), rank, {"n_shards": 2}


def extreme(edges, labels, **options):
    m = len(edges)
    edges, data = np.array(edges, int).reshape(-1, 2), np.arange(1.0, 2 * m + 1)
    F = sc.CellularSheaf.from_flat(edges, data, 2 * data, np.ones(len(labels), int), np.full(m, 2))
    return F, sc.Partition(labels), 2, {"n_shards": 2, **options}


PRINCIPAL = {"local_operator": "principal"}
TRIANGLE = [[0, 1], [1, 2], [0, 2]]
CASES = {
    **{str(rule): partial(ragged, rule) for rule in RULES},
    **{f"{rule}, principal": partial(ragged, rule, **PRINCIPAL) for rule in RULES[::2]},
    "single precision": partial(ragged, 3, np.float32),
    "a budget for nearly equal spectra": partial(nearly_equal_spectra, sc.ranks.budget(5)),
    "a bound between them": partial(nearly_equal_spectra, sc.ranks.below(0.00014999624064)),
    "not compressed, one shard": partial(ragged, 3, compress=False, n_shards=1),
    "complex": partial(ragged, 3, np.complex128, n_shards=8),
    "one large edge stalk": one_large_edge_stalk,
    "unequal clusters": unequal_clusters,
    "no vertices": partial(extreme, [], []),
    "no edges": partial(extreme, [], [0, 0, 1]),
    "no edges, principal": partial(extreme, [], [0, 0, 1], **PRINCIPAL),
    "one vertex": partial(extreme, [[0, 0]], [0]),
    "one cluster each": partial(extreme, TRIANGLE, [0, 1, 2]),
    "one cluster each, principal": partial(extreme, TRIANGLE, [0, 1, 2], **PRINCIPAL),
    "one cluster": partial(extreme, TRIANGLE, [0, 0, 0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:`ranks.budget:sheafcoarsen.SingularProblemWarning")
def test_coarsenings_have_the_same_bits_as_in_memory(name, memory):
    F, P, rank, options = CASES[name]()
    C, D = made_twice(memory, F, P, rank, **options)
    assert (D.sheaf.dtype, D.sheaf.largest_entry) == (C.sheaf.dtype, C.sheaf.largest_entry)


def test_only_rules_that_need_whole_spectra_raise_for_huge_clusters(memory, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)
    F, P = sc.CellularSheaf.constant(nx.path_graph(100)), sc.Partition(np.zeros(100, int))
    src = dist.to_store(memory("src"), F)
    D = dist.coarsen(src, memory("out"), P, 3)
    assert differences(sc.coarsen(F, P, 3, compress=True), D.load()) == []
    for rank in (sc.ranks.gap(3), sc.ranks.kernel()):
        with pytest.raises(ValueError, match="a rule that looks at whole spectra requires dense"):
            dist.coarsen(src, memory("other"), P, rank)


def test_spectra_of_large_clusters_have_the_same_bits_as_in_memory(monkeypatch, memory):
    """All clusters together are worth a reduction to tridiagonal form, those of a shard are not."""
    Gap, seen, ranks = sc.ranks.Gap, [], sc.ranks.Gap.ranks
    monkeypatch.setattr(Gap, "ranks", lambda r, found: seen.append(found.scores) or ranks(r, found))
    P = sc.Partition(np.arange(64) // 16)
    made_twice(memory, LARGE, P, sc.ranks.gap(3), n_shards=4)
    assert seen[0].tobytes() == seen[1].tobytes()


@pytest.mark.parametrize(("loops", "local_operator"), [(True, "internal"), (False, "principal")])
def test_a_second_level_has_the_same_bits_as_in_memory(loops, local_operator, memory):
    F = grid_sheaf(10)
    P = sc.select(F, 20)
    C = sc.coarsen(F, P, 3, loops=loops, compress=True)
    Q = sc.select(C.sheaf, 4)
    with ties_allowed():
        options = {"loops": loops, "local_operator": local_operator}
        D = sc.coarsen(C.sheaf, Q, 4, compress=True, **options)
        src = dist.to_store(memory("src"), F, 5000)
        one = dist.coarsen(src, memory("one"), P, 3, loops=loops, n_shards=5)
        two = dist.coarsen(one.sheaf, memory("two"), Q, 4, n_shards=3, **options)
    assert differences(D, two.load()) == []


LINE, ONES = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]], dim=2), [[[1.0]], [[1.0]]]
EMPTY = sc.CellularSheaf([[0, 1], [0, 1]], [[[1.0]], [[2.0]]], ONES)
ZERO = sc.CellularSheaf.from_flat([[0, 1]], [], [], [0, 0], 0)
WARNINGS = [
    (LINE, 1, "first in cluster 0. .*eigenvalue is 0 in"),
    (EMPTY, sc.ranks.kernel(), "no local operator has eigenvalue 0"),
    # discards in two clusters, and in one
    *((LINE, sc.ranks.budget(k), "discards modes of eigenvalue 0 in ") for k in (1, 3)),
    (LINE, sc.ranks.budget(1).whole_multiplets(), "discards modes of eigenvalue 0 in "),
    (LINE, sc.ranks.budget(4), None),
    (LINE, 2, None),
    (ZERO, sc.ranks.kernel(), None),
]


@pytest.mark.parametrize(("F", "rank", "message"), WARNINGS)
def test_warnings_are_those_of_coarsening_in_memory(F, rank, message, memory):
    src, P = dist.to_store(memory("src"), F), sc.Partition(np.arange(F.n_vertices) // 2)
    wanted, _ = warnings_of(sc.coarsen, F, P, rank)
    said, _ = warnings_of(dist.coarsen, src, memory("out"), P, rank, n_shards=2)
    assert said == wanted
    assert any(re.search(message or "^", text) for text in said) == (message is not None)


@pytest.mark.parametrize(("sections", "ranks"), [(False, [0, 1]), (True, [3, 1]), (False, [1, 2])])
def test_ties_at_eigenvalue_zero_are_found_by_cluster(sections, ranks, memory):
    """Modes of eigenvalue 0 are discarded in the second cluster, unless it keeps both."""
    rng, I = np.random.default_rng(0), np.eye(2)  # noqa: E741
    triangle = [I] * 6 if sections else list(rng.standard_normal((6, 2, 2)))
    F = sc.CellularSheaf([*TRIANGLE, [3, 4]], [*triangle[:3], I], [*triangle[3:], I])
    src, P = dist.to_store(memory("src"), F), sc.Partition([0, 0, 0, 1, 1])
    wanted, _ = warnings_of(sc.coarsen, F, P, ranks)
    said, _ = warnings_of(dist.coarsen, src, memory("out"), P, ranks, n_shards=2)
    assert said == wanted
    assert any("eigenvalue is 0 in cluster 1" in text for text in said) == (ranks[1] == 1)
