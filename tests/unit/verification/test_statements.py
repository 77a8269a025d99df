"""`verify` passes what is right, catches what is damaged, and says why a statement does not apply."""

import dataclasses
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from tests.support.helpers import eps_of, same_subspace
from tests.support.strategies import sheaves_with_partitions
from tests.theory.test_theorems import coarsenings

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

SPECTRAL = {
    "thm:local_spectral_optimality",
    "prop:truncation_loss",
    "eq:retained_internal_energy_spectral",
    "cor:truncation_realization_errors",
}
LOOPLESS = {"eq:loopless_exact_realization", "prop:kernel_preservation_loopless"}
ALWAYS = {
    "eq:galerkin_energy_identity",
    "thm:galerkin_energy_decomposition",
    "thm:Galerkin_realization",
}


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
    return dataclasses.replace(
        C, sheaf=sc.CellularSheaf(coarse.edges[edges], *maps, vertex_dims=coarse.vertex_dims)
    )


def coarse_block_norm(C, e):
    return np.linalg.norm(C.sheaf.tail_map(e))


@pytest.mark.parametrize("where", ["crossing tail", "crossing head", "loop"])
def test_catches_one_entry_of_a_map_off_by_a_millionth(C, where):
    e = C.sheaf.n_edges - 1 if where == "loop" else 2
    tail, head = C.sheaf.tail_data.copy(), C.sheaf.head_data.copy()
    data, starts = (
        (head, C.sheaf.head_offsets) if where == "crossing head" else (tail, C.sheaf.tail_offsets)
    )
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


@pytest.fixture(scope="module")
def compressed(C):
    result = sc.coarsen(C.fine, C.partition, C.modes, compress=True)
    assert result.sheaf.edge_dims[:3].tolist() == [8] * 3 < C.sheaf.edge_dims[:3].tolist()
    return result


@pytest.mark.parametrize("side", ["tail", "head"])
def test_catches_one_entry_of_a_compressed_map_off_by_a_millionth(compressed, side):
    assert sc.verify(compressed).passed
    data = {"tail": compressed.sheaf.tail_data.copy(), "head": compressed.sheaf.head_data.copy()}
    starts = compressed.sheaf.tail_offsets if side == "tail" else compressed.sheaf.head_offsets
    part = data[side][starts[2] : starts[3]]
    part[np.abs(part).argmax()] += 1e-6 * np.linalg.norm(part)
    assert failed(with_sheaf(compressed, **data)) == {
        "thm:Galerkin_realization",
        "thm:galerkin_energy_decomposition",
    }


def test_catches_energy_at_the_wrong_compressed_edge(compressed):
    """The Laplacian does not see at which of two edges of a vertex its diagonal block comes from, the Gram matrices do."""
    data = {"tail": compressed.sheaf.tail_data.copy(), "head": compressed.sheaf.head_data.copy()}
    first, second = np.flatnonzero(compressed.sheaf.edges[: compressed.n_crossing_edges, 0] == 0)[
        :2
    ]
    for e, moved in ((first, 1e-6), (second, -1e-6)):
        X = np.hstack([compressed.sheaf.tail_map(e), -compressed.sheaf.head_map(e)])
        gram = X.T @ X
        gram[:4, :4] += moved * np.eye(4)
        T = np.linalg.cholesky(gram).T
        data["tail"][compressed.sheaf.tail_offsets[e] :][: T[:, :4].size] = T[:, :4].ravel()
        data["head"][compressed.sheaf.head_offsets[e] :][: T[:, 4:].size] = -T[:, 4:].ravel()
    assert failed(with_sheaf(compressed, **data)) == {"thm:galerkin_energy_decomposition"}


def test_catches_a_dropped_compressed_edge(compressed):
    kept = np.delete(np.arange(compressed.sheaf.n_edges), 1)
    assert failed(with_sheaf(compressed, edges=kept)) >= {
        "thm:Galerkin_realization",
        "thm:galerkin_energy_decomposition",
    }


def test_kernel_preservation_where_edges_are_compressed():
    bundle = sc.gallery.bundle(nx.grid_2d_graph(8, 8), 2, seed=5)
    C = sc.coarsen(bundle, sc.select(bundle, 4), 2, compress=True)
    V = sc.verify(C)
    assert V.passed, str(V)
    assert applied(V) >= LOOPLESS
    tail = C.sheaf.tail_data * (1 + 1e-6)
    assert failed(with_sheaf(C, tail=tail)) >= {*LOOPLESS, "thm:galerkin_energy_decomposition"}


def test_catches_a_dropped_loop(C):
    kept = np.delete(np.arange(C.sheaf.n_edges), C.n_crossing_edges + 1)
    assert failed(with_sheaf(C, edges=kept)) == {"thm:Galerkin_realization"}


