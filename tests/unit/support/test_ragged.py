import copy
import pickle
from functools import cached_property

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._support import linalg, ragged


def test_offsets_of_small_integer_types_do_not_overflow():
    assert ragged.offsets(np.full(300, 100, dtype=np.int8))[-1] == 30_000


def test_norms_of_blocks_do_not_overflow():
    data, starts = np.array([3e300, 4e300j, 1.0]), ragged.offsets([2, 0, 1])
    assert linalg.ragged_norms(data, starts).tolist() == [5e300, 0, 1]


def arrays_in(value):
    """Yield the public arrays of an object, including those of sparse matrices."""
    for name in dir(value):
        held = getattr(value, name, None) if not name.startswith("_") else None
        if isinstance(held, np.ndarray):
            yield name, held
        elif scipy.sparse.issparse(held):
            yield name, held.data


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_results_are_read_only(duplicate):
    """Writing into a copy would invalidate its cached properties."""
    F = sc.gallery.bundle(nx.grid_2d_graph(4, 5), 2, noise=0.1, seed=0)
    C = sc.coarsen(F, sc.select(F, 4), sc.ranks.fixed(2).whole_multiplets())
    K = sc.eliminate(F)
    S = sc.synchronize(sc.PoseGraph([[0, 1]], [np.eye(2)], [[1.0, 0.0]], poses=None))
    x = np.ones(F.dim_c0)
    results = [F, C.partition, C, C.modes, K, S, S.measurements, sc.eigenmodes(F, 2)]
    results += [sc.energy_ledger(C, x), sc.least_squares(F, np.ones(F.dim_c1))]
    results += [sc.spectral_quality(C, 2), sc.global_sections(sc.CellularSheaf.constant(F.edges))]
    assert not results[-1].basis.flags.writeable
    for result in results:
        was = dict(arrays_in(result))
        for name, array in arrays_in(duplicate(result)):
            assert np.array_equal(array, was[name], equal_nan=True), (result, name)
            assert array.flags.writeable == was[name].flags.writeable, (result, name)
    G, D, other = duplicate(F), duplicate(C), duplicate(K)
    assert np.array_equal(D.recoarsen(G).sheaf.tail_data, C.sheaf.tail_data)
    assert np.array_equal(other.refresh(G).sheaf.tail_data, K.sheaf.tail_data)
    assert np.array_equal(D.lift(D.pool(x)), C.lift(C.pool(x)))


def test_pickles_do_not_depend_on_cached_properties():
    """Joblib and dask compare objects by their pickles."""
    F = sc.gallery.bundle(nx.grid_2d_graph(4, 5), 2, noise=0.1, seed=0)
    C = sc.coarsen(F, sc.select(F, 4), 2)
    G = sc.PoseGraph([[0, 1]], [np.eye(2)], [[1.0, 0.0]])
    out = sc.HiSP(n_modes=2, n_clusters=3)(F, np.ones((F.dim_c0, 1)))
    for value in (F, C.partition, C.modes, C, sc.eliminate(F), G, out):
        value = pickle.loads(pickle.dumps(value))
        before = pickle.dumps(value)
        for name in dir(value):
            getattr(value, name, None)
        assert any(isinstance(kind, cached_property) for kind in _attributes(type(value)))
        assert pickle.dumps(value) == before, type(value)


def _attributes(kind):
    return [value for base in kind.__mro__ for value in vars(base).values()]
