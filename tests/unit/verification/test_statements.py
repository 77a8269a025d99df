"""Statements about coarsenings: when they apply, and which errors each of them catches."""

import dataclasses
import re

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.verification import residuals
from sheafcoarsen.verification.residuals import Evidence
from sheafcoarsen.verification.statements import dense_sections
from tests.support.helpers import assert_verified

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


OPTIMALITY, RETAINED = "thm:local_spectral_optimality", "eq:retained_internal_energy_spectral"
LOSSES, TRUNCATION = "cor:truncation_realization_errors", "prop:truncation_loss"
IDENTITY, LEDGER = "eq:galerkin_energy_identity", "section-4"
CROSSING, REALIZATION = "thm:galerkin_energy_decomposition", "thm:Galerkin_realization"
SPECTRAL = {OPTIMALITY, RETAINED, LOSSES, TRUNCATION}
LOOPLESS = {"eq:loopless_exact_realization", "prop:kernel_preservation_loopless"}
ALWAYS = {IDENTITY, CROSSING, REALIZATION}


SIX, THREES = sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1])


def failed(C):
    return {check.label for check in sc.verify(C).checks if not check.passed}


def places(C):
    """Return the block that each failed statement names."""
    return {check.label: check.where for check in sc.verify(C).checks if not check.passed}


def applied(V):
    return {check.label for check in V.checks if check.skipped_because is None}


def test_statements_apply_as_the_modes_allow(C):
    assert applied(sc.verify(C)) >= SPECTRAL | ALWAYS
    principal = sc.verify(sc.coarsen(C.fine, C.partition, 3, local_operator="principal"))
    assert all("principal" in principal[label].skipped_because for label in SPECTRAL)
    own = sc.coarsen(C.fine, C.partition, basis=[2 * C.block(a) for a in range(5)])
    for label in (LEDGER, "fact-1"):
        assert sc.verify(own)[label].skipped_because == "R is not an isometry"
    bundle = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=5)
    for loops in (True, False):
        loopless = sc.coarsen(bundle, sc.select(bundle, 4), 2, loops=loops)
        assert applied(assert_verified(loopless)) >= LOOPLESS | ALWAYS
    omitted = sc.coarsen(C.fine, C.partition, C.modes, loops=False)
    reason = sc.verify(omitted)[REALIZATION].skipped_because
    assert reason == "loops=False omits the retained internal energy"
    head = C.sheaf.head_data.copy()
    head[-1] *= 3  # in the last loop
    wrong = dataclasses.replace(omitted, sheaf=C.sheaf.with_maps(C.sheaf.tail_data, head))
    assert not sc.verify(wrong)[REALIZATION].passed