def test_catches_a_dropped_crossing_edge(C):
    kept = np.delete(np.arange(C.sheaf.n_edges), 1)
    assert failed(with_sheaf(C, edges=kept)) >= {
        "thm:Galerkin_realization",
        "thm:galerkin_energy_decomposition",
    }


def test_catches_modes_two_to_r_plus_one(C):
    """Residual, orthogonality and spectral form all hold for them: the independent eigenvalues do not."""
    more = sc.local_modes(C.fine, C.partition, C.ranks + 1)
    shifted = sc.coarsen(C.fine, C.partition, basis=[more.basis(a)[:, 1:] for a in range(5)])
    scores = np.concatenate([more.eigenvalues(a)[1:] for a in range(5)])
    modes = dataclasses.replace(
        more, ranks=C.modes.ranks, scores=scores, prolongation=shifted.prolongation
    )
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
    zero = with_sheaf(
        C, tail=np.zeros_like(C.sheaf.tail_data), head=np.zeros_like(C.sheaf.head_data)
    )
    assert failed(zero) >= {"thm:Galerkin_realization", "thm:galerkin_energy_decomposition"}


def test_seed_chooses_the_probes(C):
    ratios = [
        [check.ratio for check in sc.verify(C, seed=seed).checks if check.how == "probe"]
        for seed in (3, 3, 4)
    ]
    assert ratios[0] == ratios[1]
    assert ratios[0] != ratios[2]


def test_samples_where_all_clusters_would_take_too_long(C, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.verification.evidence.DENSE_BUDGET", 1e5)
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
        (
            lambda C: sc.verify(dataclasses.replace(C, sheaf=C.fine)),
            ValueError,
            "does not fit together",
        ),
    ],
)
def test_bad_input(C, build, error, message):
    with pytest.raises(error, match=message):
        build(C)


def test_catches_wrong_principal_modes():
    """The theorems are silent on them, so the modes themselves are checked: values, vectors and ties."""
    F, P = sc.CellularSheaf.constant(nx.path_graph(8)), sc.Partition([0] * 4 + [1] * 4)
    right = sc.coarsen(F, P, 2, local_operator="principal")
    assert sc.verify(right).passed
    more = sc.local_modes(F, P, 3, "principal")
    shifted = sc.coarsen(F, P, basis=[more.basis(a)[:, 1:] for a in (0, 1)])
    modes = right.modes
    for damage in (
        {"scores": modes.scores * (1 + 1e-6)},
        {"next_eigenvalues": modes.next_eigenvalues * (1 + 1e-6)},
        {"tied": ~modes.tied},
        {"prolongation": shifted.prolongation},
    ):
        assert failed(dataclasses.replace(right, modes=dataclasses.replace(modes, **damage))) == {
            "section-2"
        }
    scores = np.concatenate([more.eigenvalues(a)[1:] for a in (0, 1)])
    modes = dataclasses.replace(
        more, ranks=modes.ranks, scores=scores, prolongation=shifted.prolongation, tied=modes.tied
    )
    assert failed(dataclasses.replace(shifted, modes=modes)) == {"section-2"}


def test_catches_wrong_ties(C):
    assert failed(
        dataclasses.replace(C, modes=dataclasses.replace(C.modes, tied=~C.modes.tied))
    ) >= {"section-2"}


def test_catches_a_lost_section():
    """A kernel direction left out: H^0 of the fine sheaf does not lie in im R, and the modes are not the lowest."""
    F, P = sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1])
    more = sc.local_modes(F, P, 2)
    shifted = sc.coarsen(F, P, basis=[more.basis(a)[:, 1:] for a in (0, 1)])
    scores = np.concatenate([more.eigenvalues(a)[1:] for a in (0, 1)])
    modes = dataclasses.replace(
        more, ranks=np.array([1, 1]), scores=scores, prolongation=shifted.prolongation
    )
    assert failed(dataclasses.replace(shifted, modes=modes)) >= {
        "fact-2",
        "thm:local_spectral_optimality",
    }


def test_table_in_a_notebook(C):
    page = sc.verify(C)._repr_html_()
    for check in sc.verify(C).checks:
        assert check.label in page
    assert page.count("<tr>") == len(sc.verify(C).checks) + 1


def test_truth_is_the_verdict(C):
    assert bool(sc.verify(C))
    zero = with_sheaf(
        C, tail=np.zeros_like(C.sheaf.tail_data), head=np.zeros_like(C.sheaf.head_data)
    )
    assert not sc.verify(zero)
    assert "FAILED" in str(sc.verify(zero))


