"""Results as tables of pandas, and the message without it."""

import dataclasses
import sys

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords, sighted

F = sc.CellularSheaf.random(nx.grid_2d_graph(5, 5), 2, 2, seed=0)
C = sc.coarsen(F, sc.select(F, 4), [1, 2, 3, 2])


def ledgers(columns):
    x = np.random.default_rng(0).standard_normal((F.dim_c0, 3))
    return sc.energy_ledger(C, x[:, 0] if columns is None else x[:, :columns])


@pytest.fixture
def poses():
    turns = np.tile(np.eye(2), (6, 1, 1))
    turns[2] = [[0.0, -1.0], [1.0, 0.0]]
    graph = nx.relabel_nodes(nx.cycle_graph(6), dict(enumerate("abcdef")))
    return sc.synchronize(sc.CellularSheaf.connection(graph, turns))


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_a_row_of_the_ledger_is_a_cluster(columns):
    E = ledgers(columns)
    frame = E.to_frame()
    assert len(frame) == E.retained_internal.size
    assert frame.index.name == "cluster"
    for a, row in frame.iterrows():
        at = a if columns is None else (a, int(row.pop("cochain")))
        for name, value in row.items():
            assert value == getattr(E, name)[at]
    assert {"discarded_norm2", "truncation_bound", "internal_coupling"} <= set(frame)


def test_bounds_that_are_not_known_are_no_column():
    own = sc.coarsen(F, C.partition, 2, local_operator="principal")
    assert "truncation_bound" not in sc.energy_ledger(own, np.ones(F.dim_c0)).to_frame()


def test_eigenvalues_are_numbered_with_the_zeros():
    G = sc.CellularSheaf.constant(nx.grid_2d_graph(5, 5))
    Q = sc.spectral_quality(sc.coarsen(G, sc.select(G, 4), 2), 3)
    frame = Q.to_frame()
    assert frame.index.tolist() == [2, 3, 4]
    for name, values in (("fine", Q.fine), ("coarse", Q.coarse), ("angle", Q.angles)):
        np.testing.assert_array_equal(frame[name], values)
    np.testing.assert_array_equal(frame["relative_error"], Q.relative_errors)


def test_edges_are_listed_from_the_worst_on(poses):
    frame = poses.to_frame()
    np.testing.assert_array_equal(frame.index, poses.outliers())
    assert "distance" not in frame
    for e, row in frame.iterrows():
        i, j = poses.edges[e]
        assert (row["from"], row["to"]) == ("abcdef"[i], "abcdef"[j])
        assert row["suspicion"] == poses.suspicion[e]
        assert row["angle"] == poses.angles[e]
        assert row["cost"] == poses.edge_costs[e]


@pytest.mark.parametrize("labels", [None, ("x", "y", "z", "unseen")])
def test_sightings_are_listed_with_the_edges(labels):
    G, found = pose_graph(2, ring_with_chords(6, 3), noise=0.1)
    marks = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    G = sighted(G, found, marks, [[i, k] for i in range(6) for k in range(3)], noise=3.0, tau=4.0)
    G = dataclasses.replace(G, sightings=dataclasses.replace(G.sightings, labels=labels))
    S = sc.synchronize(G, refine=True)
    residuals = (sc.coboundary(G.joint_sheaf()) @ S.cochain())[-18:]
    sizes = np.linalg.norm(residuals, axis=1)
    frame = S.to_frame()
    assert sorted(frame.index) == list(range(27))
    assert (np.diff(frame["suspicion"]) <= 0).all()
    assert [e for e in frame.index if e < 9] == S.outliers().tolist()
    assert frame.index[0] >= 9
    seen = frame.loc[range(9, 27)]
    assert_residual(seen["suspicion"] - sizes, sizes, n=18)
    assert_residual(seen["distance"] - sizes / 2, sizes, n=18)
    assert_residual(seen["cost"] - sizes**2, sizes**2, n=18)
    assert seen["angle"].isna().all()
    named = labels or ("landmark 0", "landmark 1", "landmark 2")
    wanted = [(int(i), named[k]) for i, k in G.sightings.edges]
    assert list(zip(seen["from"], seen["to"], strict=True)) == wanted


def test_without_pandas_there_is_a_sentence(poses, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result in (ledgers(None), sc.spectral_quality(C, 1), poses):
        with pytest.raises(ImportError, match=r"needs pandas: pip install .sheafcoarsen\[pandas\]"):
            result.to_frame()