@pytest.mark.parametrize(("n", "how"), [(300, "dense"), (2001, "exact")])
def test_full_spectra_are_compared_up_to_dimension_2000(n, how):
    F = sc.CellularSheaf.constant(nx.path_graph(n))
    V = assert_verified(sc.coarsen(F, sc.Partition(np.arange(n) // 20), 2))
    assert V["fact-1"].how == V["fact-2"].how == how


def with_sheaf(C, *, edges=None, tail=None, head=None):
    coarse = C.sheaf
    if edges is None:
        tail = coarse.tail_data if tail is None else tail
        head = coarse.head_data if head is None else head
        return dataclasses.replace(C, sheaf=coarse.with_maps(tail, head))
    maps = [[get(e) for e in edges] for get in (coarse.tail_map, coarse.head_map)]
    G = sc.CellularSheaf(coarse.edges[edges], *maps, vertex_dims=coarse.vertex_dims)
    return dataclasses.replace(C, sheaf=G)


def with_modes(C, **fields):
    return dataclasses.replace(C, modes=dataclasses.replace(C.modes, **fields))


def with_wrong_entry(C, e, side):
    """Return C with a relative error of 1e-6 in the largest entry of a map of coarse edge e."""
    maps = {"tail": C.sheaf.tail_data.copy(), "head": C.sheaf.head_data.copy()}
    starts = C.sheaf.tail_offsets if side == "tail" else C.sheaf.head_offsets
    part = maps[side][starts[e] : starts[e + 1]]
    part[np.abs(part).argmax()] += 1e-6 * np.linalg.norm(part)
    return with_sheaf(C, **maps)


@pytest.mark.parametrize(("e", "side"), [(2, "tail"), (2, "head"), (-1, "tail")])
def test_a_relative_error_of_1e_6_in_a_map_entry_is_caught(C, e, side):
    e %= C.sheaf.n_edges
    damaged = places(with_wrong_entry(C, e, side))
    a, b = C.sheaf.edges[e].tolist()
    blocks = {f"cluster {a}"}
    if a < b:
        blocks |= {f"cluster {b}", f"cluster {a} and cluster {b}"}
        assert damaged[CROSSING] in {*blocks, "coarse edge 2"}
    assert damaged[REALIZATION] in blocks


@pytest.mark.parametrize("e", [2, 4, 6])
def test_an_error_outside_of_diagonal_blocks_names_two_clusters(C, e):
    """With a negative head map, the diagonal blocks of the Laplacian do not change."""
    head, (a, b) = C.sheaf.head_data.copy(), C.sheaf.edges[e].tolist()
    head[C.sheaf.head_offsets[e] : C.sheaf.head_offsets[e + 1]] *= -1
    found = places(with_sheaf(C, head=head))
    assert found[REALIZATION] == f"cluster {a} and cluster {b}"


def test_the_preserved_kernel_is_located(C):
    exact = sc.coarsen(C.fine, C.partition, sc.ranks.kernel(), loops=False)
    where = sc.verify(exact)["prop:kernel_preservation_loopless"].where
    assert re.fullmatch(r"cluster \d|coarse edge \d+", where)


def test_modes_with_an_equal_copy_of_the_prolongation_pass(C):
    modes = sc.local_modes(C.fine, C.partition, C.modes.ranks)
    assert modes.prolongation is not C.prolongation
    assert_verified(dataclasses.replace(C, modes=modes))


def test_the_realization_is_compared_by_coboundary_and_by_laplacian(C, monkeypatch):
    """Each of the two finds an error that the other cannot see."""
    right, found = residuals.laplacian, []
    monkeypatch.setattr(residuals, "laplacian", lambda F: found.append(right(F)) or found[-1])
    assert sc.verify(C)[REALIZATION].passed
    replayed = iter(found)
    monkeypatch.setattr(residuals, "laplacian", lambda F: next(replayed))
    assert not sc.verify(with_sheaf(C, tail=1.1 * C.sheaf.tail_data))[REALIZATION].passed
    # of the coarse sheaf only
    monkeypatch.setattr(
        residuals, "laplacian", lambda F: right(F) * (1 + 1e-6 * (F.n_vertices == len(C.ranks)))
    )
    assert failed(C) == {REALIZATION}


def test_a_subspace_of_less_energy_is_located(C, monkeypatch):
    right = sc.LocalModes.eigenvalues
    monkeypatch.setattr(
        sc.LocalModes, "eigenvalues", lambda m, a: right(m, a) * (9 if a == 2 else 1)
    )
    assert places(C) == {OPTIMALITY: "cluster 2"}


@pytest.mark.parametrize(("name", "k", "cluster"), [("scores", 5, 1), ("next_eigenvalues", 3, 3)])
def test_a_relative_error_of_1e_6_in_an_eigenvalue_is_caught(C, name, k, cluster):
    values = getattr(C.modes, name).copy()
    values[k] *= 1 + 1e-6
    found = places(with_modes(C, **{name: values}))
    assert found[OPTIMALITY] == f"cluster {cluster}"
    if name == "scores":
        assert found[RETAINED] == f"cluster {cluster}"


def test_a_row_negated_in_both_maps_is_caught(C):
    """The Laplacian does not change, but the rows of the coboundary do."""
    data = {"tail": C.sheaf.tail_data.copy(), "head": C.sheaf.head_data.copy()}
    for side, starts, end in (("tail", C.sheaf.tail_offsets, 0), ("head", C.sheaf.head_offsets, 1)):
        data[side][starts[1] : starts[1] + C.sheaf.vertex_dims[C.sheaf.edges[1, end]]] *= -1
    damaged = with_sheaf(C, **data)
    assert places(damaged) == {CROSSING: "coarse edge 1"}
    assert "FAILED, largest ratio: coarse edge 1\n" in f"{sc.verify(damaged)}\n"


@pytest.fixture(scope="module")
def compressed(C):
    result = sc.coarsen(C.fine, C.partition, C.modes, compress=True)
    assert result.sheaf.edge_dims[:3].tolist() == [8] * 3 < C.sheaf.edge_dims[:3].tolist()
    return result


@pytest.mark.parametrize("side", ["tail", "head"])
def test_a_relative_error_of_1e_6_in_a_compressed_map_is_caught(compressed, side):
    assert_verified(compressed)
    assert failed(with_wrong_entry(compressed, 2, side)) == {REALIZATION, CROSSING}


def test_energy_at_the_wrong_compressed_edge_is_caught(compressed):
    """Gram matrices of edges change if energy moves between edges; the diagonal of L does not."""
    data = {"tail": compressed.sheaf.tail_data.copy(), "head": compressed.sheaf.head_data.copy()}
    tails = compressed.sheaf.edges[: compressed.n_crossing_edges, 0]
    first, second = np.flatnonzero(tails == 0)[:2]
    for e, moved in ((first, 1e-6), (second, -1e-6)):
        X = np.hstack([compressed.sheaf.tail_map(e), -compressed.sheaf.head_map(e)])
        gram = X.T @ X
        gram[:4, :4] += moved * np.eye(4)
        T = np.linalg.cholesky(gram).T
        data["tail"][compressed.sheaf.tail_offsets[e] :][: T[:, :4].size] = T[:, :4].ravel()
        data["head"][compressed.sheaf.head_offsets[e] :][: T[:, 4:].size] = -T[:, 4:].ravel()
    assert failed(with_sheaf(compressed, **data)) == {CROSSING}


def test_kernel_preservation_holds_if_edges_are_compressed():
    bundle = sc.gallery.bundle(nx.grid_2d_graph(8, 8), 2, seed=5)
    C = sc.coarsen(bundle, sc.select(bundle, 4), 2, compress=True)
    assert applied(assert_verified(C)) >= LOOPLESS
    wrong = with_sheaf(C, tail=C.sheaf.tail_data * (1 + 1e-6))
    assert failed(wrong) >= {*LOOPLESS, CROSSING}


def test_the_ledger_of_global_sections_closes(monkeypatch):
    """All lines are rounding errors, which are compared with the norms of the maps."""
    F = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=5)
    sections = sc.global_sections(F).toarray()
    monkeypatch.setattr(residuals, "random_probes", lambda R, seed: sections)
    assert 0 < sc.verify(sc.coarsen(F, sc.select(F, 4), 3))["section-4"].ratio < 0.01


def test_wrong_rows_or_columns_and_missing_edges_are_caught(C, compressed):
    rows, edges, R = C.crossing_rows, np.arange(C.sheaf.n_edges), C.prolongation.copy()
    for wrong in (rows[::-1], rows[:-1], rows + C.fine.dim_c1):
        assert failed(dataclasses.replace(C, crossing_rows=wrong)) == {CROSSING}
    without_loop = with_sheaf(C, edges=np.delete(edges, C.n_crossing_edges + 1))
    assert failed(without_loop) == {REALIZATION}
    for whole in (C, compressed):
        assert failed(with_sheaf(whole, edges=np.delete(edges, 1))) >= {REALIZATION, CROSSING}
    R.data[R.indices == 3] *= 1 + 1e-6
    wrong = failed(dataclasses.replace(C, prolongation=R))
    assert wrong >= {CROSSING, REALIZATION, OPTIMALITY, LEDGER, "fact-1"}


def with_modes_2_to_r_plus_1(F, P, rank, operator="internal", **fields):
    """Return a coarsening by other eigenvectors than the first, whose eigenvalues are right."""
    more = sc.local_modes(F, P, rank + 1, operator)
    clusters = range(P.n_clusters)
    shifted = sc.coarsen(F, P, basis=[more.basis(a)[:, 1:] for a in clusters])
    fields |= {
        "ranks": np.full(P.n_clusters, rank),
        "scores": np.concatenate([more.eigenvalues(a)[1:] for a in clusters]),
        "prolongation": shifted.prolongation,
    }
    return dataclasses.replace(shifted, modes=dataclasses.replace(more, **fields))


def test_wrong_principal_modes_are_caught():
    """No theorem applies to them, so values, vectors and ties are checked directly."""
    F, P = sc.CellularSheaf.constant(nx.path_graph(8)), sc.Partition([0] * 4 + [1] * 4)
    right = sc.coarsen(F, P, 2, local_operator="principal")
    assert_verified(right)
    modes = right.modes
    shifted = with_modes_2_to_r_plus_1(F, P, 2, "principal", tied=modes.tied)
    damages = {name: getattr(modes, name) * (1 + 1e-6) for name in ("scores", "next_eigenvalues")}
    damages |= {"tied": ~modes.tied, "prolongation": shifted.prolongation}
    for wrong in (shifted, *(with_modes(right, **{name: x}) for name, x in damages.items())):
        assert failed(wrong) == {"section-2"}


@pytest.mark.parametrize(("scale", "rank"), [(1e-100, 6), (1e100, sc.ranks.budget(40))], ids=str)
def test_wrong_oversampled_modes_are_caught(scale, rank):
    """Retained scores and next eigenvalues are changed, above kernels of dimension 2."""
    F = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=3)
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    right = sc.coarsen(F, sc.select(F, 4), rank, local_operator="oversampled")
    assert sc.verify(right)["section-2"].passed
    modes = right.modes
    for name, k in (("scores", 2), ("scores", len(modes.scores) - 1), ("next_eigenvalues", 1)):
        values = getattr(modes, name).copy()
        assert 0 < values[k] < np.inf
        values[k] *= 1 + 1e-6
        a = k if name == "next_eigenvalues" else np.searchsorted(modes.rank_offsets, k, "right") - 1
        assert places(with_modes(right, **{name: values})) == {"section-2": f"cluster {a}"}


def damage_ledger(monkeypatch, change):
    """Replace the lines of each ledger that `change` returns, in units of its energy."""

    def damaged(C, x):
        E = sc.energy_ledger(C, x)
        return dataclasses.replace(E, **change(E, np.max(E.fine_energy)))

    monkeypatch.setattr("sheafcoarsen.verification.residuals.energy_ledger", damaged)


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("retained_internal", {LEDGER, LOSSES}),
        ("discarded_internal", {LEDGER, LOSSES, TRUNCATION}),
        ("internal_coupling", {LEDGER, LOSSES}),
        ("discarded_norm2", {TRUNCATION}),
        ("truncation_bound", {TRUNCATION}),
        ("crossing_coupling", {LEDGER}),
        ("fine_energy", {LEDGER}),
    ],
)
def test_a_wrong_line_of_the_ledger_is_caught(C, line, labels, monkeypatch):
    """The value of a cluster, or the total, is changed by 1e-5 of the energy."""

    def change(E, energy):
        values = np.array(getattr(E, line))
        if line == "truncation_bound":
            values[1] = 0.9 * E.discarded_norm2[1]
        elif line == "discarded_norm2":
            values[1] *= 1 - 1e-5
        else:
            values[1] += 1e-5 * energy
        return {line: values}

    damage_ledger(monkeypatch, change)
    where = None if line in ("crossing_coupling", "fine_energy") else "cluster 1"
    assert places(C) == dict.fromkeys(labels, where)


