import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.solve.complex_structure import complex_line
from tests.support.helpers import assert_residual, maps_of
from tests.unit.solve.problems import GRID, SHEAVES

LOOPS = nx.MultiGraph([(0, 0), (0, 1), (0, 1), (1, 2), (2, 0), (3, 3), (3, 4)])


def turns(graph, mirrored):
    """Return a sheaf whose maps are scaled rotations in bases of which some are reflected."""
    rng = np.random.default_rng(0)
    edges = np.array([e[:2] for e in graph.edges])
    n, m = graph.number_of_nodes(), len(edges)
    z = rng.standard_normal((2, m)) + 1j * rng.standard_normal((2, m))
    z[1, 0] = 0
    maps = np.stack([[z.real, -z.imag], [z.imag, z.real]]).transpose(2, 3, 0, 1)
    for end in (0, 1):
        maps[end][mirrored[edges[:, end]], :, 1] *= -1
    maps[:, rng.random(m) < 0.5, 1] *= -1
    return CellularSheaf.constant(edges, 2, n_vertices=n, weight=None).with_maps(*maps)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("graph", [GRID, LOOPS], ids=["grid", "loops"])
def test_the_complex_sheaf_has_the_same_laplacian(graph, mirror):
    F = turns(graph, mirror * np.arange(graph.number_of_nodes()) % 3 == 1)
    line = complex_line(F)
    assert line.mirrored.any() == mirror
    X = np.random.default_rng(1).standard_normal((F.dim_c0, 3))
    Z = line.contract(X)
    assert np.array_equal(line.expand(Z)[:, ::2], X)
    product, allowed = line.expand(sc.laplacian(line.sheaf) @ Z), 1e-14 * abs(sc.laplacian(F)).max()
    assert np.abs(product - sc.laplacian(F) @ line.expand(Z)).max() <= 10 * allowed


def test_expand_keeps_sparse_columns_sparse():
    line = complex_line(SHEAVES["noisy bundle"])
    Z = np.random.default_rng(1).standard_normal((line.sheaf.dim_c0, 5)) * (1 + 2j)
    Z[Z.real < 0.5] = 0
    X = line.expand(scipy.sparse.csr_array(Z))
    assert scipy.sparse.issparse(X)
    assert X.nnz <= 4 * np.count_nonzero(Z)
    assert np.array_equal(X.toarray(), line.expand(Z))


def test_sheaves_without_complex_structure_return_none():
    """As on a cycle with a single reflection; with two, there is one."""
    for name in ("graph", "consistent bundle", "complex connection", "mixed stalks"):
        assert complex_line(SHEAVES[name]) is None
    F = SHEAVES["noisy bundle"]
    assert complex_line(F) is not None
    tail, head = maps_of(F)
    tail[3, 0, 1] += 1e-12
    assert complex_line(F.with_maps(tail, head)) is None
    F = CellularSheaf.constant(nx.cycle_graph(7), 2)
    tail, head = maps_of(F)
    for e, is_none in ((2, True), (4, False)):
        head[e, 1, 1] = -1
        assert (complex_line(F.with_maps(tail, head)) is None) == is_none


def test_edges_with_a_zero_map_do_not_constrain_reflections():
    """In a cycle of three, the edge with a reflection has a zero map at its other end."""
    F = CellularSheaf.constant(nx.cycle_graph(3), 2)
    tail, head = maps_of(F)
    tail[0], head[0] = np.diag([1.0, -1.0]), 0
    F = F.with_maps(tail, head)
    L = sc.laplacian(F).toarray()
    found = np.linalg.eigvalsh(sc.laplacian(complex_line(F).sheaf).toarray())
    assert_residual(np.repeat(found, 2) - np.linalg.eigvalsh(L), L, n=6)
