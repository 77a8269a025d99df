"""Local operators as objects, and local modes as an immutable result with warnings."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.modes import OPERATORS, Internal, LocalOperator, Oversampled, Principal
from tests.support.errors import raises
from tests.support.helpers import residual

GRID = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
FOUR = sc.select(GRID, 4)

# ---------------------------------------------------------------- local operators


def test_operators_are_immutable_and_have_names_and_bounded_rings():
    names = [operator.name for operator in OPERATORS.values()]
    assert names == list(OPERATORS) == ["internal", "principal", "oversampled"]
    assert Oversampled(rings=30).rings == 30
    assert Oversampled(rings=10**30).rings < 2**63
    with pytest.raises(dataclasses.FrozenInstanceError):
        Oversampled().rings = 2


def test_spectral_formulas_apply_only_to_internal_modes():
    assert [operator.spectral for operator in OPERATORS.values()] == [True, False, False]
    for operator in OPERATORS.values():
        C = sc.coarsen(GRID, FOUR, 3, local_operator=operator())
        reasons = {check.label: check.skipped_because for check in sc.verify(C).checks}
        spectral = reasons["eq:retained_internal_energy_spectral"] is None
        assert spectral == C.modes.operator.spectral == operator.spectral


@pytest.mark.parametrize(
    ("operator", "name", "settings"),
    [
        (Internal(), "internal", {}),
        (Principal(), "principal", {}),
        (Oversampled(), "oversampled", {}),
        (Oversampled(rings=2, target=0.5), "oversampled", {"rings": 2, "target": 0.5}),
    ],
    ids=repr,
)
def test_an_operator_object_gives_the_same_modes_as_its_name(operator, name, settings):
    for make in (
        lambda **kind: sc.local_modes(GRID, FOUR, 3, **kind),
        lambda **kind: sc.coarsen(GRID, FOUR, 3, **kind).modes,
        lambda **kind: sc.coarsen_levels(GRID, 4, n_levels=1, rank=3, **kind)[0].modes,
    ):
        one, two = make(local_operator=operator), make(local_operator=name, **settings)
        assert one.local_operator == two.local_operator == name
        assert one.operator == two.operator == operator
        assert (one.rings, one.target, one.pilot) == (two.rings, two.target, two.pilot)
        np.testing.assert_array_equal(one.prolongation.data, two.prolongation.data)
        np.testing.assert_array_equal(one.scores, two.scores)


@pytest.mark.parametrize(
    ("operator", "settings", "message"),
    [
        ("outer", {}, "must be one of 'internal', 'principal', 'oversampled', got 'outer'"),
        (3, {}, "must be one of"),
        (LocalOperator(), {}, "must be one of"),
        (Oversampled, {}, "must be one of"),
        (Oversampled(), {"rings": 1}, "`rings` = 1 is not allowed with `local_operator`"),
        (Internal(), {"target": 2.0}, "`target` = 2.0 is not allowed with `local_operator`"),
    ],
)
def test_invalid_operators_and_settings_raise(operator, settings, message):
    with raises(f"ValueError: {message}"):
        sc.local_modes(GRID, FOUR, 3, operator, **settings)


# ---------------------------------------------------------------- the result


def test_oversampled_modes_without_all_sections_cause_no_warning_about_them():
    """A warning that there is no local section would be wrong; warnings are errors here."""
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
    for sign in (1, -1):  # an unbalanced triangle has no section
        F = CellularSheaf.signed(edges, [sign, 1, 1, 1, 1, 1, 1])
        P = Partition([0, 0, 0, 1, 1, 1])
        none = sc.local_modes(F, P, 0, "oversampled", rings=0)
        assert sc.coarsen(F, P, none).sheaf.dim_c0 == 0


def test_local_modes_are_immutable_but_fields_can_be_replaced():
    F, P = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3), Partition([0, 0, 0, 1, 1, 1])
    M = sc.local_modes(F, P, 2)
    for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms", "rank_offsets"):
        assert not getattr(M, name).flags.writeable
    assert not M.prolongation.data.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        M.ranks = M.ranks
    M.basis(0)[:] = 0  # a copy
    assert residual(M.basis(0).conj().T @ M.basis(0) - np.eye(2), n=6) < 30

    fewer = sc.local_modes(F, P, [1, 2])
    ranks, scores = np.array([1, 2]), np.array([1.0, 2.0, 3.0])
    other = dataclasses.replace(M, ranks=ranks, scores=scores, prolongation=fewer.prolongation)
    assert other.eigenvalues(1).tolist() == [2, 3]  # no cached value of the old modes remains
    np.testing.assert_array_equal(other.basis(0), fewer.basis(0))
    assert ranks.flags.writeable  # the array passed by the caller
    assert not other.ranks.flags.writeable
    Q = Partition([1, 1, 1, 0, 0, 0])
    swapped = sc.local_modes(F, Q, 2)
    other = dataclasses.replace(M, partition=Q, prolongation=swapped.prolongation)
    assert other.clusters.labels.tolist() == Q.labels.tolist()
    assert M.clusters.labels.tolist() == P.labels.tolist()


def test_negative_cluster_indices_count_from_the_end():
    M = sc.local_modes(
        CellularSheaf.random(nx.path_graph(5), 2, 3, seed=3), Partition([0, 0, 0, 1, 1]), [1, 2]
    )
    np.testing.assert_array_equal(M.eigenvalues(-1), M.eigenvalues(1))
    np.testing.assert_array_equal(M.basis(-2), M.basis(0))
    for a in (2, -3):
        for get in (M.eigenvalues, M.basis):
            with pytest.raises(IndexError):
                get(a)


def test_the_repr_of_local_modes_lists_their_sizes():
    F = CellularSheaf.constant(nx.path_graph(4))
    M = sc.local_modes(F, Partition([0, 0, 0, 1]), [2, 1], "principal")
    assert repr(M) == "LocalModes('principal', n_clusters=2, ranks 1 .. 2, dim 3 of 4, tied=0)"
    M = sc.local_modes(CellularSheaf.constant([]), Partition([]), 3)
    assert repr(M) == "LocalModes('internal', n_clusters=0, ranks none, dim 0 of 0, tied=0)"


def test_the_warning_about_ties_contains_no_values():
    """Otherwise Python would not show it only once per line."""
    texts = set()
    for graph, scale, rank in ((nx.cycle_graph(4), 1.0, 2), (nx.complete_graph(7), 1.7, 3)):
        F = CellularSheaf.constant(graph)
        F = F.with_maps(F.tail_data * scale, F.head_data * scale)
        P = Partition(np.zeros(F.n_vertices, int))
        with pytest.warns(sc.TiedModesWarning) as caught:
            M = sc.local_modes(F, P, rank)
        assert M.tied.all()
        texts |= {str(warning.message) for warning in caught}
    (text,) = texts
    assert "`tied`" in text
    assert ".whole_multiplets()" in text
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for scale in (1.0, 1.1, 1.3):
            sc.local_modes(F.with_maps(F.tail_data * scale, F.head_data * scale), P, 3)
    assert len(caught) == 1
