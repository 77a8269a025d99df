"""The ledger: its bound and totals, the bases and cochains it accepts, how it prints."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support.helpers import assert_residual
from tests.support.strategies import bases, sheaves_with_partitions
from tests.unit.coarsening.test_coarsen import coarsen


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
    for dtype in (np.float64, np.float32):  # only one of two sections is retained
        rounding = []
        for seed in range(8):
            F = gallery.bundle(nx.cycle_graph(6), 2, seed=seed)
            F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
            sections = coarsen(F, Partition([0] * 6), 1)
            assert sc.energy_ledger(sections, np.ones(12)).truncation_bound.tolist() == [np.inf]
            rounding.append(sections.modes.next_eigenvalues[0])
        assert max(rounding) > 0  # the processor decides for which seeds


def test_norms_in_single_precision_are_summed_in_double_precision():
    x = np.full((100_000, 2), 0.1, np.float32)
    P = Partition(np.zeros(len(x), int))
    empty = CellularSheaf.from_flat(
        [], np.zeros(0, np.float32), np.zeros(0, np.float32), [1] * len(x), []
    )
    E = sc.energy_ledger(coarsen(empty, P, 0), x)
    exact = len(x) * float(x[0, 0]) ** 2
    assert_residual(E.fine_norm2 - exact, exact, n=2, eps=np.finfo(np.float32).eps)


def test_the_fine_energy_is_computed_independently_of_the_lines():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(6)), Partition([0, 0, 0, 1, 1, 1]), 2)
    x = np.random.default_rng(5).integers(-9, 10, size=(6, 60))
    E = sc.energy_ledger(C, x)
    # integers cause no rounding errors
    assert E.fine_energy.tolist() == (np.diff(x, axis=0) ** 2).sum(axis=0).tolist()
    assert (sum(E.lines.values()) != E.fine_energy).any()  # the lines have rounding errors


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


def test_the_limit_of_orthonormality_is_that_of_rounding():
    F, P = CellularSheaf.constant(nx.path_graph(9)), Partition([0] * 9)
    limit = 30 * 9 * 9 / 6 * np.finfo(float).eps  # norm((1 + t)^2 I - I) <= 30 n eps norm(I)^2
    just, beyond = (sc.coarsen(F, P, basis=[(1 + t * limit) * np.eye(9)]) for t in (0.9, 1.1))
    assert sc.energy_ledger(just, np.zeros(9))
    with pytest.raises(ValueError, match="requires orthonormal columns"):
        sc.energy_ledger(beyond, np.zeros(9))


def test_the_ledger_prints_its_lines_or_their_sums_over_columns():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1]), 1)
    E = sc.energy_ledger(C, [0.0, 1.0, 2.0, 4.0])
    names = [line[:26].strip() for line in repr(E).splitlines()]
    fine = ["fine energy", "kept (Galerkin) energy", "closure", "norm(x)^2", "of it discarded"]
    assert names == ["EnergyLedger", *E.lines, *fine]
    assert "6.25" in repr(E)
    X = np.random.default_rng(0).standard_normal((4, 9))
    E = sc.energy_ledger(C, X)
    E = dataclasses.replace(E, fine_energy=E.fine_energy * [*[1.0] * 8, 2.0])
    assert E.closure.min() < -0.4
    text = repr(E).splitlines()
    assert text[0] == "EnergyLedger: sums over 9 columns"
    shown = {line[:25].strip(): float(line[25:]) for line in text[1:]}
    assert shown["fine energy"] == pytest.approx(E.fine_energy.sum(), rel=1e-5)
    for name, value in E.lines.items():
        assert shown[name] == pytest.approx(value.sum(), rel=1e-5)
    assert shown["largest closure"] == pytest.approx(abs(E.closure).max(), rel=1e-5)
    assert shown["norm(x)^2"] == pytest.approx(np.linalg.norm(X) ** 2, rel=1e-5)
    lost = np.linalg.norm(X - C.lift(C.pool(X))) ** 2
    assert shown["of it discarded"] == pytest.approx(lost, rel=1e-5)
    assert "sums over 9 columns" in E._repr_html_()
    E = sc.energy_ledger(C, X[:, :2])
    for name, value in (*E.lines.items(), ("fine energy", E.fine_energy)):
        cells = "".join(f"<td>{v:.4g}</td>" for v in value)
        assert f"<th>{name}</th>{cells}" in E._repr_html_()
