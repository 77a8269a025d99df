"""Local operators as objects, and their lookup by name."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.modes import (
    OPERATORS,
    Internal,
    LocalOperator,
    Oversampled,
    Principal,
    local_operator_of,
)
from tests.support.errors import raises

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
F = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
P = sc.select(F, 4)


def test_names_are_converted_to_operators():
    assert list(OPERATORS) == ["internal", "principal", "oversampled"]
    assert local_operator_of("internal") == Internal()
    assert local_operator_of("principal") == Principal()
    assert local_operator_of("oversampled") == Oversampled(rings=1, target=None)
    assert local_operator_of("oversampled", 2, 0.5) == Oversampled(rings=2, target=0.5)
    assert [operator.name for operator in OPERATORS.values()] == list(OPERATORS)
    own = Oversampled(rings=30)
    assert own.rings == 30
    assert Oversampled(rings=10**30).rings < 2**63
    assert local_operator_of(own) is own


def test_spectral_formulas_apply_only_to_internal_modes():
    assert [operator.spectral for operator in OPERATORS.values()] == [True, False, False]
    for operator in OPERATORS.values():
        C = sc.coarsen(F, P, 3, local_operator=operator())
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
        lambda **kind: sc.local_modes(F, P, 3, **kind),
        lambda **kind: sc.coarsen(F, P, 3, **kind).modes,
        lambda **kind: sc.coarsen_levels(F, 4, n_levels=1, rank=3, **kind)[0].modes,
    ):
        one, two = make(local_operator=operator), make(local_operator=name, **settings)
        assert one.local_operator == two.local_operator == name
        assert one.operator == two.operator == operator
        assert (one.rings, one.target, one.pilot) == (two.rings, two.target, two.pilot)
        np.testing.assert_array_equal(one.prolongation.data, two.prolongation.data)
        np.testing.assert_array_equal(one.scores, two.scores)


def test_hisp_accepts_an_operator_object():
    X = np.random.default_rng(3).standard_normal((36, 4))
    one, two = (sc.HiSP(2, 4, "balls", kind)(F, X) for kind in (Oversampled(), "oversampled"))
    np.testing.assert_array_equal(one.x, two.x)


def test_operators_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Oversampled().rings = 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("outer",), "ValueError: `local_operator` must be one of 'internal', 'principal', 'over"),
        ((3,), "ValueError: `local_operator` must be one of"),
        ((LocalOperator(),), "ValueError: `local_operator` must be one of"),
        ((Oversampled,), "ValueError: `local_operator` must be one of"),
        ((Oversampled(), 1), "ValueError: `rings` = 1 is not allowed with `local_operator`"),
        (
            (Internal(), None, 2.0),
            "ValueError: `target` = 2.0 is not allowed with `local_operator`",
        ),
    ],
)
def test_invalid_operators_and_settings_raise(arguments, message):
    with raises(message):
        local_operator_of(*arguments)