@pytest.mark.parametrize("operator", ["internal", "principal"])
@pytest.mark.parametrize("scale", [1e-138, 1e-140, 1e-142, 1e-145, 1e-149, 1e150])
def test_the_ends_of_the_range(scale, operator):
    """Squares of squares leave the range of doubles here: what is squared is scaled first."""
    G = sc.CellularSheaf.random(
        nx.gnm_random_graph(12, 20, seed=3), 2, 2, kind="orthogonal", seed=3
    )
    F = (
        G.with_maps(G.tail_data * 0.5 * scale, G.head_data * 0.5 * scale)
        if scale > 1
        else G.with_maps(G.tail_data * 20 * scale, G.head_data * 20 * scale)
    )
    C = sc.coarsen(F, sc.Partition([0] * 6 + [1] * 6), 3, local_operator=operator)
    assert np.isfinite(C.sheaf.tail_data).all()
    assert C.sheaf.n_edges > C.n_crossing_edges
    assert sc.verify(C).passed, str(sc.verify(C))
    deeper = sc.coarsen(C.sheaf, sc.Partition([0, 0]), 4, local_operator=operator)
    assert sc.verify(deeper).passed, str(sc.verify(deeper))


@pytest.mark.parametrize("kind", ["internal", "basis"])
def test_one_cluster_is_far_weaker_than_the_others(kind):
    """The range is about the largest entry alone: a cluster 1e-155 times weaker has modes like any other."""
    F = sc.CellularSheaf.constant(nx.path_graph(6))
    weak = np.where(np.arange(5) < 2, 1e-155, 1.0)
    F = F.with_maps(F.tail_data * weak, F.head_data * weak)
    P = sc.Partition([0, 0, 0, 1, 1, 1])
    strong = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(6)), P, 2)
    C = (
        sc.coarsen(F, P, 2)
        if kind == "internal"
        else sc.coarsen(F, P, basis=[strong.block(a) for a in (0, 1)])
    )
    assert np.isfinite(C.sheaf.tail_data).all()
    assert same_subspace(C.block(0), strong.block(0), condition=3)
    loops = {
        int(C.sheaf.edges[e, 0]): C.sheaf.tail_map(e)
        for e in range(C.n_crossing_edges, C.sheaf.n_edges)
    }
    assert sorted(loops) == [0, 1]
    ratio = np.linalg.norm(loops[0] / 1e-155) / np.linalg.norm(loops[1])
    subnormal = np.finfo(float).smallest_subnormal / 1e-310  # what an eigenvalue of 1e-310 resolves
    assert abs(ratio - 1) < 30 * 3 * (np.finfo(float).eps + subnormal)


def test_maps_of_any_size_survive_saving(tmp_path):
    """Loop maps are sqrt(lambda) / 2, larger than any fine map, and kernels leave crossing maps of rounding size."""
    limit = np.sqrt(np.finfo(float).max) / 1e4 * 0.9
    F = sc.CellularSheaf.constant(nx.star_graph(30))
    F = F.with_maps(F.tail_data * limit, F.head_data * limit)
    C = sc.coarsen(F, sc.Partition([0] * 31), 31)
    sc.save(tmp_path / "c.npz", C)
    assert sc.verify(sc.load(tmp_path / "c.npz")).passed
    sc.save(tmp_path / "s.npz", C.sheaf)
    np.testing.assert_array_equal(sc.load(tmp_path / "s.npz").tail_data, C.sheaf.tail_data)
    union, starts, _ = sc.disjoint_union([C.sheaf, C.sheaf])
    assert len(sc.split(union, starts)) == 2
    C.sheaf.with_maps(C.sheaf.tail_data, C.sheaf.head_data)


def test_a_hub_is_no_reason_to_fail():
    """The diagonal block of a vertex of degree d is a sum of d terms, each rounded in the same direction."""
    F = sc.CellularSheaf.constant(nx.star_graph(3000))
    V = sc.verify(sc.coarsen(F, sc.Partition(np.arange(3001) % 150), sc.ranks.kernel()))
    assert V.passed, str(V)
    V = sc.verify(sc.coarsen(F, sc.Partition(np.arange(3001) * 150 // 3001), 2))
    assert V.passed, str(V)


def test_global_sections_of_few_coordinates_and_many_edges_take_little_memory():
    F = sc.CellularSheaf.random([[0, 1], [1, 2]] * 4000, 1, 1, seed=3)
    C = sc.coarsen(F, sc.Partition([0, 0, 1]), 2)
    sc.verify(C)
    tracemalloc.start()
    V = sc.verify(C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert V.passed, str(V)
    assert peak < 50e6  # a square factor of the rows would be 512 MB
