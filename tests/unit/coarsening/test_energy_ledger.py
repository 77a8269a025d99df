import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support import reference
from tests.support.helpers import LIMIT, assert_residual, eps_of, residual, size, ties_allowed
from tests.support.strategies import bases, cochains, mode_counts, sheaves_with_partitions

PER_CLUSTER = ("retained_internal", "discarded_internal", "internal_coupling", "discarded_norm2")
TOTALS = ("retained_crossing", "crossing_coupling", "discarded_crossing", "fine_energy")
DERIVED = ("galerkin_energy", "realization_loss", "truncation_loss")
NOT_NEGATIVE = {*PER_CLUSTER, *TOTALS} - {"internal_coupling", "crossing_coupling"}


def coarsen(*args, **kwargs):
    with ties_allowed():
        return sc.coarsen(*args, **kwargs)


@st.composite
def coarsenings(draw, kinds=("internal", "principal", "oversampled", "basis")):
    """Draw coarsenings whose R is an isometry."""
    F, P = draw(sheaves_with_partitions())
    kind = draw(st.sampled_from(kinds))
    if kind == "basis":
        return sc.coarsen(F, P, basis=draw(bases(F, P, kinds=["orthonormal"])))
    return coarsen(F, P, draw(mode_counts(P)), local_operator=kind)


def blocks_of(C):
    return [C.block(a) for a in range(C.partition.n_clusters)]


def columns_of(values, x):
    """Return a quantity with shape (K, h) or (h,), also for a cochain without columns."""
    values = np.asarray(values)
    return values if x.ndim == 2 else values[..., None]


def assert_same_ledger(C, E, x):
    """Compare each line with the reference, relative to norms of the block and of x."""
    F, P = C.fine, C.partition
    expected = reference.energy_ledger(F, P, blocks_of(C), x)
    eps, delta_X, delta = (
        eps_of(F.dtype),
        reference.fine_crossing_coboundary(F, P),
        reference.coboundary(F),
    )
    columns = columns_of(x, x)
    for name in PER_CLUSTER:
        ours, theirs = getattr(E, name), getattr(expected, name)
        assert ours.shape == (P.n_clusters, *x.shape[1:])
        assert not ours.flags.writeable
        for a in range(P.n_clusters):
            c = reference.cluster_coordinates(F, P, a)
            delta_a = reference.internal_coboundary(F, P, a)
            factors = () if name == "discarded_norm2" else (delta_a, delta_a)
            for k in range(columns.shape[1]):
                error = columns_of(ours, x)[a, k] - columns_of(theirs, x)[a, k]
                assert_residual(
                    error,
                    *factors,
                    columns[c, k],
                    columns[c, k],
                    n=max(*C.block(a).shape, 1),
                    eps=eps,
                )
    n = max((max(R_a.shape) for R_a in blocks_of(C)), default=1)
    for name in TOTALS + DERIVED:
        ours, theirs = getattr(E, name), getattr(expected, name)
        assert isinstance(ours, float) if x.ndim == 1 else ours.shape == x.shape[1:]
        factor = delta_X if "crossing" in name else delta
        for k in range(columns.shape[1]):
            error = columns_of(ours, x)[k] - columns_of(theirs, x)[k]
            assert_residual(error, factor, factor, columns[:, k], columns[:, k], n=n, eps=eps)


def assert_closes(lines, fine, bound, n, eps):
    """Assert that the lines add up as in docs/conventions.md, section 4.

    The residual is at most 30 n eps B (sqrt(M) + n eps B), with M the sum of absolute lines.
    """
    # in units of B^2, which may be near overflow
    if bound == 0:
        assert fine == 0
        assert not any(lines)
        return
    lines, fine = [line / bound / bound for line in lines], fine / bound / bound
    M = sum(abs(line) for line in lines)
    assert abs(sum(lines) - fine) <= LIMIT * n * eps * (np.sqrt(M) + n * eps)


# ---------------------------------------------------------------- every line


