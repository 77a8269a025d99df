"""The ledger of a hierarchy closes and consists of the ledgers of its levels."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.helpers import assert_closes, assert_residual, eps_of, size
from tests.support.strategies import cochains
from tests.unit.hierarchy.test_coarsen_levels import block_size, composite, hierarchies

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@given(hierarchies(), st.data())
def test_the_ledger_of_all_levels_closes(H, data):
    x = data.draw(cochains(H.fine))
    E, eps = H.ledger(x), eps_of(H.fine.dtype)
    columns = [x] if x.ndim == 1 else list(x.T)
    names = [
        f"level {i}: {name}"
        for i in range(len(H))
        for name in ("discarded internal", "internal coupling")
    ]
    assert set(names) <= set(E.lines)
    assert list(E.lines)[-1] == "coarsest energy"
    assert len(E.lines) == 4 * len(H) + 1 + sum(not C.loops for C in H)
    bound = size(reference.coboundary(H.fine))
    P, _, blocks = composite(H)
    for k, column in enumerate(columns):
        lines = [np.atleast_1d(line)[k] for line in E.lines.values()]
        fine = float(np.atleast_1d(E.fine_energy)[k])
        assert_residual(
            fine - reference.energy(H.fine, column),
            bound,
            bound,
            column,
            column,
            n=H.fine.dim_c0,
            eps=eps,
        )
        assert_closes(lines, fine, bound * size(column), n=block_size(H), eps=eps)
        total, closure = sum(map(abs, lines)), np.atleast_1d(E.closure)[k]
        assert_residual(closure - ((sum(lines) - fine) / total if total else 0), n=len(lines))
        if all(
            C.loops for C in H
        ):  # the coarsest energy is that of the component retained by all levels
            kept = reference.energy(
                H.fine, reference.prolongation(H.fine, P, blocks) @ H.pool(column)
            )
            assert_residual(
                lines[-1] - kept, bound, bound, column, column, n=block_size(H), eps=eps
            )
    assert isinstance(E.closure, float) if x.ndim == 1 else E.closure.shape == x.shape[1:]


@given(hierarchies(), st.data())
def test_the_ledger_of_each_level_is_that_of_the_pooled_cochain(H, data):
    x = data.draw(cochains(H.fine, columns=(2,)))
    E = H.ledger(x)
    assert len(E.levels) == len(H)
    for i, (C, mine) in enumerate(zip(H, E.levels, strict=True)):
        theirs = sc.energy_ledger(C, H.pool(x, i))
        for name, line in theirs.lines.items():
            np.testing.assert_array_equal(mine.lines[name], line)
            if name not in ("retained crossing", "retained internal"):
                np.testing.assert_array_equal(E.lines[f"level {i}: {name}"], line)
        if not C.loops:
            np.testing.assert_array_equal(
                E.lines[f"level {i}: retained internal"], theirs.realization_loss
            )
    np.testing.assert_array_equal(E.lines["coarsest energy"], sc.energy(H.sheaves[-1], H.pool(x)))


def test_the_ledger_matches_hand_computation():
    F = CellularSheaf.constant(nx.path_graph(4))
    H = sc.coarsen_levels(F, partitions=[Partition([0, 0, 1, 1]), Partition([0, 0])], rank=1)
    E = H.ledger([0.0, 1.0, 2.0, 4.0])
    # x_ret = (.5, .5, 3, 3) has coarse values sqrt 2 (.5, 3), then their mean is retained
    expected = {
        "level 0: discarded internal": 5,
        "level 0: crossing coupling": -7.5,
        "level 0: discarded crossing": 2.25,
        "level 1: discarded internal": 6.25,
    }
    for name, value in E.lines.items():
        assert_residual(value - expected.get(name, 0.0), 6.0, n=4)
    assert E.fine_energy == 6
    text = repr(E)
    assert [line[:28].strip() for line in text.splitlines()[-3:]] == [
        "coarsest energy",
        "fine energy",
        "closure",
    ]
    loopless = sc.coarsen_levels(
        F, partitions=[Partition([0, 0, 1, 1])], rank=2, loops=False
    ).ledger([0.0, 1, 2, 4])
    assert_residual(loopless.lines["level 0: retained internal"] - 5, 6.0, n=4)
