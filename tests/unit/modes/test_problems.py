"""Large clusters against the dense solver, at any scale, on any number of threads."""

import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen._support import threads as threads_module
from tests.support.helpers import assert_residual, covering, eps_of
from tests.support.strategies import DTYPES
from tests.unit.modes.test_local_modes import (
    OPERATORS,
    assert_lowest_eigenpairs,
    local_operator_of,
    modes_of,
    one_cluster,
)

# ---------------------------------------------------------------- large clusters: LAPACK by index


def large_sheaf(kind, dtype, seed):
    """Return a sheaf with clusters of about 60, 90 and 150 dimensions."""
    rng = np.random.default_rng(seed)
    sizes = [20, 30, 50]
    P = Partition(rng.permutation(np.repeat(np.arange(3), sizes)))
    graph = nx.gnm_random_graph(100, 300, seed=seed)
    if kind == "general":
        F = CellularSheaf.random(
            graph, rng.integers(0, 6, size=100), rng.integers(1, 5, size=300), seed=rng, dtype=dtype
        )
    elif kind == "orthogonal":
        F = CellularSheaf.random(graph, 3, 3, kind="orthogonal", seed=rng, dtype=dtype)
    elif kind == "few edges":  # most entries of L_a are zero
        graph = nx.gnm_random_graph(100, 90, seed=seed)
        F = CellularSheaf.random(graph, 3, 2, seed=rng, dtype=dtype)
    else:  # "graded": edges of very different size
        F = CellularSheaf.random(graph, 3, 2, seed=rng, dtype=dtype)
        sizes = 10.0 ** rng.integers(-4, 1, size=300)
        factors = np.repeat(sizes, 6).astype(F.tail_data.real.dtype)
        F = F.with_maps(F.tail_data * factors, F.head_data * factors)
    return F, P


@pytest.mark.parametrize(
    ("kind", "local_operator", "dtype"),
    covering(["general", "orthogonal", "few edges", "graded"], OPERATORS, DTYPES),
)
def test_modes_of_large_clusters_match_the_dense_solver(kind, local_operator, dtype):
    F, P = large_sheaf(kind, dtype, seed=13)
    M = modes_of(F, P, [7, 1, 23], local_operator)
    assert min(len(M.basis(a)) for a in range(3)) > 12
    for a in range(3):
        assert_lowest_eigenpairs(M, a)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, 1e-12), (np.float64, 1e100), (np.complex64, 1e12), (np.complex128, 1e-100)],
)
def test_modes_of_large_clusters_match_at_any_scale_and_rank(dtype, scale):
    F = CellularSheaf.random(nx.gnm_random_graph(20, 60, seed=5), 3, 2, seed=7, dtype=dtype)
    factor = F.tail_data.dtype.type(scale)
    F = F.with_maps(F.tail_data * factor, F.head_data * factor)
    local = local_operator_of(F, one_cluster(F), 0, "internal")
    for r in (0, 1, 24, 57, 58, 59, 60, 70):
        assert_lowest_eigenpairs(modes_of(F, one_cluster(F), r), 0, local)


def every_value_twice(dtype):
    """Return a bundle of planes over a random graph.

    The rotations are consistent, so every eigenvalue is double.
    """
    F = gallery.bundle(nx.gnm_random_graph(45, 120, seed=3), 2, seed=5)
    maps = [data.astype(dtype) for data in (F.tail_data, F.head_data)]
    if F.with_maps(*maps).dtype.kind == "c":
        phases = np.exp(1j * np.arange(F.n_edges))
        maps = [data * np.repeat(phases, 4).astype(dtype) for data in maps]
    return F.with_maps(*maps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_consistent_rotations_have_double_eigenvalues(dtype):
    F = every_value_twice(dtype)
    local = L, delta = local_operator_of(F, one_cluster(F), 0, "internal")
    values = np.linalg.eigvalsh(L).reshape(-1, 2)
    assert_residual(values[:, 1] - values[:, 0], delta, delta, n=90, eps=eps_of(F.dtype))
    for r in (1, 2, 3, 4, 17, 88, 89):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            M = sc.local_modes(F, one_cluster(F), r)
        assert [w.category for w in caught] == [sc.TiedModesWarning] * (r % 2)
        assert M.tied.tolist() == [r % 2 == 1]
        assert_lowest_eigenpairs(M, 0, local)


DEGENERATE = {
    # 0 is simple, 40 has multiplicity 39
    "complete": CellularSheaf.constant(nx.complete_graph(40)),
    "star": CellularSheaf.constant(nx.star_graph(59)),  # 1 has multiplicity 58
    "cycle of planes": gallery.bundle(nx.cycle_graph(40), 2, seed=3),
    "identity": CellularSheaf(
        np.repeat(np.arange(30), 2).reshape(-1, 2), [np.eye(2)] * 30, [np.zeros((2, 2))] * 30
    ),
    # kernel of dimension 54
    "three edges": CellularSheaf.random([[0, 1], [5, 9], [7, 7]], [3] * 20, 2, seed=5),
    "kernel of 3": gallery.bundle(nx.gnm_random_graph(40, 100, seed=5), 3, seed=7),
    # 0 and 2 have multiplicity 30 each
    "disconnected": CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(2)] * 30)),
}


@pytest.mark.parametrize(
    ("dtype", "name"), [*covering(DTYPES, DEGENERATE), *covering(DTYPES[1:], DEGENERATE)]
)
def test_eigenvalues_of_large_multiplicity_match_the_dense_solver(name, dtype):
    F = DEGENERATE[name]
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    P = one_cluster(F)
    local = local_operator_of(F, P, 0, "internal")
    for r in (1, 4, 5, 31):
        assert_lowest_eigenpairs(modes_of(F, P, r), 0, local)


# ---------------------------------------------------------------- threads


def watch_threads(monkeypatch):
    started = []
    pool = threads_module.ThreadPoolExecutor
    monkeypatch.setattr(
        "sheafcoarsen._support.threads.ThreadPoolExecutor",
        lambda threads: started.append(threads) or pool(threads),
    )
    return started


def test_small_problems_use_one_thread(monkeypatch):
    started = watch_threads(monkeypatch)
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 2)
    F = CellularSheaf.random(nx.path_graph(40), 2, 2, seed=3)
    modes_of(F, Partition(np.arange(40) // 4), 2)
    assert started == []


def test_progress_is_shown_on_request_without_changing_results(capfd):
    F, P = CellularSheaf.random(nx.path_graph(40), 2, 2, seed=3), Partition(np.arange(40) // 4)
    quiet = sc.local_modes(F, P, 2)
    assert "local modes" not in "".join(capfd.readouterr())
    shown = sc.local_modes(F, P, 2, progress=True)
    assert "local modes" in capfd.readouterr().err
    np.testing.assert_array_equal(quiet.prolongation.data, shown.prolongation.data)