@given(coarsenings(), st.data())
def test_every_line_matches_its_definition(C, data):
    x = data.draw(cochains(C.fine))
    assert_same_ledger(C, sc.energy_ledger(C, x), x)


@given(coarsenings(), st.data())
def test_the_ledger_of_a_complex_cochain_matches_its_definition(C, data):
    x = (1 + 2j) * data.draw(cochains(C.fine))
    assert_same_ledger(C, sc.energy_ledger(C, x), x)


@given(coarsenings(), st.data())
def test_the_ledger_closes_in_total_and_in_every_cluster(C, data):
    F, P = C.fine, C.partition
    x = data.draw(cochains(F))
    if data.draw(st.booleans(), label="near a section") and F.dim_c0:
        sections = reference.global_sections(F)
        x = (sections @ (sections.conj().T @ x)).astype(F.dtype)
    E, eps = sc.energy_ledger(C, x), eps_of(F.dtype)
    lines = list(E.lines.values())
    assert list(E.lines) == [
        "retained internal",
        "discarded internal",
        "internal coupling",
        "retained crossing",
        "crossing coupling",
        "discarded crossing",
    ]
    n = max((max(R_a.shape) for R_a in blocks_of(C)), default=1)
    delta, columns = reference.coboundary(F), columns_of(x, x)
    per_cluster = [columns_of(getattr(E, name), x) for name in PER_CLUSTER[:3]]
    for k in range(columns.shape[1]):
        here = [columns_of(line, x)[k] for line in lines]
        fine = columns_of(E.fine_energy, x)[k]
        assert_closes(here, fine, size(delta) * size(columns[:, k]), n, eps)
        M, total = np.abs(here).sum(), np.sum(here)
        closure = columns_of(E.closure, x)[k]
        if M == 0:
            assert closure == 0
        else:
            assert_residual(closure - (total - fine) / M, n=1, eps=np.finfo(float).eps)
        for a in range(P.n_clusters):
            delta_a = reference.internal_coboundary(F, P, a)
            x_a = columns[reference.cluster_coordinates(F, P, a), k]
            fine_a = float(reference.norm2(delta_a @ x_a))
            assert_closes(
                [line[a, k] for line in per_cluster], fine_a, size(delta_a) * size(x_a), n, eps
            )
    assert isinstance(E.closure, float) if x.ndim == 1 else E.closure.shape == x.shape[1:]


@given(coarsenings(), st.data())
def test_energies_and_norms_are_nonnegative(C, data):
    E = sc.energy_ledger(C, data.draw(cochains(C.fine)))
    for name in NOT_NEGATIVE:
        assert (np.asarray(getattr(E, name)) >= 0).all()


@given(coarsenings(), st.data())
def test_the_galerkin_energy_is_that_of_the_pooled_cochain(C, data):
    x = data.draw(cochains(C.fine, columns=(None,)))
    E, z = sc.energy_ledger(C, x), C.pool(x)
    delta = reference.coboundary(C.fine)
    n = max(C.fine.dim_c0, 1)
    by_operator = np.vdot(z, C.galerkin() @ z).real
    for value in (by_operator, sc.energy(C.sheaf, z), sc.energy(C.fine, C.lift(z))):
        assert_residual(
            E.galerkin_energy - value, delta, delta, x, x, n=n, eps=eps_of(C.fine.dtype)
        )
    # the energy in a sheaf without loops
    crossing = C.sheaf.dim_c1 and sc.edge_energy(C.sheaf, z)[: C.n_crossing_edges].sum()
    assert_residual(
        E.retained_crossing - crossing, delta, delta, x, x, n=n, eps=eps_of(C.fine.dtype)
    )


# ---------------------------------------------------------------- what only spectral internal modes
# do