def test_small_and_opposite_errors_in_lines_of_the_ledger_are_caught(C, monkeypatch):
    damage_ledger(monkeypatch, lambda E, _: {"retained_internal": E.retained_internal * (1 + 1e-8)})
    F = sc.CellularSheaf.constant(nx.path_graph(600))
    assert failed(sc.coarsen(F, sc.Partition(np.arange(600) // 60), 2)) == {LEDGER, LOSSES}
    monkeypatch.undo()

    def change(E, energy):
        opposite = 1e-5 * energy * np.array([[1.0], [-1.0], [0], [0], [0]])
        return {"internal_coupling": E.internal_coupling + opposite}

    damage_ledger(monkeypatch, change)
    principal = sc.coarsen(C.fine, C.partition, 3, local_operator="principal")
    assert failed(principal) == {LEDGER}


def test_violations_of_interlacing_are_caught(C, monkeypatch):
    """The crossing operator exceeds L_Gal, or coarse eigenvalues lie below fine ones."""
    double = with_sheaf(C, tail=2 * C.sheaf.tail_data, head=2 * C.sheaf.head_data)
    assert "fact-1" in failed(double)
    one = sc.coarsen(C.fine, sc.Partition(np.zeros(C.fine.n_vertices, int)), 4)
    galerkin = sc.Coarsening.galerkin
    monkeypatch.setattr(sc.Coarsening, "galerkin", lambda C: 0.99 * galerkin(C))
    assert failed(one) == {"fact-1"}


@pytest.mark.parametrize("tied", [False, True])
def test_gaps_near_the_tie_threshold_may_be_marked_either_way(C, tied):
    """The gap differs from sqrt(eps) times the norm by less than a thousandth."""
    last = np.array([C.modes.eigenvalues(a)[-1] for a in range(len(C.ranks))])
    gap = np.sqrt(np.finfo(float).eps) * C.modes.operator_norms
    for factor, doubtful in ((1 - 1e-4, True), (1 + 1e-4, True), (0.9, False), (1.1, False)):
        values, ties = last + factor * gap, np.full(len(last), tied)
        ties = Evidence(with_modes(C, next_eigenvalues=values, tied=ties), 0).ties
        assert (ties == (tied if doubtful else factor < 1)).all()


@pytest.mark.parametrize("spread", [0.0, 1e-11, 1e-9])
def test_eigenvalues_closer_than_the_root_of_eps_are_tied(spread):
    """Weights split the eigenvalue pairs of a cycle; gaps below 1.5e-8 norm(L_a) are ties."""
    edges = np.array([[v, (v + 1) % 12] for v in range(12)])
    weight = 1 + spread * np.cos(np.pi * np.arange(12) / 3)
    F = sc.CellularSheaf.constant(edges, weight=weight)
    C = sc.coarsen(F, sc.Partition(np.zeros(12, int)), 2)
    assert C.modes.tied.all()
    assert_verified(C)
    assert "section-2" in failed(with_modes(C, tied=~C.modes.tied))
    P = sc.Partition(np.repeat([0, 1], 6))  # the gap above a kernel is wide
    kernel = sc.coarsen(F, P, sc.ranks.kernel())
    assert places(with_modes(kernel, tied=np.array([False, True])))["section-2"] == "cluster 1"


def test_a_discarded_eigenvalue_at_rounding_level_counts_as_a_local_section(C):
    rounding = np.full(len(C.ranks), 1e-17) * C.modes.operator_norms.max()
    check = sc.verify(with_modes(C, next_eigenvalues=rounding))["fact-2"]
    assert check.name == "sections kept"
    reason = (
        r"a local section may be discarded, first in cluster 0: its first discarded eigenvalue "
        rf"{rounding[0]:.3g} is within rounding, \S+e-\d\d, of 0"
    )
    assert re.fullmatch(reason, check.skipped_because)


def test_modes_2_to_r_plus_1_are_caught(C):
    """Without the first, global sections are not in im R where there are any."""
    assert OPTIMALITY in failed(with_modes_2_to_r_plus_1(C.fine, C.partition, 4))
    assert failed(with_modes_2_to_r_plus_1(SIX, THREES, 1)) >= {"fact-2", OPTIMALITY}


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@pytest.mark.parametrize(
    ("dims", "rounding", "operator", "scale"),
    [
        ([1], 1.2e-16, "internal", 1.0),
        ([1], 3e-16, "oversampled", 1.0),
        *(([2], 2.3e-16, "internal", scale) for scale in (1e-100, 1.0, 1e100)),
        ([2, 1], 3e-16, "internal", 1.0),
        ([2, 1], 2.3e-16, "oversampled", 1.0),
        ([3, 1], 1.2e-16, "oversampled", 1.0),
    ],
)
def test_a_loop_that_cancels_up_to_rounding_passes(dims, rounding, operator, scale):
    """The difference of the loop maps has rank 0 relative to the maps."""
    d, P = dims[0], sc.Partition([0] * len(dims))
    noise = np.random.default_rng(d).choice([0.0, rounding, 2 * rounding], (d, d))
    head = scale * (np.eye(d) + noise)
    F = sc.CellularSheaf([[0, 0]], [scale * np.eye(d)], [head], vertex_dims=dims)
    assert dense_sections(F, np.finfo(float).eps, np.dtype(float))[0].shape == (sum(dims),) * 2
    for rank in (0, 1, 2, sc.ranks.kernel()):
        V = sc.verify(sc.coarsen(F, P, rank, local_operator=operator))
        assert V["fact-2"].passed, str(V)


@pytest.mark.parametrize("labels", [[0, 1, 1], [0, 1, 2]])
@pytest.mark.parametrize("rounding", [2.2e-16, 3e-16])
def test_a_cancelling_loop_beside_maps_of_norm_1_passes(labels, rounding):
    """Oversampled modes scale the loop by itself, but sections are relative to all maps."""
    F = sc.CellularSheaf([[0, 0], [1, 2]], [[[1.0]], [[1.0]]], [[[1 + rounding]], [[1.0]]])
    C = sc.coarsen(F, sc.Partition(labels), sc.ranks.kernel(), local_operator="oversampled")
    assert assert_verified(C)["fact-2"].skipped_because is None


def test_a_section_lost_by_oversampled_modes_is_caught():
    C = sc.coarsen(SIX, THREES, 2, local_operator="oversampled")
    R = C.prolongation.toarray()
    Q = np.linalg.qr(np.column_stack([np.ones(3), np.arange(3.0), [1.0, -2.0, 1.0]]))[0]
    R[:3, :2] = Q[:, 1:]
    lost = dataclasses.replace(C, prolongation=type(C.prolongation)(R))
    assert "fact-2" in failed(lost)


def test_sections_of_a_coarse_sheaf_without_its_loops_are_not_promised():
    """The path's coarse sheaf has three sections, R* L R has one."""
    check = sc.verify(sc.coarsen(SIX, THREES, 2, loops=False))["fact-2"]
    assert "loops=False" in check.skipped_because
    assert sc.verify(sc.coarsen(SIX, THREES, sc.ranks.kernel(), loops=False))["fact-2"].passed
