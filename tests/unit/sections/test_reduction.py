"""Levels that stall, stalks that are too large, and removal of local sections."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.sections import Cut
from sheafcoarsen.sections.reduction import reduce_level
from tests.support.helpers import assert_residual


@pytest.mark.usefixtures("no_forests")
def test_clusters_are_enlarged_if_coarsening_stalls(monkeypatch):
    """Clusters of two vertices of a long path retain nearly all dimensions."""
    monkeypatch.setattr(
        "sheafcoarsen.sections._global_sections.sections_of_full_rank", lambda F: None
    )
    monkeypatch.setattr("sheafcoarsen.sections.clustering.VERTICES", 1)
    monkeypatch.setattr("sheafcoarsen.sections.clustering.LAST", 10)
    F = sc.CellularSheaf.constant(nx.path_graph(60))
    S = sc.global_sections(F)
    assert S.h0 == 1
    assert S.levels[-1] <= 10
    assert_residual(abs(S.basis) - 1 / np.sqrt(60), n=60)


@pytest.mark.usefixtures("no_forests")
def test_a_stalk_that_is_too_large_raises(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.clustering.LAST", 20)
    monkeypatch.setattr("sheafcoarsen.sections.clustering.LARGEST_LAST", 30)
    with pytest.raises(
        np.linalg.LinAlgError, match="a single stalk .* has dimension 40, but dense"
    ):
        sc.global_sections(sc.CellularSheaf.random(nx.path_graph(4), [40, 1, 1, 1], 45, seed=0))


def test_a_holonomy_that_counts_as_zero_inside_a_cluster_warns():
    """Each component is a triangle in a single cluster without crossing maps."""
    turn = np.eye(2) + 1e-13 * np.array([[0, -1], [1, 0]])
    edges = np.arange(900).reshape(-1, 3)[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    maps = np.tile(np.eye(2), (2, 900, 1, 1))
    maps[0, ::3] = turn
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine"):
        S = sc.global_sections(sc.CellularSheaf(edges, *maps))
    assert S.h0 == 600
    assert len(S.levels) > 1
    assert 1e-14 < S.largest_zero < 1e-12


def test_sections_are_removed_in_spite_of_errors_from_eliminated_directions():
    """Sections contain eps / g of an eliminated direction with singular value g = 2e-3."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Q, U = (np.linalg.qr(rng.standard_normal((d, d)))[0] for d in (3, 2))
        inner, crossing = U @ np.diag([1, 2e-3]) @ Q[:2], (Q[0] + Q[1])[None]
        F = sc.CellularSheaf([[0, 0], [0, 1]], [inner, crossing], [0 * inner, np.ones((1, 1))])
        level = reduce_level(F, sc.Partition([0, 1]), Cut(1e-3, 2.0**-52))[0]
        assert level.P.ranks.tolist() == [1, 0]