@given(coarsenings(kinds=["internal"]), st.data())
def test_internal_modes_do_not_couple_and_their_losses_are_sums_over_modes(C, data):
    F, P, M = C.fine, C.partition, C.modes
    x = data.draw(cochains(F, columns=(None,)))
    E, z = sc.energy_ledger(C, x), C.pool(x)
    for a in range(P.n_clusters):
        c = reference.cluster_coordinates(F, P, a)
        factors = (*[reference.internal_coboundary(F, P, a)] * 2, *[x[c]] * 2)
        n, eps = max(len(c), 1), eps_of(F.dtype)
        assert_residual(E.internal_coupling[a], *factors, n=n, eps=eps)
        z_a = z[M.rank_offsets[a] : M.rank_offsets[a + 1]]
        retained = float((M.eigenvalues(a) * np.abs(z_a) ** 2).sum())
        assert_residual(E.retained_internal[a] - retained, *factors, n=n, eps=eps)
        values, vectors = reference.local_modes(F, P, a, len(c))
        alpha = np.abs(vectors.conj().T @ x[c]) ** 2
        r = int(M.ranks[a])
        if not M.tied[a]:  # otherwise the reference may retain another vector
            gap = (
                (values[r] - values[r - 1]) / values[-1]
                if 0 < r < len(c) and values[-1] > 0
                else 1.0
            )
            discarded = float((values[r:] * alpha[r:]).sum())
            assert_residual(E.discarded_internal[a] - discarded, *factors, 1 / gap, n=n, eps=eps)


