"""`verify` passes what is right, catches what is damaged, and says why a statement does not apply."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from tests.helpers import eps_of
from tests.strategies import sheaves_with_partitions
from tests.test_theorems import coarsenings

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

SPECTRAL = {
    "thm:local_spectral_optimality",
    "prop:truncation_loss",
    "eq:retained_internal_energy_spectral",
    "cor:truncation_realization_errors",
}
LOOPLESS = {"eq:loopless_exact_realization", "prop:kernel_preservation_loopless"}
ALWAYS = {"eq:galerkin_energy_identity", "thm:galerkin_energy_decomposition", "thm:Galerkin_realization"}


@pytest.fixture(scope="module")
def C():
    graph = nx.random_geometric_graph(60, 0.3, seed=7)
    F = sc.CellularSheaf.random(graph, 3, 2, seed=11)
    return sc.coarsen(F, sc.select(F, 5), 4)


def failed(C):
    return {check.label for check in sc.verify(C).checks if not check.passed}


def applied(V):
    return {check.label for check in V.checks if check.skipped_because is None}


@given(coarsenings())
def test_passes_on_every_coarsening(case):
    V = sc.verify(case[0])
    assert V.passed, str(V)
    assert applied(V) >= ALWAYS


@given(sheaves_with_partitions())
def test_passes_two_levels_deep(case):
    F, P = case
    C = sc.coarsen(F, P, 3)
    coarse = C.sheaf
    deeper = sc.coarsen(coarse, sc.Partition(np.arange(coarse.n_vertices) // 2), 2)
    V = sc.verify(deeper)
    assert V.passed, str(V)


def test_every_statement_is_listed_once(C):
    labels = [check.label for check in sc.verify(C).checks]
    assert len(set(labels)) == len(labels)
    assert set(labels) >= SPECTRAL | LOOPLESS | ALWAYS


def test_which_statements_apply(C):
    assert applied(sc.verify(C)) >= SPECTRAL | ALWAYS
    principal = sc.verify(sc.coarsen(C.fine, C.partition, 3, local_operator="principal"))
    assert not applied(principal) & SPECTRAL
    assert all("principal" in c.skipped_because for c in principal.checks if c.label in SPECTRAL)
    bundle = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=5)
    loopless = sc.verify(sc.coarsen(bundle, sc.select(bundle, 4), 2))
    assert applied(loopless) >= LOOPLESS
    assert loopless.passed, str(loopless)


def test_table_says_everything(C):
    V = sc.verify(C)
    for check in V.checks:
        assert check.label in str(V)
        if check.skipped_because:
            assert check.skipped_because in str(V)
            assert (check.ratio, check.how) == (None, None)
        else:
            assert check.how in ("exact", "probe", "dense")
            assert 0 <= check.ratio < check.threshold
    assert "that apply hold, 2 do not apply" in str(V)
    assert bool(V)


def with_sheaf(C, *, edges=None, tail=None, head=None):
    coarse = C.sheaf
    tail = coarse.tail_data if tail is None else tail
    head = coarse.head_data if head is None else head
    if edges is None:
        return dataclasses.replace(C, sheaf=coarse.with_maps(tail, head))
    maps = [[get(e) for e in edges] for get in (coarse.tail_map, coarse.head_map)]
    return dataclasses.replace(C, sheaf=sc.CellularSheaf(coarse.edges[edges], *maps, vertex_dims=coarse.vertex_dims))


def coarse_block_norm(C, e):
    return np.linalg.norm(C.sheaf.tail_map(e))


@pytest.mark.parametrize("where", ["crossing tail", "crossing head", "loop"])
def test_catches_one_entry_of_a_map_off_by_a_millionth(C, where):
    e = C.sheaf.n_edges - 1 if where == "loop" else 2
    tail, head = C.sheaf.tail_data.copy(), C.sheaf.head_data.copy()
    data, starts = (head, C.sheaf.head_offsets) if where == "crossing head" else (tail, C.sheaf.tail_offsets)
    part = data[starts[e] : starts[e + 1]]
    part[np.abs(part).argmax()] += 1e-6 * np.linalg.norm(part)
    damaged = with_sheaf(C, tail=tail, head=head)
    assert "thm:Galerkin_realization" in failed(damaged)
    if where != "loop":
        assert "thm:galerkin_energy_decomposition" in failed(damaged)


def test_catches_one_eigenvalue_off_by_a_millionth(C):
    scores = C.modes.scores.copy()
    scores[5] *= 1 + 1e-6
    modes = dataclasses.replace(C.modes, scores=scores)
    assert failed(dataclasses.replace(C, modes=modes)) >= {
        "eq:retained_internal_energy_spectral",
        "thm:local_spectral_optimality",
    }


def test_catches_a_wrong_first_discarded_eigenvalue(C):
    modes = dataclasses.replace(C.modes, next_eigenvalues=C.modes.next_eigenvalues * (1 + 1e-6))
    assert "thm:local_spectral_optimality" in failed(dataclasses.replace(C, modes=modes))


@pytest.mark.parametrize("side", ["tail", "head"])
def test_catches_one_negated_row(C, side):
    data = {"tail": C.sheaf.tail_data.copy(), "head": C.sheaf.head_data.copy()}
    starts = C.sheaf.tail_offsets if side == "tail" else C.sheaf.head_offsets
    r = C.sheaf.vertex_dims[C.sheaf.edges[1, 0 if side == "tail" else 1]]
    data[side][starts[1] : starts[1] + r] *= -1
    assert "thm:Galerkin_realization" in failed(with_sheaf(C, **data))


def test_catches_a_row_negated_in_both_maps(C):
    """The Laplacian does not see it, the rows of the coboundary do."""
    data = {"tail": C.sheaf.tail_data.copy(), "head": C.sheaf.head_data.copy()}
    for side, starts, end in (("tail", C.sheaf.tail_offsets, 0), ("head", C.sheaf.head_offsets, 1)):
        data[side][starts[1] : starts[1] + C.sheaf.vertex_dims[C.sheaf.edges[1, end]]] *= -1
    assert failed(with_sheaf(C, **data)) == {"thm:galerkin_energy_decomposition"}


def test_catches_a_dropped_loop(C):
    kept = np.delete(np.arange(C.sheaf.n_edges), C.n_crossing_edges + 1)
    assert failed(with_sheaf(C, edges=kept)) == {"thm:Galerkin_realization"}


def test_catches_a_dropped_crossing_edge(C):
    kept = np.delete(np.arange(C.sheaf.n_edges), 1)
    assert failed(with_sheaf(C, edges=kept)) >= {"thm:Galerkin_realization", "thm:galerkin_energy_decomposition"}


def test_catches_modes_two_to_r_plus_one(C):
    """Residual, orthogonality and spectral form all hold for them: the independent eigenvalues do not."""
    more = sc.local_modes(C.fine, C.partition, C.ranks + 1)
    shifted = sc.coarsen(C.fine, C.partition, basis=[more.basis(a)[:, 1:] for a in range(5)])
    scores = np.concatenate([more.eigenvalues(a)[1:] for a in range(5)])
    modes = dataclasses.replace(more, ranks=C.modes.ranks, scores=scores, prolongation=shifted.prolongation)
    assert "thm:local_spectral_optimality" in failed(dataclasses.replace(shifted, modes=modes))


def test_catches_a_scaled_column(C):
    R = C.prolongation.copy()
    R.data[R.indices == 3] *= 1 + 1e-6
    assert failed(dataclasses.replace(C, prolongation=R)) >= {
        "thm:galerkin_energy_decomposition",
        "thm:Galerkin_realization",
        "thm:local_spectral_optimality",
    }


def test_catches_a_vanished_coarse_sheaf(C):
    zero = with_sheaf(C, tail=np.zeros_like(C.sheaf.tail_data), head=np.zeros_like(C.sheaf.head_data))
    assert failed(zero) >= {"thm:Galerkin_realization", "thm:galerkin_energy_decomposition"}


def test_seed_chooses_the_probes(C):
    ratios = [[check.ratio for check in sc.verify(C, seed=seed).checks if check.how == "probe"] for seed in (3, 3, 4)]
    assert ratios[0] == ratios[1]
    assert ratios[0] != ratios[2]


def test_samples_where_all_clusters_would_take_too_long(C, monkeypatch):
    monkeypatch.setattr("sheafcoarsen._workbench.DENSE_BUDGET", 1e5)
    how = {check.label: check.how for check in sc.verify(C).checks}
    assert how["thm:local_spectral_optimality"] == "probe"
    assert sc.verify(C).passed


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_clusters_beyond_the_small_solver(dtype):
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 200, seed=3), 2, 2, seed=1, dtype=dtype)
    C = sc.coarsen(F, sc.select(F, 4), 7)
    V = sc.verify(C)
    assert V.passed, str(V)
    assert C.sheaf.dtype == dtype
    assert max(check.ratio or 0 for check in V.checks) > eps_of(dtype)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda C: sc.verify(C.sheaf), TypeError, "`C` must be a Coarsening, got CellularSheaf"),
        (lambda C: sc.verify(C, seed=-1), ValueError, "`seed` must be at least 0"),
        (lambda C: sc.verify(C, seed=0.5), TypeError, "`seed` must be an integer"),
        (lambda C: sc.verify(dataclasses.replace(C, sheaf=C.fine)), ValueError, "does not fit together"),
    ],
)
def test_bad_input(C, build, error, message):
    with pytest.raises(error, match=message):
        build(C)
