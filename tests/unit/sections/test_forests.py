"""Sections of forests, at any length, whatever grows and decays along the way."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.sections.forests import forest_sections
from tests.support.kernels import JIT_IS_OFF

SIZE = 600 if JIT_IS_OFF else 30_000


def assert_are_sections(F, S, h0):
    assert S.h0 == h0
    assert S.residual < 1e-14
    assert np.allclose(S.basis.conj().T @ S.basis, np.eye(h0), atol=1e-12)


@pytest.mark.parametrize("seed", [3, 5])
def test_random_numbers_along_a_path(seed):
    rng = np.random.default_rng(seed)
    edges = np.stack([np.arange(SIZE - 1), np.arange(1, SIZE)], axis=1)
    F = CellularSheaf(edges, *rng.standard_normal((2, SIZE - 1, 1, 1)))
    assert_are_sections(F, sc.global_sections(F), 1)


@pytest.mark.parametrize("dtype", [float, complex])
def test_a_tree_of_transports(dtype):
    tree = nx.random_labeled_tree(SIZE // 2, seed=3)
    F = CellularSheaf.random(tree, 3, 3, kind="orthogonal", seed=3, dtype=dtype)
    assert_are_sections(F, sc.global_sections(F), 3)


def test_several_trees_and_a_grounded_one():
    graph = nx.disjoint_union(nx.star_graph(SIZE // 4), nx.path_graph(SIZE))
    F = CellularSheaf.constant(graph, dim=2)
    assert_are_sections(F, sc.global_sections(F), 4)
    graph.add_edge(0, 0)
    maps = F.tail_data.reshape(-1, 2, 2), F.head_data.reshape(-1, 2, 2)
    loop = np.concatenate([maps[0], [np.eye(2)]]), np.concatenate([maps[1], [np.zeros((2, 2))]])
    held = CellularSheaf(np.concatenate([F.edges, [[0, 0]]]), *loop)
    assert sc.global_sections(held).h0 == 2


def test_what_is_left_to_other_ways():
    assert forest_sections(CellularSheaf.constant(nx.path_graph(5))) is None  # small
    assert forest_sections(CellularSheaf.constant(nx.cycle_graph(600))) is None
    assert forest_sections(CellularSheaf.random(nx.path_graph(600), 2, 1, seed=3)) is None