@pytest.mark.parametrize("kind", ["principal", "basis"])
def test_bases_other_than_internal_modes_have_internal_coupling(kind):
    F = CellularSheaf.random(nx.gnm_random_graph(10, 25, seed=3), 2, 2, seed=5)
    P = Partition(np.arange(10) // 5)
    x = np.random.default_rng(7).standard_normal(20)
    C = sc.coarsen(F, P, 4, local_operator="principal")
    if kind == "basis":
        C = sc.coarsen(F, P, basis=[np.eye(10, 4)] * 2)
    E = sc.energy_ledger(C, x)
    for a in range(2):
        delta_a = reference.internal_coboundary(F, P, a)
        assert residual(E.internal_coupling[a], delta_a, delta_a, x, x, n=10) > 1e6
    assert E.truncation_bound is None
    assert_same_ledger(C, E, x)


@given(coarsenings(kinds=["internal"]), st.data())
def test_the_truncation_bound_is_an_upper_bound_on_the_discarded_norm(C, data):
    F, P, M = C.fine, C.partition, C.modes
    x = data.draw(cochains(F))
    E, eps, columns = sc.energy_ledger(C, x), eps_of(F.dtype), columns_of(x, x)
    assert E.truncation_bound.shape == E.discarded_norm2.shape
    bounds, discarded = columns_of(E.truncation_bound, x), columns_of(E.discarded_norm2, x)
    for a in range(P.n_clusters):
        c, r = reference.cluster_coordinates(F, P, a), int(M.ranks[a])
        values, _ = reference.local_modes(F, P, a, r)
        delta_a = reference.internal_coboundary(F, P, a)
        n = max(len(c), 1)
        if r < len(c):
            level = 4 * len(c) * eps * values[-1]
            assume(not level / 4 < values[r] < 200 * level)  # no rounding decides
        for k in range(columns.shape[1]):
            x_a = columns[c, k]
            expected = float(reference.truncation_bound(F, P, a, r, x_a_in(F, x_a, c)))
            if r == len(c):
                assert bounds[a, k] == expected == 0
                assert_residual(discarded[a, k], x_a, x_a, n=n, eps=eps)
            elif expected == np.inf:
                assert bounds[a, k] == np.inf
            else:
                gap = float(values[r])
                # relative errors of E_a, and of the gap, which may be much smaller than norm(L_a)
                condition = size(delta_a) / gap * size(delta_a)
                assert_residual(
                    bounds[a, k] - expected, condition, condition, x_a, x_a, n=n, eps=eps
                )
                excess = max(float(discarded[a, k]) - float(bounds[a, k]), 0.0)
                assert_residual(excess, condition, x_a, x_a, n=n, eps=eps)


def x_a_in(F, x_a, c):
    x = np.zeros(F.dim_c0, x_a.dtype)
    x[c] = x_a
    return x


def test_the_truncation_bound_can_be_zero_or_infinite_or_attained():
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    # the discarded vector of cluster 0, of eigenvalue 2, and half of that of cluster 1
    x = np.array([1.0, -1.0, 0.0, 1.0])
    E = sc.energy_ledger(sc.coarsen(F, P, 1), x)
    assert_residual(E.truncation_bound - [2.0, 0.5], 2.0, n=2)  # E_a = 4 and 1
    assert_residual(E.discarded_norm2 - [2.0, 0.5], 2.0, n=2)
    assert sc.energy_ledger(sc.coarsen(F, P, 2), x).truncation_bound.tolist() == [0, 0]
    zero_gap = coarsen(F, Partition([0, 1, 0, 1]), [1, 2])  # cluster 0 contains no edge
    assert sc.energy_ledger(zero_gap, x).truncation_bound.tolist() == [np.inf, 0]
    # only one of two sections is retained
    sections = coarsen(gallery.bundle(nx.cycle_graph(6), 2, seed=3), Partition([0] * 6), 1)
    assert sc.energy_ledger(sections, np.zeros(12)).truncation_bound.tolist() == [np.inf]


def test_the_truncation_bound_uses_retained_and_discarded_internal_energy():
    F = CellularSheaf.constant(nx.path_graph(3))  # eigenvalues 0, 1, 3
    x = np.array([1, 0, -1]) / np.sqrt(2) + np.array([1, -2, 1]) / np.sqrt(6)
    E = sc.energy_ledger(sc.coarsen(F, Partition([0, 0, 0]), 2), x)
    assert_residual(E.truncation_bound[0] - 4 / 3, 4.0, n=3)  # E_a = 1 + 3
    assert_residual(E.discarded_norm2[0] - 1, 4.0, n=3)


def test_the_ledger_of_a_path_matches_hand_computation():
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    E = sc.energy_ledger(sc.coarsen(F, P, 1), [0.0, 1.0, 2.0, 4.0])
    # x_ret = (.5, .5, 3, 3), x_disc = (-.5, .5, -1, 1)
    found = [E.retained_internal, E.discarded_internal, E.internal_coupling, E.discarded_norm2]
    assert_residual(np.array(found) - [[0, 0], [1, 4], [0, 0], [0.5, 2]], 6.0, n=2)
    found = [
        E.retained_crossing,
        E.crossing_coupling,
        E.discarded_crossing,
        E.fine_energy,
        E.galerkin_energy,
    ]
    assert_residual(np.array(found) - [6.25, -7.5, 2.25, 6, 6.25], 6.0, n=2)
    assert E.fine_energy == 6
    assert_residual(np.array([E.truncation_loss - 5, E.realization_loss]), 6.0, n=2)
    assert_residual(E.closure, n=2)


def test_the_fine_energy_is_computed_independently_of_the_lines():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(6)), Partition([0, 0, 0, 1, 1, 1]), 2)
    x = np.random.default_rng(5).integers(-9, 10, size=(6, 60))
    E = sc.energy_ledger(C, x)
    # integers cause no rounding errors
    assert E.fine_energy.tolist() == (np.diff(x, axis=0) ** 2).sum(axis=0).tolist()
    assert (sum(E.lines.values()) != E.fine_energy).any()  # the lines have rounding errors


# ---------------------------------------------------------------- which R, which x


@given(sheaves_with_partitions(), st.data())
def test_a_basis_that_is_not_orthonormal_raises_with_a_suggestion(case, data):
    F, P = case
    basis = data.draw(bases(F, P, kinds=["orthonormal"]))
    wide = [a for a, R_a in enumerate(basis) if R_a.shape[1]]
    assume(wide)
    a = data.draw(st.sampled_from(wide))
    basis[a] = basis[a] * F.dtype.type(1 + data.draw(st.sampled_from([1e-2, 1.0, 1e3, -1.0])))
    x = np.zeros(F.dim_c0)
    match = (
        rf"not the identity in cluster {a} .*orthonormalize each block of the basis, e.g. by "
        rf"numpy.linalg.qr\(R_a\)\[0\]"
    )
    with pytest.raises(ValueError, match=match):
        sc.energy_ledger(sc.coarsen(F, P, basis=basis), x)
    repaired = [
        np.linalg.qr(R_a)[0] if R_a.any() else np.eye(*R_a.shape, dtype=F.dtype) for R_a in basis
    ]
    assert sc.energy_ledger(sc.coarsen(F, P, basis=repaired), x).fine_energy == 0


@pytest.mark.parametrize("defect", [1e-6, 1e-9, 1e-11])
def test_a_basis_that_is_only_nearly_orthonormal_raises(defect):
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    skew = np.array([[1.0, defect], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"the ledger requires orthonormal columns.*cluster 1"):
        sc.energy_ledger(sc.coarsen(F, P, basis=[np.eye(2), skew]), np.zeros(4))
    F, P = CellularSheaf.constant(nx.path_graph(9)), Partition([0] * 9)
    limit = 30 * 9 * 9 / 6 * np.finfo(float).eps  # norm((1 + t)^2 I - I) <= 30 n eps norm(I)^2
    assert sc.energy_ledger(sc.coarsen(F, P, basis=[(1 + 0.9 * limit) * np.eye(9)]), np.zeros(9))
    with pytest.raises(ValueError, match="requires orthonormal columns"):
        sc.energy_ledger(sc.coarsen(F, P, basis=[(1 + 1.1 * limit) * np.eye(9)]), np.zeros(9))


def test_invalid_cochains_raise():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1]), 1)
    with pytest.raises(ValueError, match="with dim_c0 = 4 of the fine sheaf, got shape"):
        sc.energy_ledger(C, np.zeros(2))
    with pytest.raises(ValueError, match="`x` must be finite, got nan in row 3"):
        sc.energy_ledger(C, [0, 0, 0, np.nan])


def test_the_ledger_of_an_empty_sheaf_is_zero():
    nothing = np.zeros((0, 1, 1))
    C = sc.coarsen(CellularSheaf([], nothing, nothing), Partition([]), 1)
    E = sc.energy_ledger(C, np.zeros(0))
    assert E.fine_energy == E.closure == E.galerkin_energy == 0
    assert E.retained_internal.shape == E.truncation_bound.shape == (0,)
    E = sc.energy_ledger(C, np.zeros((0, 2)))
    assert E.fine_energy.tolist() == E.closure.tolist() == [0, 0]
    assert E.retained_internal.shape == (0, 2)


def test_the_ledger_prints_its_lines():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1]), 1)
    text = repr(sc.energy_ledger(C, [0.0, 1.0, 2.0, 4.0]))
    assert [line[:26].strip() for line in text.splitlines()] == [
        "EnergyLedger",
        "retained internal",
        "discarded internal",
        "internal coupling",
        "retained crossing",
        "crossing coupling",
        "discarded crossing",
        "fine energy",
        "kept (Galerkin) energy",
        "closure",
    ]
    assert "6.25" in text


def test_the_ledger_of_many_columns_prints_sums():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1]), 1)
    E = sc.energy_ledger(C, np.random.default_rng(0).standard_normal((4, 9)))
    E = dataclasses.replace(E, fine_energy=E.fine_energy * [*[1.0] * 8, 2.0])
    assert E.closure.min() < -0.4
    text = repr(E).splitlines()
    assert text[0] == "EnergyLedger: sums over 9 columns"
    shown = {line[:25].strip(): float(line[25:]) for line in text[1:]}
    assert shown["fine energy"] == pytest.approx(E.fine_energy.sum(), rel=1e-5)
    for name, value in E.lines.items():
        assert shown[name] == pytest.approx(value.sum(), rel=1e-5)
    assert shown["largest closure"] == pytest.approx(abs(E.closure).max(), rel=1e-5)
    assert "sums over 9 columns" in E._repr_html_()
